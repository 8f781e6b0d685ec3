"""Popped messages that are known only in memory.

Upstream: `PopBufferMergeService`. A message that is acknowledged soon leaves no trace on the disk
except the group's offset. The offset advances in the order of the queue, up to the first pop that
has an unsettled message: one that is neither acknowledged, nor in the retry topic, nor in a check
point.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from mqlake.broker.pop.check_points import CheckPoint, Key
from mqlake.remoting.slices import Job
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from mqlake.store.port import AfterFlush


class QueueKey(NamedTuple):
    """A queue as one group pops it."""

    topic: str
    group: str
    queue_id: int


def forget_some(
    keys: Iterable[QueueKey],
    has_ended: Callable[[QueueKey], bool],
    forget: Callable[[QueueKey], None],
) -> Job[None]:
    """Forget the queues that have ended, a queue at a time: there may be very many."""
    for key in list(keys):
        if has_ended(key):
            forget(key)
        yield


class Pop:
    """The messages of one pop from a queue.

    Attributes:
        point: the messages, and until when they are invisible.
        revive_queue_id: the queue for its check point, if it needs one.
        next_offset: queue offset after the pop.
        needs: physical offset after what its acknowledged messages depend on; 0 if nothing.
        settled_at: physical offset after everything that the messages depend on; None while one of
            them is invisible and known only here.
        is_sent: whether the messages were sent to the client. Until then, they get no check point.
    """

    __slots__ = ("is_sent", "needs", "next_offset", "point", "revive_queue_id", "settled_at")

    def __init__(self, point: CheckPoint, revive_queue_id: int, next_offset: int) -> None:
        self.point, self.revive_queue_id, self.next_offset = point, revive_queue_id, next_offset
        self.settled_at: int | None = None
        self.needs = 0
        self.is_sent = False

    def note_sent(self) -> None:
        """Note that the messages were sent to the client."""
        self.is_sent = True


class _QueuePops:
    """The pops of one queue, in its order."""

    def __init__(self, next_offset: int) -> None:
        self.pops: deque[Pop] = deque()
        self.next_offset = next_offset
        self.kept = AfterFlush[int]()
        self.waiting = 0


class InFlight:
    """The pops of a broker that are settled in memory."""

    def __init__(self, offsets: ConsumerOffsetTable) -> None:
        self._offsets = offsets
        self._queues: dict[QueueKey, _QueuePops] = {}
        self._pops: dict[Key, Pop] = {}
        self._by_time: list[tuple[int, int, Pop]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._pops)

    def sizes(self) -> tuple[int, int]:
        """Return how many pops are not settled, and how many wait until their group's offset may
        pass them.
        """
        waiting = sum(len(queue.pops) + queue.waiting for queue in self._queues.values())
        return len(self._pops), waiting

    def next_offset(self, key: QueueKey) -> int | None:
        """Return where the next pop of a queue begins, None if that is unknown here."""
        queue = self._queues.get(key)
        return queue.next_offset if queue else None

    def add(self, pop: Pop, look_at: int) -> None:
        """Note a pop; a pop without messages only moves the offset.

        Args:
            look_at: when `due` returns it (milliseconds).
        """
        point = pop.point
        key = QueueKey(point.topic, point.group, point.queue_id)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _QueuePops(pop.next_offset)
        queue.next_offset = pop.next_offset
        queue.pops.append(pop)
        if not point.count:
            self.settle(pop, 0)
            return
        self._pops[point.key] = pop
        self.look_again(pop, look_at)

    def look_again(self, pop: Pop, look_at: int) -> None:
        """Let `due` return a pop at another time (ms)."""
        self._number += 1
        heappush(self._by_time, (look_at, self._number, pop))

    def find(self, key: Key) -> Pop | None:
        """Return the pop whose check point would have this key, None if it is settled."""
        return self._pops.get(key)

    def settle(self, pop: Pop, settled_at: int) -> None:
        """Note that a pop is no longer needed in memory once the log is durable up to an offset."""
        pop.settled_at = settled_at
        self._pops.pop(pop.point.key, None)
        point = pop.point
        queue = self._queues.get(QueueKey(point.topic, point.group, point.queue_id))
        if queue is None:
            return
        while queue.pops and (at := queue.pops[0].settled_at) is not None:
            queue.kept.add(at, queue.pops.popleft().next_offset)
            queue.waiting += 1

    def due(self, now: int) -> Iterator[Pop]:
        """Yield the pops, once each, that are due for a check by now and are not settled."""
        while self._by_time and self._by_time[0][0] <= now:
            pop = heappop(self._by_time)[2]
            if pop.settled_at is None:
                yield pop

    def all(self) -> list[Pop]:
        """Return all pops that are not settled."""
        return list(self._pops.values())

    def commit(self, flushed: int) -> Job[None]:
        """Advance the groups' offsets as far as the log is durable."""
        for key, queue in list(self._queues.items()):
            yield
            if self._queues.get(key) is not queue:
                continue  # It was forgotten meanwhile.
            if queue.waiting:
                offset = queue.kept.take(flushed)
                at = key.group, key.topic, key.queue_id
                # A reset counts from the group's next pop on; if the broker stops before that, the
                # group continues at the offset in the table.
                if offset is not None and not self._offsets.has_reset(*at):
                    self._offsets.commit(*at, offset)
                queue.waiting = len(queue.kept)
            if not queue.pops and not queue.waiting:
                del self._queues[key]

    def topic_ended(self, topic: str) -> Job[None]:
        """Forget the pops of a topic; offsets of it are no longer committed."""
        return forget_some(self._queues, lambda key: key.topic == topic, self.forget)

    def group_ended(self, group: str) -> Job[None]:
        """Forget the pops of a group; its messages are redelivered if it is created again."""
        return forget_some(self._queues, lambda key: key.group == group, self.forget)

    def clear(self) -> None:
        """Forget all pops."""
        for key in list(self._queues):
            self.forget(key)

    def forget(self, key: QueueKey) -> None:
        """Forget the pops of a queue: the group was reset, or the topic or the group deleted."""
        queue = self._queues.pop(key, None)
        for pop in queue.pops if queue else ():
            pop.settled_at = 0
            self._pops.pop(pop.point.key, None)
