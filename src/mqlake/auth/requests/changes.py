"""Changes of users and ACLs, one after the other: durable first, then in effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from mqlake.auth.access import Access
from mqlake.auth.accounts import Accounts
from mqlake.auth.refusals import refused
from mqlake.auth.state import AuthState
from mqlake.auth.users import User
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError


class AccountChanges:
    """Who may change users and ACLs, and the changes themselves."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._running: set[asyncio.Task[None]] = set()

    @property
    def accounts(self) -> Accounts:
        """Return the users and ACLs.

        Raises:
            RemotingError: authentication is off: whoever reaches the port could create users.
        """
        if self._access.accounts is None:
            reason = (
                "authentication is off: set authenticationEnabled and initAuthenticationUser in the"
                " server's file, and start it again"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return self._access.accounts

    def caller(self, request: Command) -> User:
        """Return who manages users.

        Without authorization, no permission was checked, so only super users may.

        Raises:
            RemotingError: the user may not.
        """
        _ = self.accounts
        user = self._access.user(request)
        if user is None or not (user.is_super or self._access.is_authorizing):
            raise refused("without authorizationEnabled, only super users may manage users")
        return user

    def shows_password(self, caller: User) -> bool:
        """Return whether answers to a user contain passwords.

        Proxies, which sign with the inner credentials, check the signatures of their clients.
        """
        return caller.is_super and caller.username == self._access.inner

    async def apply(self, change: Callable[[AuthState], AuthState]) -> None:
        """Apply a change. It is completed even if its client disconnects.

        Raises:
            RemotingError: it is refused.
            DiskError: it could not be written.
        """
        task = asyncio.create_task(self._apply(self.accounts, change))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def _apply(self, accounts: Accounts, change: Callable[[AuthState], AuthState]) -> None:
        async with accounts.changing:
            new = change(accounts.state)
            if new != accounts.state:
                await asyncio.to_thread(partial(accounts.write, new))
                accounts.adopt(new)

    async def stop(self) -> None:
        """Return once running changes are completed."""
        await asyncio.gather(*self._running, return_exceptions=True)
