"""The users of a broker and their ACLs."""

from __future__ import annotations

import asyncio

from mqlake.auth.decisions import Decisions
from mqlake.auth.metadata import AccountFile
from mqlake.auth.state import AuthState
from mqlake.auth.users import User


class Accounts:
    """The current users and ACLs. For one thread.

    Attributes:
        state: all of them; a change replaces it.
        changing: held by whoever changes them.
    """

    def __init__(self, file: AccountFile, state: AuthState) -> None:
        self._file, self.state = file, state
        self.changing = asyncio.Lock()
        self._decisions: dict[str, Decisions] = {}

    def user(self, name: str) -> User | None:
        """Return a user, None if it does not exist."""
        return self.state.users.get(name)

    def decisions(self, name: str) -> Decisions | None:
        """Return what the ACL of a user decides, None if the user has no ACL."""
        if (found := self._decisions.get(name)) is not None:
            return found
        acl = self.state.acls.get(name)
        if acl is None:
            return None
        self._decisions[name] = decisions = Decisions(acl)
        return decisions

    def write(self, state: AuthState) -> None:
        """Write new users and ACLs; return once they are durable. May run in any thread.

        Raises:
            DiskError: the disk refused it: see `AccountFile.write`.
        """
        self._file.write(state)

    def adopt(self, state: AuthState) -> None:
        """Let users and ACLs that were written take effect."""
        self.state = state
        self._decisions.clear()
