"""One memory budget for all connections of a server; the greediest are evicted first.

Greed is what a connection holds, times the square of how long it has held it. So a few large
frames that stand still go before many small ones, and what came a moment ago goes last: a client
that sends one large frame gets through while others sit on all there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

_ENOUGH: Final = 7 / 8
"""Part of the budget down to which connections are evicted, so that this is seldom done."""


class Holder(Protocol):
    """A connection for which memory is held.

    Attributes:
        held: bytes that the budget knows of; only the budget changes it.
    """

    held: int

    def measure(self) -> int:
        """Return the bytes that are held for it now."""
        ...

    def greed(self, now: float) -> float:
        """Return how much it holds, times how long squared."""
        ...

    def evict(self, reason: str) -> None:
        """Close it, and let go of what it holds."""
        ...


class MemoryBudget:
    """Counts what all connections hold.

    Attributes:
        used: bytes that are held.
        limit: bytes that may be.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def hold(self, holder: Holder, size: int) -> bool:
        """Count what a connection holds now; say whether the budget is exceeded."""
        self.used += size - holder.held
        holder.held = size
        return self.used > self.limit

    def evict(self, holders: Iterable[Holder], now: float) -> None:
        """Close the greediest connections until there is room again."""
        found = list(holders)
        for holder in found:
            self.hold(holder, holder.measure())
        enough = int(self.limit * _ENOUGH)
        if self.used <= enough:
            return
        found.sort(key=lambda holder: holder.greed(now), reverse=True)
        for holder in found:
            size = holder.held
            holder.evict(
                f"it holds {size} bytes, more than others, and for longer, "
                f"while all connections together exceed {self.limit} bytes"
            )
            self.hold(holder, 0)
            if self.used <= enough:
                return
