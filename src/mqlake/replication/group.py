"""A broker in its group under a controller: the state that masters and slaves share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from mqlake.replication.term import Term
from mqlake.store.port import Epochs

Alter = Callable[[Iterable[int], int], Awaitable[Term]]
"""Requests another in-sync set from the controller, and returns the set that then holds.

Args are the ids, and the version of the known set. Raises RefusedError if the controller refuses
the change for good. After another MqlakeError, the change may have been made, or may still be.
"""


class Group:
    """The state that replication has only under a controller.

    Args:
        epochs: of this broker's log.
        cut: called with a physical offset from which on this log differs from the group's.

    Attributes:
        broker_id: assigned by the controller; 0 before.
        term: the controller's latest report; None before the first.
        alter: see `Alter`.
    """

    def __init__(self, epochs: Epochs, cut: Callable[[int], object]) -> None:
        self.epochs, self.cut = epochs, cut
        self.broker_id = 0
        self.term: Term | None = None
        self.alter: Alter | None = None
