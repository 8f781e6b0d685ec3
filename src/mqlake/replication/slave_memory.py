"""The memory that is held for one slave, as part of the budget of all connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mqlake.remoting.greed import greed_of
from mqlake.remoting.memory_budget import MemoryBudget


class SlaveMemory:
    """Bytes that wait until a slave reads them, and the buffer into which the log is read for it.

    A slave that reads nothing is closed like any other client that holds much and does not move.

    Args:
        budget: of all connections; None: nothing is counted.
        close: closes the connection, for a reason.

    Attributes:
        held: bytes that the budget knows of.
        buffer: the buffer for the log; None while the slave does not lag far.
    """

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        budget: MemoryBudget | None,
        close: Callable[[str], None],
    ) -> None:
        self._transport, self._budget, self._close = transport, budget, close
        self._loop = asyncio.get_running_loop()
        self._since, self._is_over = self._loop.time(), False
        self.held = 0
        self.buffer: memoryview | None = None

    def count(self) -> None:
        """Count what is held now: something was written, or the slave has read."""
        size = self.measure()
        if not self._transport.get_write_buffer_size() or size < self.held:
            self._since = self._loop.time()
        if self._budget is not None:
            self._budget.hold(self, size)

    def release(self) -> None:
        """Count nothing more: the connection is over."""
        self._is_over, self.buffer = True, None
        self.count()

    def measure(self) -> int:
        """Return the bytes that are held for the slave now."""
        if self._is_over:
            return 0
        return self._transport.get_write_buffer_size() + len(self.buffer or b"")

    def greed(self, now: float, grace: float) -> float:
        """Return how much is held, weighted by how long that has not moved."""
        return greed_of(self.measure(), self._since, now, grace)

    def hold_back(self) -> None:
        """Do nothing: a slave sends little, and is not read for that."""

    def go_on(self) -> None:
        """Do nothing, as `hold_back`."""

    def evict(self, reason: str) -> None:
        """Close the connection, and release what it holds."""
        self._is_over, self.buffer = True, None
        self._close(reason)
