"""Users and policies as texts, in requests and in the file: read with all checks, and written."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, TypeVar

from mqlake.auth.policies import Acl, Action, Decision, Entry, Policy, PolicyType
from mqlake.auth.refusals import refused, shown
from mqlake.auth.resource import Resource
from mqlake.auth.sources import Network, network
from mqlake.auth.users import SUBJECT, User, UserStatus, UserType
from mqlake.protocol.bodies.auth import AclInfo, EntryInfo, PolicyInfo, UserInfo

_MOST_SOURCES: Final = 100
_LONGEST_NAME: Final = 255

E = TypeVar("E", bound=Enum)


def member(kind: type[E], text: str | None, what: str) -> E | None:
    """Return the member of an enumeration that a text names, in any case; None without a text.

    Raises:
        RemotingError: it names none.
    """
    if not text:
        return None
    for each in kind:
        if str(each.value).lower() == text.lower():
            return each
    known = ", ".join(str(each.value) for each in kind)
    raise refused(f"The {what} {shown(text)} is illegal: use one of {known}.")


def username_of(subject: str | None) -> str:
    """Return the user of a subject such as "User:alice".

    Raises:
        RemotingError: it is no such subject.
    """
    name = (subject or "").removeprefix(SUBJECT)
    if not subject or not subject.startswith(SUBJECT) or not name.strip():
        raise refused("The subject is null: use User: and the name of a user.")
    return name


def checked_name(name: str | None) -> str:
    """Return the name of a new user.

    Raises:
        RemotingError: no user can have it.
    """
    if name is None or not name.strip():
        raise refused("username can not be blank")
    if not name.isprintable() or len(name) > _LONGEST_NAME:
        raise refused(f"username can have at most {_LONGEST_NAME} printable characters")
    return name


def read_user(info: UserInfo) -> User:
    """Return a new user.

    Raises:
        RemotingError: name or password is missing, or a value is illegal.
    """
    name = checked_name(info.username)
    if info.password is None or not info.password.strip():
        raise refused("password can not be blank")
    return User(
        name,
        info.password,
        member(UserType, info.user_type, "user type") or UserType.NORMAL,
        member(UserStatus, info.user_status, "user status") or UserStatus.ENABLE,
    )


def write_user(user: User, *, with_password: bool = False) -> UserInfo:
    """Return a user as a body."""
    password = user.password if with_password else None
    return UserInfo(user.username, password, user.user_type.value, user.user_status.value)


def read_policies(policies: Iterable[PolicyInfo]) -> list[tuple[PolicyType, list[Entry]]]:
    """Return the entries of a request to create or update an ACL.

    Raises:
        RemotingError: the list is empty, or an entry is illegal.
    """
    found: list[tuple[PolicyType, list[Entry]]] = []
    for policy in policies:
        kind = member(PolicyType, policy.policy_type, "policy type") or PolicyType.CUSTOM
        if not policy.entries:
            raise refused("The policy entries is empty.")
        found.append((kind, [_entry(each) for each in policy.entries]))
    if not found:
        raise refused("The policies is empty.")
    return found


def _entry(info: EntryInfo) -> Entry:
    resource = read_resource(info.resource)
    actions = frozenset(
        action for text in info.actions if (action := member(Action, text, "action")) is not None
    )
    if not actions:
        raise refused("The actions is empty.")
    if Action.ANY in actions:
        raise refused("The actions can not be Any.")
    decision = member(Decision, info.decision, "decision")
    if decision is None:
        raise refused("The decision is null or illegal.")
    return Entry(resource, actions, _networks(info.source_ips), decision)


def read_resource(text: str | None) -> Resource:
    """Return the resource that a text names.

    Raises:
        RemotingError: it names none.
    """
    found = Resource.parse((text or "").strip())
    if found is None:
        raise refused(f"The resource {shown(text or '')!r} is illegal: use such as Topic:orders.")
    return found


def _networks(texts: list[str]) -> tuple[Network, ...]:
    if len(texts) > _MOST_SOURCES:
        raise refused(f"An entry can have at most {_MOST_SOURCES} source ips.")
    try:
        return tuple(network(text) for text in texts)
    except ValueError:
        raise refused("The source ip is invalid.") from None


def write_acl(username: str, acl: Acl) -> AclInfo:
    """Return an ACL as a body."""
    policies = [_write_policy(kind, acl.of(kind)) for kind in PolicyType if acl.of(kind)]
    return AclInfo(SUBJECT + username, policies)


def _write_policy(kind: PolicyType, policy: Policy) -> PolicyInfo:
    return PolicyInfo(kind.value, [_write_entry(each) for each in policy.values()])


def _write_entry(entry: Entry) -> EntryInfo:
    return EntryInfo(
        entry.resource.text,
        [action.value for action in Action if action in entry.actions],
        [_address(each) for each in entry.networks],
        entry.decision.value,
    )


def _address(network: Network) -> str:
    is_one = network.prefixlen == network.max_prefixlen
    return str(network.network_address) if is_one else str(network)
