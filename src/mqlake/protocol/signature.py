"""Signatures of requests: who sends a request, and that nobody has changed its fields or its body.

A signature covers the values of the header fields, sorted by name, and the body. It contains
neither a time nor a number that is used once: whoever records a signed request can send it again.

Upstream: `AclClientRPCHook`, `AclUtils`, `AclSigner`.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

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
_JOINED: Final = 1 << 16
"""Bytes of a body that are copied, because a single call is faster."""


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
    names = fields.keys() - {SIGNATURE}
    if version <= _LAST_UNSIGNED:
        names -= {_UNSIGNED_FIELD}
    start = "".join([fields[name] for name in sorted(names, key=_order)])
    data, secret = start.encode("utf-8", "replace"), key.encode("utf-8", "replace")
    if len(body) <= _JOINED:
        return b64encode(hmac.digest(secret, data + bytes(body), "sha1")).decode()
    long = hmac.new(secret, data, "sha1")
    long.update(body)
    return b64encode(long.digest()).decode()


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
