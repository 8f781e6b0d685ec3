"""Users of brokers: create, change, delete and list them (upstream: `CreateUserSubCommand`)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import Changed, change_each, changed_brokers
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.protocol.body import decode_answer, encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.header import Header
from mqlake.protocol.headers.auth import ListUsersHeader, UserHeader


class UserAccount(msgspec.Struct, rename="camel"):
    """A user of a broker, without its password."""

    broker_name: str
    username: str
    user_type: str
    user_status: str


async def create(
    admin: Admin, user: UserInfo, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Create a user on one broker, or on all brokers of a cluster."""
    header = UserHeader(username=user.username)
    return await told(
        admin, RequestCode.AUTH_CREATE_USER, header, encode_body(user), cluster, broker
    )


async def update(
    admin: Admin, user: UserInfo, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Change what is given of a user: the password, the type, the status."""
    header = UserHeader(username=user.username)
    return await told(
        admin, RequestCode.AUTH_UPDATE_USER, header, encode_body(user), cluster, broker
    )


async def delete(
    admin: Admin, username: str, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Delete a user and its ACL."""
    header = UserHeader(username=username)
    return await told(admin, RequestCode.AUTH_DELETE_USER, header, b"", cluster, broker)


async def get(
    admin: Admin, username: str, cluster: str | None, broker: str | None
) -> list[UserAccount]:
    """Return a user of each broker that has it."""
    found: list[UserAccount] = []
    header = UserHeader(username=username)
    for each in await admin.brokers(cluster, broker):
        answer = await admin.ask(each.address, RequestCode.AUTH_GET_USER, header)
        if answer.body:
            found.append(_status(each.name, decode_answer(UserInfo, answer.body)))
    return found


async def listed(
    admin: Admin, text: str | None, cluster: str | None, broker: str | None
) -> list[UserAccount]:
    """Return the users of each broker whose names contain a text."""
    return [
        _status(each.name, user)
        for each in await admin.brokers(cluster, broker)
        for user in await _users(admin, each.address, text)
    ]


async def copy(admin: Admin, source: str, target: str, names: Iterable[str]) -> list[str]:
    """Copy users from one broker to another, all of them without names; return their names.

    A user that the target has is left as it is.

    Raises:
        MqlakeError: the source returns no passwords: it returns them to its inner user only.
    """
    wanted, there = frozenset(names), await admin.broker(target)
    users = await _users(admin, (await admin.broker(source)).address, None)
    known = {user.username for user in await _users(admin, there.address, None)}
    copied: list[str] = []
    for user in users:
        name = user.username or ""
        if (wanted and name not in wanted) or name in known:
            continue
        if not user.password:
            raise MqlakeError(
                f"{source}: passwords are returned to the inner user only: use the credentials in"
                " innerClientAuthenticationCredentials"
            )
        header, body = UserHeader(username=name), encode_body(user)
        await admin.ask(there.address, RequestCode.AUTH_CREATE_USER, header, body)
        copied.append(name)
    return copied


async def told(
    admin: Admin,
    code: RequestCode,
    header: Header,
    body: bytes,
    cluster: str | None,
    broker: str | None,
) -> list[Changed]:
    """Send a request to one broker, or to all brokers of a cluster; return them."""
    answers = await change_each(
        await admin.brokers(cluster, broker),
        lambda each: admin.ask(each.address, code, header, body),
    )
    return changed_brokers(answers)


async def _users(admin: Admin, address: str, text: str | None) -> list[UserInfo]:
    answer = await admin.ask(address, RequestCode.AUTH_LIST_USER, ListUsersHeader(filter=text))
    return decode_answer(list[UserInfo], answer.body) if answer.body else []


def _status(broker: str, user: UserInfo) -> UserAccount:
    return UserAccount(broker, user.username or "", user.user_type or "", user.user_status or "")
