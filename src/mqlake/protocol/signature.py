"""Signatures of requests: who sends a request, and that nobody has changed its fields or its body.

A signature covers the values of the header fields, sorted by name, and the body. It contains
neither a time nor a number that is used once: whoever records a signed request can send it again.

Upstream: `AclClientRPCHook`, `AclUtils`, `AclSigner`.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha1
from typing import Any, Final

import msgspec

from mqlake.protocol.command import Body, Command

ACCESS_KEY: Final = "AccessKey"
"""The field with the name of the user."""
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 (the name of a field)

_UNSIGNED_FIELD: Final = "_UNIQUE_KEY_QUERY"
_LAST_UNSIGNED: Final = 399
"""The version of RocketMQ 4.9.3. Clients up to it add that field after they have signed."""
_LONGEST: Final = 4096
_KEYS: Final = 1024
"""Keys whose hashes are remembered."""
_BLOCK: Final = 64
"""Bytes of a block of SHA-1."""


class Credentials(msgspec.Struct, frozen=True, rename="camel"):
    """The name of a user, and the key with which its requests are signed.

    Attributes:
        access_key: the name.
        secret_key: the password. It is not shown in `repr`.
        security_token: a further field that is signed; brokers do not check it.
    """

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __post_init__(self) -> None:
        if not self.access_key or not self.secret_key:
            raise ValueError("credentials need an access key and a secret key")

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, secret_key=…)"


def credentials_of(text: str) -> Credentials | None:
    """Return the credentials in a JSON text with `accessKey` and `secretKey`; None without a text.

    Raises:
        ValueError: the text is no such JSON. The message does not contain the text.
    """
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=Credentials)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ValueError("not JSON with accessKey and secretKey") from None


def are_credentials(text: str) -> bool:
    """Return whether `credentials_of` accepts a text."""
    try:
        credentials_of(text)
    except ValueError:
        return False
    return len(text) <= _LONGEST


def signature(fields: Mapping[str, str], body: Body, key: str, version: int) -> str:
    """Return the signature of a request: Base64 of an HMAC-SHA1.

    Args:
        fields: the header fields; a signature among them is ignored.
        key: the password of the user.
        version: that of the client, from the request.
    """
    start = "".join([fields[name] for name in signed_names(fields, version)])
    inner, outer = _hashes(key)
    digest = inner.copy()
    digest.update(start.encode("utf-8", "replace"))
    digest.update(body)
    whole = outer.copy()
    whole.update(digest.digest())
    return b64encode(whole.digest()).decode()


def signed_names(fields: Iterable[str], version: int) -> list[str]:
    """Return the names of the header fields whose values are signed, in the order of the values.

    Args:
        fields: the names of all fields.
        version: that of the client, from the request.
    """
    left_out = (SIGNATURE, _UNSIGNED_FIELD) if version <= _LAST_UNSIGNED else (SIGNATURE,)
    names = [name for name in fields if name not in left_out]
    # Names in ASCII, as all are that RocketMQ knows, have the same order either way.
    names.sort(key=None if "".join(names).isascii() else _order)
    return names


@lru_cache(_KEYS)
def _hashes(key: str) -> tuple[Any, Any]:
    """Return SHA-1 of what HMAC hashes of a key before the data, and before the inner hash.

    To begin with copies of them takes a third of the time of `hmac.digest`.
    """
    secret = key.encode("utf-8", "replace")
    if len(secret) > _BLOCK:
        secret = sha1(secret).digest()  # noqa: S324 (RocketMQ's)
    secret = secret.ljust(_BLOCK, b"\0")
    inner, outer = (bytes(each ^ pad for each in secret) for pad in (0x36, 0x5C))
    return sha1(inner), sha1(outer)  # noqa: S324


def is_signature(claimed: str, right: str) -> bool:
    """Return whether a request states the right signature, in a time that does not tell."""
    return hmac.compare_digest(claimed.encode("utf-8", "replace"), right.encode())


def signed(command: Command, credentials: Credentials) -> Command:
    """Return a request that is signed in the name of a user."""
    fields = {**command.fields, ACCESS_KEY: credentials.access_key}
    fields.pop(SIGNATURE, None)
    if credentials.security_token is not None:
        fields[SECURITY_TOKEN] = credentials.security_token
    fields[SIGNATURE] = signature(fields, command.body, credentials.secret_key, command.version)
    return msgspec.structs.replace(
        command, raw_fields=msgspec.Raw(), known_fields=fields, encoded=b""
    )


def _order(name: str) -> bytes | str:
    """Return what names are sorted by: Java compares the 16-bit units of texts."""
    return name.encode("utf-16-be", "surrogatepass")
