"""A broker in its group under a controller: the state that masters and slaves share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from mqlake.errors import MqlakeError
from mqlake.replication.auto_switch.term import MasterTerm
from mqlake.store.port import Epochs

Alter = Callable[[MasterTerm, Iterable[int], int], Awaitable[MasterTerm]]
"""Requests another in-sync set from the controller, and returns the set that then holds.

Args are the master's term, the ids, and the version of the known set. Raises as `Group.alter`.
"""


class Group:
    """The state that replication has only under a controller.

    Args:
        epochs: of this broker's log.
        cut: called with a physical offset from which on this log differs from the group's.
        alter: see `Alter`.

    Attributes:
        broker_id: assigned by the controller; 0 before.
        term: the controller's latest report; None before the first.
    """

    def __init__(self, epochs: Epochs, cut: Callable[[int], object], alter: Alter) -> None:
        self.epochs, self.cut, self._alter = epochs, cut, alter
        self.broker_id = 0
        self.term: MasterTerm | None = None

    def take_id(self, broker_id: int) -> None:
        """Take the id that the controller has assigned to this broker."""
        self.broker_id = broker_id

    def take_term(self, term: MasterTerm) -> None:
        """Note what the controller reports."""
        self.term = term

    async def alter(self, members: Iterable[int], version: int) -> MasterTerm:
        """Request another in-sync set from the controller, and return the set that then holds.

        Args:
            members: the ids of the set.
            version: of the known set.

        Raises:
            RefusedError: the controller refuses the change for good.
            MqlakeError: the change may have been made, or may still be; or this broker is not the
                master.
        """
        term = self.term
        if term is None or term.master_id != self.broker_id:
            # What is asked for would be taken for the other one's wish: the answer said its epoch.
            raise MqlakeError("another broker is the master now")
        altered = await self._alter(term, members, version)
        if self.term is term:
            self.term = altered
        return altered
