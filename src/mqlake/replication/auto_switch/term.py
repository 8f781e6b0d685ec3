"""What a controller reports about the brokers of one name."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.errors import MqlakeError


class MasterTerm(NamedTuple):
    """The master, and the brokers that may be the next one.

    Attributes:
        number: the master's term, its "epoch": larger with each election.
        master_id: the master's broker id, assigned by the controller; None without a master.
        master_address: where it serves clients.
        members: the ids of the in-sync set.
        version: the controller's number of that set, its "epoch".
    """

    number: int
    master_id: int | None
    master_address: str
    members: frozenset[int]
    version: int


class ChangeRefusedError(MqlakeError):
    """The controller has refused a change of the in-sync set for good.

    Attributes:
        term: what the controller has said after that.
        is_of_dead: because the controller takes one of the brokers for dead.
    """

    def __init__(self, reason: str, term: MasterTerm, *, is_of_dead: bool = False) -> None:
        super().__init__(reason)
        self.term, self.is_of_dead = term, is_of_dead
