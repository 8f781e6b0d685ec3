"""The accounts of ACL 1.0 (upstream: `PlainAccessConfig`, `PlainAccessResource`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntFlag
from typing import Any, Final, NamedTuple, cast

from mqlake.auth.plain.addresses import Matches, addresses
from mqlake.auth.plain.ip_text import split
from mqlake.errors import FormatError
from mqlake.formats.topic_names import RETRY_PREFIX

_SHORTEST: Final = 7
"""Characters of an access key, and of a secret key."""


class Perm(IntFlag):
    """What an account may do with a topic or a group. DENY beats the others."""

    NONE = 0
    DENY = 1
    PUB = 4
    SUB = 8


_PERMS: Final = {
    "PUB": Perm.PUB,
    "SUB": Perm.SUB,
    "PUB|SUB": Perm.PUB | Perm.SUB,
    "SUB|PUB": Perm.PUB | Perm.SUB,
}


class Account(NamedTuple):
    """An account.

    Attributes:
        secret_key: the key of its signatures.
        white_addresses: from where its requests need neither a signature nor permissions.
        perms: by topic; a group has the name of its retry topic. None if no name is listed.
    """

    access_key: str
    secret_key: str
    white_addresses: Matches
    is_admin: bool
    default_topic: Perm
    default_group: Perm
    perms: Mapping[str, Perm] | None

    def __repr__(self) -> str:
        return f"Account({self.access_key!r})"

    def allows(self, resource: str, needed: Perm) -> bool:
        """Return whether the account may do something with a topic or a retry topic."""
        owned = None if self.perms is None else self.perms.get(resource)
        if owned is None:
            is_group = resource.startswith(RETRY_PREFIX)
            owned = self.default_group if is_group else self.default_topic
        return not owned & Perm.DENY and bool(owned & needed)


def perm_of(text: object) -> Perm:
    """Return the permission of a text; DENY for any other text."""
    return _PERMS.get(str(text).strip(), Perm.DENY) if text is not None else Perm.DENY


def account_of(values: Mapping[str, Any]) -> Account:
    """Return the account that an entry of a file describes.

    Raises:
        FormatError: it describes none. The message contains no key.
    """
    access_key, secret_key = _text(values.get("accessKey")), _text(values.get("secretKey"))
    if min(len(access_key or ""), len(secret_key or "")) < _SHORTEST:
        raise FormatError("an accessKey and a secretKey need more than 6 characters")
    assert access_key is not None
    assert secret_key is not None
    perms: dict[str, Perm] = {}
    _add(perms, values.get("groupPerms"), RETRY_PREFIX)
    _add(perms, values.get("topicPerms"), "")
    return Account(
        access_key,
        secret_key,
        addresses(_text(values.get("whiteRemoteAddress"))),
        str(values.get("admin")).lower() == "true",
        perm_of(values.get("defaultTopicPerm")),
        perm_of(values.get("defaultGroupPerm")),
        perms or None,
    )


def _add(perms: dict[str, Perm], listed: object, prefix: str) -> None:
    for text in _texts(listed):
        parts = split(text, "=")
        if len(parts) != 2:
            raise FormatError(f"{text!r} is not of the form name=PERM")
        perms[prefix + parts[0].strip()] = perm_of(parts[1])


def _texts(listed: object) -> Iterable[str]:
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise FormatError("topicPerms and groupPerms must be lists")
    return (_joined(str(each)) for each in cast("list[object]", listed))


def _text(value: object) -> str | None:
    return None if value is None else _joined(str(value))


def _joined(text: str) -> str:
    """Return a text in which characters that were escaped as two halves are whole."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
