"""One memory budget for all connections of a server; the greediest are evicted first.

Once the budget is exceeded, connections that hold much are no longer read. A moment later the
greediest are closed, and the others are read again. Greed is the bytes that a connection holds,
times the cube of how long they have not moved; what moved a moment ago counts for nothing. So a few
large frames that do not move are evicted before many small ones, and a client that sends one large
frame succeeds while others occupy the whole budget.

However many connections there are, this takes little time in one round of the loop: connections
that hold nothing are never examined, the others a slice at a time. Only if the budget is exceeded
by far must a connection be closed at once: the greediest of those that hold much, and of some
others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Generator, Iterable
from heapq import heapify, heappop
from itertools import chain, islice
from time import perf_counter
from typing import Final, Protocol

_log: Final = logging.getLogger("mqlake.remoting")

_ENOUGH: Final = 3 / 4
"""Part of the budget down to which connections are evicted, so that this happens seldom."""
_LESS: Final = 7 / 8
"""The same if the evicted connections still moved."""
_MOST: Final = 5 / 4
"""Part of the budget that is never exceeded, whichever connection must be closed."""
_AT_ONCE: Final = 1 / 32
"""Part of the budget that is freed at once when that much is held."""
_MUCH: Final = 1 / 512
"""Share of the budget above which a connection counts as large."""
_OTHERS: Final = 512
"""Connections that hold less and are examined in one round, in the order in which they began to
hold.
"""
_SMALL: Final = 65_536
"""Bytes up to which a connection is read in any case."""
_LITTLE: Final = 32
"""Connections that are examined before the time is checked."""
_TURN: Final = 0.002
"""Seconds of one round of the loop in which connections are examined."""
_LOOK: Final = 0.05
"""Seconds between checks of an exceeded budget."""
GRACE: Final = 0.5
"""Seconds of not moving that do not count."""
_PATIENCE: Final = 1.0
"""Seconds after which moving connections are closed, too, if no others can be closed."""


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
        """Return how much it holds, weighted by how long that has not moved."""
        ...

    def hold_back(self) -> None:
        """Stop reading."""
        ...

    def go_on(self) -> None:
        """Resume reading."""
        ...

    def evict(self, reason: str) -> None:
        """Close it, and release what it holds."""
        ...


class MemoryBudget:
    """Counts the bytes that all connections hold.

    Attributes:
        used: bytes that are held.
        limit: the maximum of held bytes; changed by `set_limit`.
    """

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        self.limit, self._much = limit, int(limit * _MUCH)
        self.used = 0
        self._loop = loop
        # Connections that hold much, and those that hold something, in the order in which they
        # began to.
        self._large: dict[Holder, None] = {}
        self._small: dict[Holder, None] = {}
        self._held_back: deque[Holder] = deque()
        self._exceeded_at = 0.0
        self._is_looking = False

    def set_limit(self, limit: int) -> None:
        """Set the bytes that all connections together may hold from now on."""
        self.limit, self._much = limit, int(limit * _MUCH)
        holders = [*self._large, *self._small]
        self._large = {one: None for one in holders if one.held > self._much}
        self._small = {one: None for one in holders if one.held <= self._much}

    def hold(self, holder: Holder, size: int) -> None:
        """Count what a connection holds now; if that exceeds the budget, stop reading it."""
        grown = size - holder.held
        self._set(holder, size)
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
            self._evict_at_once()

    def _set(self, holder: Holder, size: int) -> None:
        old, much = holder.held, self._much
        self.used += size - old
        holder.held = size
        if old > much < size or 0 < old <= much >= size > 0:
            return
        if old > 0:
            del (self._large if old > much else self._small)[holder]
        if size > 0:
            (self._large if size > much else self._small)[holder] = None

    def _evict_at_once(self) -> None:
        """Close some of the greediest connections, to get below what is never exceeded."""
        enough, now = int(self.limit * (_MOST - _AT_ONCE)), self._loop.time()
        found = self._measured(list(chain(self._large, islice(self._small, _OTHERS))), now, 0.0)
        found.sort()
        for _, _, holder in found:
            if self.used <= enough:
                return
            self._evict(holder)

    def _measured(
        self, holders: Iterable[Holder], now: float, grace: float
    ) -> list[tuple[float, int, Holder]]:
        """Measure connections; return the greedy ones, with their negated greed."""
        found: list[tuple[float, int, Holder]] = []
        for number, holder in enumerate(holders):
            self._set(holder, holder.measure())
            greed = holder.greed(now, grace) if holder.held else 0.0
            if greed:
                found.append((-greed, number, holder))
        return found

    def _evict(self, holder: Holder) -> None:
        holder.evict(
            f"it holds {holder.held} bytes, more than others and for longer, and all "
            f"connections together exceed {self.limit} bytes"
        )
        self._set(holder, 0)

    # Slice by slice

    def _look(self) -> None:
        """Free memory, and resume connections that were stopped."""
        patience_ends = self._exceeded_at + _PATIENCE
        self._go_on(self._make_room(GRACE if self._loop.time() < patience_ends else 0.0))

    def _go_on(self, work: Generator[None]) -> None:
        until = perf_counter() + _TURN
        try:
            for _ in work:
                if perf_counter() >= until:
                    self._loop.call_soon(self._go_on, work)
                    return
        except Exception:  # noqa: BLE001 (nobody else would look again)
            _log.exception("the memory of connections could not be checked")
        if self._is_looking:
            self._loop.call_later(_LOOK, self._look)

    def _make_room(self, grace: float) -> Generator[None]:
        enough = int(self.limit * (_ENOUGH if grace else _LESS))
        yield from self._evict_greediest(enough, grace)
        if self.used > self.limit:
            return
        self._exceeded_at = self._loop.time()  # if it is exceeded again
        while self._held_back and self.used <= self.limit:
            self._held_back.popleft().go_on()
            yield
        self._is_looking = bool(self._held_back)

    def _evict_greediest(self, enough: int, grace: float) -> Generator[None]:
        """Close the greediest connections until there is room again."""
        now, found = self._loop.time(), list[tuple[float, int, Holder]]()
        holders = iter([*self._large, *self._small])
        number = 0
        while some := list(islice(holders, _LITTLE)):
            for greed, at, holder in self._measured(some, now, grace):
                found.append((greed, number + at, holder))
            number += len(some)
            yield
        heapify(found)
        while found and self.used > enough:
            greed, _, holder = heappop(found)
            # A connection that has moved since is no longer the greediest.
            if holder.held and holder.greed(self._loop.time(), grace) * 2 >= -greed:
                self._evict(holder)
            yield
