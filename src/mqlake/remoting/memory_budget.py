"""One memory budget for all connections of a server; the greediest are evicted first.

Once the budget is exceeded, a connection that has much is read no further. A moment later the
greediest are closed, and the others are read again. Greed is what a connection holds, times the
cube of how long that has stood still; what moved a moment ago counts for nothing. So few large
frames that stand still go before many small ones, and a client that sends one large frame gets
through while others sit on all there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final, Protocol

_ENOUGH: Final = 3 / 4
"""Part of the budget down to which connections are evicted, so that this is seldom done."""
_LESS: Final = 7 / 8
"""The same if those that are evicted still moved."""
_MOST: Final = 5 / 4
"""Part of the budget that is never exceeded, whoever has to go."""
_SMALL: Final = 65_536
"""Bytes up to which a connection is read all the same."""
_LOOK: Final = 0.05
"""Seconds between looks at an exceeded budget."""
GRACE: Final = 0.5
"""Seconds for which standing still does not count."""
_PATIENCE: Final = 1.0
"""Seconds after which nothing is spared, if nothing that stands still can be closed."""


class Holder(Protocol):
    """A connection for which memory is held.

    Attributes:
        held: bytes that the budget knows of; only the budget changes it.
    """

    held: int

    def measure(self) -> int:
        """Return the bytes that are held for it now."""
        ...

    def greed(self, now: float, grace: float) -> float:
        """Return how much it holds, weighted by how long that has stood still."""
        ...

    def hold_back(self) -> None:
        """Read no further."""
        ...

    def go_on(self) -> None:
        """Read again."""
        ...

    def evict(self, reason: str) -> None:
        """Close it, and let go of what it holds."""
        ...


class MemoryBudget:
    """Counts what all connections hold.

    Args:
        holders: the connections that are open.

    Attributes:
        used: bytes that are held.
        limit: bytes that may be.
    """

    def __init__(
        self, limit: int, loop: asyncio.AbstractEventLoop, holders: Collection[Holder]
    ) -> None:
        self.limit = limit
        self.used = 0
        self._loop, self._holders = loop, holders
        self._held_back: list[Holder] = []
        self._exceeded_at = 0.0
        self._is_looking = False

    def hold(self, holder: Holder, size: int) -> None:
        """Count what a connection holds now; if that is too much for all, read it no further."""
        grown = size - holder.held
        self.used += grown
        holder.held = size
        if grown <= 0 or self.used <= self.limit:
            return
        if size > _SMALL:
            self._held_back.append(holder)
            holder.hold_back()
        if not self._is_looking:
            self._is_looking = True
            self._exceeded_at = self._loop.time()
            self._loop.call_later(_LOOK, self._look)
        if self.used > self.limit * _MOST:
            self._evict(0.0)

    def _look(self) -> None:
        """Make room, and let those go on that were held back."""
        patience_ends = self._exceeded_at + _PATIENCE
        self._evict(GRACE if self._loop.time() < patience_ends else 0.0)
        if self.used > self.limit:
            self._loop.call_later(_LOOK, self._look)
            return
        self._is_looking = False
        held_back, self._held_back = self._held_back, []
        for holder in held_back:
            holder.go_on()

    def _evict(self, grace: float) -> None:
        """Close the greediest connections until there is room again."""
        now, enough = self._loop.time(), int(self.limit * (_ENOUGH if grace else _LESS))
        for holder in self._holders:
            size = holder.measure()
            self.used += size - holder.held
            holder.held = size
        if self.used <= enough:
            return
        greed = {holder: holder.greed(now, grace) for holder in self._holders}
        for holder in sorted(greed, key=greed.__getitem__, reverse=True):
            if self.used <= enough or not greed[holder]:
                return
            size = holder.held
            holder.evict(
                f"it holds {size} bytes, more than others and for longer, "
                f"and all connections together exceed {self.limit} bytes"
            )
            self.used -= size
            holder.held = 0
