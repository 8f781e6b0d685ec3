"""What the cluster says about a user: whether the password is right, and the role."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from mqlake.admin import users
from mqlake.admin.admin import Admin
from mqlake.client.access import ClientAccess
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.cluster.aged import NO_ANSWER
from mqlake.console.page_error import PageError
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import Credentials

_SUPER = "super"


async def role_of(
    name_servers: str,
    access: ClientAccess,
    credentials: Credentials,
    seconds: float,
    *,
    is_again: bool = False,
) -> ConsoleRole:
    """Check a user's password with every master that answers, and return the role.

    One broker is not enough: whoever can register one with a name server could let anybody in.

    Args:
        seconds: within which a master must answer; if one does not, a new session gets at most
            the role of an operator, whose requests the cluster checks one by one.
        is_again: whether all masters have stated the role before.

    Raises:
        RemotingError: NO_PERMISSION if the user or the password is wrong.
        PageError: a broker checks nobody's password.
        MqlakeError: the cluster cannot be reached.
    """
    wrong = Credentials(credentials.access_key, secrets.token_hex(16))
    async with (
        Admin(name_servers, tls=access.tls, credentials=credentials) as admin,
        Admin(name_servers, tls=access.tls, credentials=wrong) as stranger,
    ):
        masters = [each.address for each in await admin.brokers()]
        known = await asyncio.gather(*(_is_known(admin, each, seconds) for each in masters))
        if not all(known):
            raise RemotingError(ResponseCode.NO_PERMISSION, "wrong user or password")
        answering = [each for each, one in zip(masters, known, strict=True) if one is not _SILENT]
        if not answering:
            raise MqlakeError("no broker of the cluster answers, so nobody can log in")
        open_to_all = await asyncio.gather(
            *(_accepts(stranger, each, seconds) for each in answering)
        )
        if any(open_to_all):
            raise PageError(
                "This cluster checks nobody's password, so a login would protect nothing",
                "Turn on authenticationEnabled or aclEnable in all brokers.",
                409,
            )
        supers = await asyncio.gather(
            *(_is_super(admin, each, credentials.access_key) for each in answering)
        )
    is_stated = is_again or len(answering) == len(masters)
    return ConsoleRole.ADMIN if all(supers) and is_stated else ConsoleRole.OPERATOR


_SILENT: Final = "silent"


async def _is_known(admin: Admin, broker: str, seconds: float) -> bool | str:
    """Return whether a broker knows a user and the password, whatever the user may do.

    _SILENT if it does not answer.
    """
    try:
        async with asyncio.timeout(seconds):
            await admin.ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO)
    except (*NO_ANSWER, TimeoutError):
        return _SILENT
    except RemotingError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        return _is_about_rights(str(error))
    return True


def _is_about_rights(text: str) -> bool:
    """Return whether a refusal says that a known user has no permission."""
    lowered = text.lower()
    return "has no permission" in lowered or "no permission to access" in lowered


async def _accepts(admin: Admin, broker: str, seconds: float) -> bool:
    """Return whether a broker accepts a wrong password: then anybody could log in."""
    try:
        await admin.ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO, seconds=seconds)
    except RemotingError as error:
        if error.code == ResponseCode.NO_PERMISSION:
            return False
        raise
    return True


async def _is_super(admin: Admin, broker: str, name: str) -> bool:
    try:
        found = await users.get(admin, name, None, broker)
    except MqlakeError:
        return False  # Only super users may ask; RocketMQ 4 has no such request.
    return any(each.user_type.lower() == _SUPER for each in found)
