"""What the ordinary path has decided about users, for as long as it would decide the same again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mqlake.auth.access import Access
from mqlake.auth.audit import AUDIT
from mqlake.auth.sources import Address, source_of
from mqlake.broker.lane.layout import MOST_USERS
from mqlake.broker.lane.user_table import Permissions, UserTable
from mqlake.protocol.command import Serialization
from mqlake.remoting.connection import Peer

if TYPE_CHECKING:
    from mqlake.auth.users import User
    from mqlake.broker.state.broker_state import BrokerState
    from mqlake.protocol.command import Command
    from mqlake.remoting.route import Route, TakeRun


class _LaneUser(NamedTuple):
    """A user in the table, and from where: any address that is judged as the user's others are."""

    user: User
    address: str


class LaneUsers:
    """The users who have signed requests of the lane's connections.

    Any change of users or policies empties the table, and those of their permissions.

    Attributes:
        table: the users, in the form that the kernels read.
    """

    def __init__(self, access: Access) -> None:
        self._access, self.table = access, UserTable()
        self._permissions: list[Permissions] = []
        self._numbers: dict[tuple[str, Address | None], int] = {}
        self._known: list[_LaneUser] = []
        if not access.checks:
            self.table.open()
        accounts = access.accounts
        self._state = None if accounts is None else accounts.state

    def note_permissions(self, permissions: Permissions) -> None:
        """Note which table has permissions of these users: it is emptied together with theirs."""
        self._permissions.append(permissions)

    @property
    def are_checked(self) -> bool:
        """Return whether requests must be signed."""
        return bool(self._access.checks)

    @property
    def are_silent(self) -> bool:
        """Return whether allowed requests are not logged."""
        return self._access.accounts is None or not AUDIT.isEnabledFor(logging.DEBUG)

    def renew(self) -> None:
        """Forget everything if users or policies have changed."""
        accounts = self._access.accounts
        if accounts is not None and accounts.state is not self._state:
            self._clear()
            self._state = accounts.state

    def _clear(self) -> None:
        self.table.clear()
        for permissions in self._permissions:
            permissions.forget()
        self._numbers.clear()
        self._known.clear()

    def ask(self, peer: Peer) -> int:
        """Return the number of the user who has signed the last request of a connection; 0 if there
        is no user whose sends may be served.

        The ordinary path has accepted this request. It notes who has signed, so a request of
        another user is left to it.
        """
        self.renew()
        accounts, name = self._access.accounts, self._access.signers.user_of(peer)
        user = None if accounts is None or name is None else accounts.user(name)
        if accounts is None or user is None or not user.is_enabled:
            return 0
        decisions = accounts.decisions(user.username)
        depends = decisions is not None and decisions.depends_on_source
        key = user.username, source_of(peer.address) if depends else None
        found = self._numbers.get(key)
        return self._add(key, _LaneUser(user, peer.address)) if found is None else found

    def _add(self, key: tuple[str, Address | None], known: _LaneUser) -> int:
        if len(self.table) == MOST_USERS:
            self._clear()
        number = self.table.add(known.user.username, known.user.password)
        if number is None:
            return 0
        self._numbers[key] = number
        self._known.append(known)
        return number

    def name(self, number: int) -> str | None:
        """Return the name of a user, None if it is not in the table."""
        place = self.table.place(number)
        return None if place is None else self._known[place].user.username

    def place_if_permitted(self, number: int, requests: Iterable[Command]) -> int | None:
        """Return the place of a user in the table, None if the user may not make all requests.

        Args:
            number: of the user.
        """
        place = self.table.place(number)
        if place is None:
            return None
        (user, address), permits = self._known[place], self._access.permits
        return place if all(permits(user, each, address) for each in requests) else None

    def accept(self, peer: Peer, request: Command) -> bool:
        """Return whether a request would be accepted, by its signature and permissions."""
        return self._access.accepts(request, peer.address)


def routes_taken(
    routes: Iterable[Route], codes: Collection[int], take: TakeRun, state: BrokerState
) -> list[Route]:
    """Return the routes; those of some request codes pass their requests to the lane.

    The lane checks signatures and permissions itself, of each request.
    """
    checks = (state.quotas.check_address, state.refusals.check) if state.access.checks else None
    kinds = tuple(Serialization)
    return [
        replace(route, run=take, run_kinds=kinds, run_checks=checks)
        if route.code in codes
        else route
        for route in routes
    ]
