"""Create, change, delete and show users (upstream: `AdminBrokerProcessor.createUser`)."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.auth.reading import checked_name, member, read_user, write_user
from mqlake.auth.refusals import refused
from mqlake.auth.requests.bodies import array, body_of
from mqlake.auth.requests.changes import AccountChanges
from mqlake.auth.requests.host import Host
from mqlake.auth.state import AuthState
from mqlake.auth.users import User, UserType
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.auth import ListUsersHeader, UserHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job


class UserRequests:
    """Answers requests about users."""

    def __init__(self, host: Host, changes: AccountChanges) -> None:
        self._host, self._changes = host, changes

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.AUTH_CREATE_USER, self._create, Permission.UPDATE),
            Route(RequestCode.AUTH_UPDATE_USER, self._update, Permission.UPDATE),
            Route(RequestCode.AUTH_DELETE_USER, self._delete, Permission.UPDATE),
            Route(RequestCode.AUTH_GET_USER, self._get, Permission.READ),
            Route(RequestCode.AUTH_LIST_USER, self._list, Permission.READ),
        )

    async def _create(self, _peer: Peer, request: Command) -> Command:
        caller, info = self._changes.caller(request), self._info(request)
        user = read_user(info)
        if user.is_super:
            _check_super(caller, "create")
        most = self._host.settings.max_user_nums
        await self._changes.apply(lambda state: state.with_user(user, most))
        return response(request)

    async def _update(self, _peer: Peer, request: Command) -> Command:
        caller, info = self._changes.caller(request), self._info(request)
        name = checked_name(info.username)
        if member(UserType, info.user_type, "user type") is UserType.SUPER:
            _check_super(caller, "update")

        def change(state: AuthState) -> AuthState:
            _check_old(state, name, caller)
            return state.with_changed_user(name, info)

        await self._changes.apply(change)
        return response(request)

    async def _delete(self, _peer: Peer, request: Command) -> Command:
        caller = self._changes.caller(request)
        name = request.header(UserHeader).username
        if name is None or not name.strip():
            raise refused("username can not be blank")

        def change(state: AuthState) -> AuthState:
            _check_old(state, name, caller)
            return state.without_user(name)

        await self._changes.apply(change)
        return response(request)

    def _get(self, _peer: Peer, request: Command) -> Command:
        caller = self._changes.caller(request)
        user = self._changes.accounts.user(_name(request))
        if user is None:
            return response(request)
        return response(request, body=self._encoded(user, caller))

    def _list(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        return self._host.slices.serve(peer, self._found(request))

    def _found(self, request: Command) -> Job[Command]:
        caller = self._changes.caller(request)
        wanted, found = request.header(ListUsersHeader).filter or "", Members()
        for user in self._changes.accounts.state.users.values():
            if wanted in user.username:
                found.append(self._encoded(user, caller))
            yield
        return response(request, body=array(found))

    def _encoded(self, user: User, caller: User) -> bytes:
        shows = self._changes.shows_password(caller)
        return encode_body(write_user(user, with_password=shows))

    def _info(self, request: Command) -> UserInfo:
        name = _name(request)
        info = body_of(UserInfo, request, self._host.settings) or UserInfo()
        info.username = name
        return info


def _name(request: Command) -> str:
    name = request.header(UserHeader).username
    if name is None or not name.strip():
        raise RemotingError(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return name


def _check_old(state: AuthState, name: str, caller: User) -> None:
    old = state.users.get(name)
    if old is not None and old.is_super and not caller.is_super:
        raise refused("The super user can only be update by super user")


def _check_super(caller: User, what: str) -> None:
    if not caller.is_super:
        reason = f"The super user can only be {what} by super user"
        raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
