"""Users and ACLs as RocketMQ's JSON, in which members of enumerations are numbers.

Upstream: `User`, `Acl`, `Policy`, `PolicyEntry`, `Resource`, `Environment`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeVar

import msgspec

from mqlake.auth.policies import Acl, Action, Decision, Entry, PolicyType
from mqlake.auth.reading import read_policies, read_user
from mqlake.auth.resource import NamePattern, Resource, ResourceKind
from mqlake.auth.users import SUBJECT, User, UserStatus, UserType
from mqlake.errors import FormatError
from mqlake.protocol.bodies.auth import EntryInfo, PolicyInfo, UserInfo
from mqlake.protocol.errors import RemotingError

E = TypeVar("E", bound=Enum)
S = TypeVar("S", bound=msgspec.Struct)

_IS_USER: Final = 1


def _numbers(kind: type[E]) -> dict[E, int]:
    """Return upstream's numbers: its enumerations have the same order, and begin with 1."""
    return {each: number for number, each in enumerate(kind, 1)}


_ACTIONS, _DECISIONS, _KINDS = _numbers(Action), _numbers(Decision), _numbers(ResourceKind)
_PATTERNS, _POLICIES = _numbers(NamePattern), _numbers(PolicyType)
_TYPES, _STATUSES = _numbers(UserType), _numbers(UserStatus)


class StoredUser(msgspec.Struct, rename="camel"):
    """The fields are in alphabetical order, as in upstream's texts."""

    password: str
    subject_type: int = _IS_USER
    user_status: int | None = None
    user_type: int | None = None
    username: str = ""


class StoredEnvironment(msgspec.Struct, rename="camel", omit_defaults=True):
    source_ips: list[str] | None = None


class StoredResource(msgspec.Struct, rename="camel", omit_defaults=True):
    resource_name: str | None = None
    resource_pattern: int = 0
    resource_type: int = 0


class StoredEntry(msgspec.Struct, rename="camel"):
    actions: list[int]
    decision: int
    resource: StoredResource
    environment: StoredEnvironment | None = None


class StoredPolicy(msgspec.Struct, rename="camel"):
    entries: list[StoredEntry] | None = None
    policy_type: int | None = None


class StoredSubject(msgspec.Struct, rename="camel"):
    subject_type: int
    username: str


class StoredAcl(msgspec.Struct, rename="camel"):
    policies: list[StoredPolicy] | None = None
    subject: StoredSubject | None = None


def read_stored_user(key: bytes, value: bytes) -> User:
    """Return the user of a record.

    Raises:
        FormatError: the record is damaged, or no user can be like that.
    """
    name = _text(key)
    found = _decoded(value, StoredUser, name)
    if found.username != name:
        raise FormatError(f"the user {name!r} is called {found.username!r} in its record")
    user_type = _member(_TYPES, found.user_type or _TYPES[UserType.NORMAL])
    status = _member(_STATUSES, found.user_status or _STATUSES[UserStatus.ENABLE])
    try:
        return read_user(UserInfo(name, found.password, user_type.value, status.value))
    except RemotingError as error:
        raise FormatError(f"user {name!r}: {error.remark}") from None


def stored_user(user: User) -> tuple[bytes, bytes]:
    """Return the record of a user."""
    value = StoredUser(
        user.password,
        user_status=_STATUSES[user.user_status],
        user_type=_TYPES[user.user_type],
        username=user.username,
    )
    return user.username.encode(), msgspec.json.encode(value)


def read_stored_acl(key: bytes, value: bytes) -> tuple[str, Acl]:
    """Return the user and the ACL of a record.

    Raises:
        FormatError: the record is damaged, or has an entry that mqlake does not accept.
    """
    subject = _text(key)
    name = subject.removeprefix(SUBJECT)
    if not subject.startswith(SUBJECT) or not name:
        raise FormatError(f"the ACL of {subject!r} is not that of a user")
    acl, found = Acl(), _decoded(value, StoredAcl, subject)
    try:
        for policy in found.policies or ():
            if policy.entries:
                kind = _member(_POLICIES, policy.policy_type or _POLICIES[PolicyType.CUSTOM])
                info = PolicyInfo(kind.value, [_entry(each) for each in policy.entries])
                for read_kind, entries in read_policies([info]):
                    acl = acl.merged(read_kind, entries)
    except RemotingError as error:
        raise FormatError(f"ACL of {subject!r}: {error.remark}") from None
    return name, acl


def stored_acl(name: str, acl: Acl) -> tuple[bytes, bytes]:
    """Return the record of a user's ACL."""
    policies = [
        StoredPolicy([_stored_entry(each) for each in acl.of(kind).values()], _POLICIES[kind])
        for kind in PolicyType
        if acl.of(kind)
    ]
    value = StoredAcl(policies, StoredSubject(_IS_USER, name))
    return (SUBJECT + name).encode(), msgspec.json.encode(value)


def _entry(found: StoredEntry) -> EntryInfo:
    kind = _member(_KINDS, found.resource.resource_type)
    pattern = _member(_PATTERNS, found.resource.resource_pattern)
    resource = Resource(kind, found.resource.resource_name or "", pattern)
    sources = found.environment.source_ips if found.environment is not None else None
    return EntryInfo(
        resource.text,
        [_member(_ACTIONS, number).value for number in found.actions],
        sources or [],
        _member(_DECISIONS, found.decision).value,
    )


def _stored_entry(entry: Entry) -> StoredEntry:
    resource = entry.resource
    stored = StoredResource(
        resource.name or None, _PATTERNS[resource.pattern], _KINDS[resource.kind]
    )
    return StoredEntry(
        [number for action, number in _ACTIONS.items() if action in entry.actions],
        _DECISIONS[entry.decision],
        stored,
        StoredEnvironment([str(each) for each in entry.networks] or None),
    )


def _member(numbers: dict[E, int], number: int) -> E:
    for member, known in numbers.items():
        if known == number:
            return member
    raise FormatError(f"{number} is no {type(next(iter(numbers))).__name__}")


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise FormatError(f"the key {key[:40]!r} is not text") from None


def _decoded(value: bytes, kind: type[S], what: str) -> S:
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # The text of the error could contain a part of a password.
        raise FormatError(f"the record of {what!r} is damaged") from None
