"""What the ordinary path has decided about users, for as long as it would decide the same again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from mqlake.auth.access import Access
from mqlake.auth.audit import AUDIT
from mqlake.auth.sources import Address, source_of
from mqlake.broker.lane import layout
from mqlake.broker.lane.layout import MOST_USERS
from mqlake.broker.lane.topics import LaneTopics
from mqlake.broker.lane.user_table import UserTable
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.connection import Peer

if TYPE_CHECKING:
    from mqlake.auth.users import User
    from mqlake.broker.lane.kernel import LaneKernel

_TOPIC: Final = "b"
"""The header field with the topic."""
_CODES: Final = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE


class _LaneUser(NamedTuple):
    """A user in the table, and from where: any address that is judged as the user's others are."""

    user: User
    address: str


class LaneUsers:
    """The users who have signed requests of the lane's connections, and their permissions.

    Any change of users or policies empties both tables.

    Attributes:
        arrays: the users and permissions, in the form that the kernel reads.
    """

    def __init__(self, access: Access, topics: LaneTopics) -> None:
        self._access, self._topics, self._table = access, topics, UserTable()
        self.arrays = self._table.arrays(topics)
        self._numbers: dict[tuple[str, Address | None], int] = {}
        self._known: list[_LaneUser] = []
        if not access.checks:
            self._table.open()
        accounts = access.accounts
        self._state = None if accounts is None else accounts.state

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
        self._table.clear()
        self._topics.forget_permissions()
        self._numbers.clear()
        self._known.clear()

    def find_out(self, kernel: LaneKernel, peer: Peer, reason: int, connection: int) -> bool:
        """Find out who has signed the last request of a connection, or whether a user may send to a
        topic; return whether so.

        Args:
            reason: NEW_USER or NEW_PERMISSION.
            connection: its number.
        """
        numbers = kernel.numbers
        if reason == layout.NEW_PERMISSION:
            return self.ask_permission(numbers[layout.SIGNER], numbers[layout.TOPIC])
        number = self.ask(peer)
        kernel.note_signer(connection, number)
        return number > 0

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
        if len(self._table) == MOST_USERS:
            self._clear()
        number = self._table.add(known.user.username, known.user.password)
        if number is None:
            return 0
        self._numbers[key] = number
        self._known.append(known)
        return number

    def ask_permission(self, number: int, topic: int) -> bool:
        """Return whether a user may send to a topic, and note it if so.

        Args:
            number: of the user, who is in the table.
            topic: its place in the table of topics.
        """
        place = self._table.place(number)
        if place is None:
            return False
        user, address = self._known[place]
        fields = {_TOPIC: self._topics.name(topic)}
        permits = self._access.permits
        may_send = all(permits(user, request(code, dict(fields)), address) for code in _CODES)
        if may_send:
            self._topics.permit(topic, place)
        return may_send
