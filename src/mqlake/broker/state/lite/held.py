"""Messages of lite topics that groups have popped: nothing after them is delivered.

Known only in memory, as upstream: after a restart they are delivered again.
Upstream: `MemoryConsumerOrderInfoManager`, `QueueLevelConsumerOrderInfoLockManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

LiteKey = tuple[str, str]
"""A group, and the queue of a lite topic."""
_AT_ONCE: Final = 64


@dataclass(slots=True)
class _Held:
    """The messages of one pop; times in milliseconds."""

    attempt_id: str | None
    pop_time: int
    offsets: list[int]
    visible: dict[int, int]
    counts: dict[int, int]
    acked: set[int] = field(default_factory=set[int])
    is_counted: bool = True

    @property
    def free_at(self) -> int:
        """When none of it blocks the queue any more; 0 if all are acknowledged."""
        waiting = (self.visible[at] for at in self.offsets if at not in self.acked)
        return max(waiting, default=0)


class HeldLite:
    """What groups have popped of lite topics, and not acknowledged.

    Args:
        now: returns milliseconds.
        freed: called with the key of a queue whose messages are visible again.
    """

    def __init__(self, now: Callable[[], int], freed: Callable[[LiteKey], object]) -> None:
        self._now, self._freed = now, freed
        self._held: dict[LiteKey, _Held] = {}
        # When queues may be free, earliest first; `_next` says which time of a queue counts.
        self._due: list[tuple[int, LiteKey]] = []
        self._next: dict[LiteKey, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._held)

    def is_blocked(self, key: LiteKey, attempt_id: str | None = None) -> bool:
        """Return whether a queue must wait; never for the attempt that has popped it."""
        found = self._held.get(key)
        if found is None or (attempt_id is not None and found.attempt_id == attempt_id):
            return False
        return self._now() < found.free_at

    def hold(
        self,
        key: LiteKey,
        attempt_id: str | None,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
    ) -> list[int]:
        """Note that messages are popped now; return how often each one was popped before."""
        old, counts = self._held.get(key), dict[int, int]()
        if old is not None:
            is_same = attempt_id is not None and old.attempt_id == attempt_id
            more = int(old.is_counted and not is_same)
            before = set(old.offsets)
            counts = {at: old.counts.get(at, 0) + more for at in offsets if at in before}
        visible = dict.fromkeys(offsets, pop_time + invisible_time)
        self._held[key] = _Held(attempt_id, pop_time, list(offsets), visible, counts)
        self._later(pop_time + invisible_time, key)
        return [counts.get(at, 0) for at in offsets]

    def acknowledge(self, key: LiteKey, queue_offset: int, pop_time: int) -> int | None:
        """Note that a message was consumed; return the offset to commit.

        None if this pop does not have the queue now; -1 if the message is not one of its messages.
        """
        found = self._held.get(key)
        if found is None or found.pop_time != pop_time:
            return None
        if queue_offset not in found.visible:
            return -1
        found.acked.add(queue_offset)
        waiting = (offset for offset in found.offsets if offset not in found.acked)
        following = next(waiting, None)
        if following is None:
            del self._held[key]
            return found.offsets[-1] + 1
        self._later(found.free_at, key)
        return following

    def change_time(
        self, key: LiteKey, queue_offset: int, pop_time: int, visible: int, *, is_suspended: bool
    ) -> None:
        """Change when a message is visible again (ms)."""
        found = self._held.get(key)
        if found is None or found.pop_time != pop_time or queue_offset not in found.visible:
            return
        if is_suspended:
            # The whole queue waits, and the delivery does not count.
            found.is_counted = False
            found.visible = dict.fromkeys(found.visible, visible)
        else:
            found.visible[queue_offset] = visible
        self._later(found.free_at, key)

    def forget(self, key: LiteKey) -> None:
        """Release a queue."""
        self._held.pop(key, None)

    def held(self) -> list[LiteKey]:
        """Return the queues that are held."""
        return list(self._held)

    def clear(self) -> None:
        """Release all."""
        self._held.clear()

    def _later(self, at: int, key: LiteKey) -> None:
        if self._next.get(key) == at:
            return
        self._next[key] = at
        heappush(self._due, (at, key))
        if len(self._due) > 2 * len(self._held) + _AT_ONCE:
            # Most of them are of queues that were released, or have another time since.
            self._next = {each: when for each, when in self._next.items() if each in self._held}
            self._due = [(when, each) for each, when in self._next.items()]
            heapify(self._due)
        if self._timer is None or self._due[0][0] == at:
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._due:
            delay = max(0, self._due[0][0] - self._now()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._look)

    def _look(self) -> None:
        now = self._now()
        self._timer = None
        for _ in range(_AT_ONCE):
            if not self._due or self._due[0][0] > now:
                break
            at, key = heappop(self._due)
            if self._next.get(key) != at:
                continue  # The time was changed since.
            del self._next[key]
            found = self._held.get(key)
            if found is not None and found.free_at <= now:
                self._freed(key)
        self._schedule()

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
