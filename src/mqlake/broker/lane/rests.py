"""Incomplete last frames of connections, which are kept until more of them arrives.

There is room for few of them, in memory that one budget covers, and no address may use it all up.
A frame that stays incomplete is
passed to its connection, whose limits then apply to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mqlake.broker.lane import layout
from mqlake.remoting.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs


class Rests:
    """The rests, in arrays that the kernel changes. It is a `Holder` of the budget.

    Args:
        state: the kernel's state, which has the number of rests.

    Attributes:
        data: u1[REST_ROWS * DATA_SIZE].
        rows: i8[4, REST_ROWS]; see `layout`.
        held: bytes that the budget knows of.
    """

    def __init__(self, state: memoryview[int]) -> None:
        self._state = state
        self.data: Bytes = np.zeros(layout.REST_ROWS * layout.DATA_SIZE, np.uint8)
        self.rows: Longs = np.zeros((4, layout.REST_ROWS), np.int64)
        self.rows[layout.FREE] = np.arange(layout.REST_ROWS)
        self.held = 0

    def __len__(self) -> int:
        return self._state[layout.RESTS]

    def has_room(self, hosts: Bytes, host: bytes) -> bool:
        """Return whether another rest can be kept, of a connection with an address.

        Nobody is restricted while at most half of the rows are in use. Beyond that, an address may
        have REST_SHARE of them.

        Args:
            hosts: u1[n], 8 bytes for each connection: the address and the port.
            host: at least 4 bytes.
        """
        used = len(self)
        if 2 * (used + 1) <= layout.REST_ROWS or used == layout.REST_ROWS:
            return used < layout.REST_ROWS
        owners = self.rows[layout.REST_OWNER]
        addresses = hosts.view(np.uint32)[2 * owners[owners > 0]]
        own = np.count_nonzero(addresses == np.frombuffer(host[:4], np.uint32))
        return int(own) < layout.REST_SHARE

    def keep(self, seats: Longs, socket: int, rest: bytes, since: int) -> None:
        """Keep the rest of a connection that has none; there must be room.

        Args:
            since: when its frame began, in monotonic nanoseconds.
        """
        rows, state = self.rows, self._state
        state[layout.RESTS] += 1
        row = int(rows[layout.FREE, layout.REST_ROWS - state[layout.RESTS]])
        at = row * layout.DATA_SIZE
        self.data[at : at + len(rest)] = np.frombuffer(rest, np.uint8)
        rows[layout.REST_SIZE, row], rows[layout.REST_SINCE, row] = len(rest), since
        rows[layout.REST_OWNER, row], seats[layout.REST, socket] = socket, row + 1

    def take(self, seats: Longs, socket: int) -> bytes:
        """Return the rest of a connection, and forget it."""
        rows, state, row = self.rows, self._state, int(seats[layout.REST, socket]) - 1
        if row < 0:
            return b""
        seats[layout.REST, socket] = rows[layout.REST_OWNER, row] = 0
        rows[layout.FREE, layout.REST_ROWS - state[layout.RESTS]] = row
        state[layout.RESTS] -= 1
        at = row * layout.DATA_SIZE
        return self.data[at : at + int(rows[layout.REST_SIZE, row])].tobytes()

    def old(self, before: int) -> list[int]:
        """Return the connections whose frames began before a monotonic time in nanoseconds."""
        rows = self.rows
        is_old = (rows[layout.REST_OWNER] > 0) & (rows[layout.REST_SINCE] <= before)
        found: list[int] = rows[layout.REST_OWNER][is_old].tolist()
        return found

    def count_in(self, budget: MemoryBudget | None) -> None:
        """Let a memory budget know how much is held."""
        if budget is not None and (size := self.measure()) != self.held:
            budget.hold(self, size)

    # Holder

    def measure(self) -> int:
        """Return the bytes that are held now."""
        return len(self) * layout.DATA_SIZE

    def greed(self, now: float, grace: float) -> float:  # noqa: ARG002
        """Return that nothing is gained by evicting it: rests are gone within a second."""
        return 0.0

    def hold_back(self) -> None:
        """Do nothing: what is held for connections is bounded."""

    def go_on(self) -> None:
        """Do nothing."""

    def evict(self, reason: str) -> None:
        """Do nothing."""
