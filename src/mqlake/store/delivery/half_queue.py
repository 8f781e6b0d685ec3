"""The half messages of one queue: which of them have ended, and how far both queues are finished.

Upstream: `TransactionalMessageServiceImpl` (`fillOpRemoveMap`, `calculateOpOffset`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from typing import NamedTuple

from mqlake.formats.consume_queue import ENTRY, QueueEntry
from mqlake.formats.record import Record
from mqlake.formats.topic_names import HALF_TOPIC, OP_TOPIC
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from mqlake.store.delivery.after_flush import AfterFlush
from mqlake.store.delivery.put_again import read_entry
from mqlake.store.delivery.transaction_messages import GROUP, ended_by
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.stored import Stored

_OPS_A_READ = 256
_AT_ONCE = 1000
"""Offsets that are counted in one step."""


class _Op(NamedTuple):
    """A message of the op queue; it is finished once the half messages before `until` are examined.

    All copies that were made before it was read are before `until`, whatever they are copies of.
    """

    queue_offset: int
    until: int
    ended: list[int]


class HalfQueue:
    """One queue of half messages, and the op queue beside it.

    Attributes:
        position: queue offset of the first half message that is not finished.
        ended: queue offsets of half messages that have ended, as long as they matter.
    """

    def __init__(
        self,
        log: OwnedCommitLog,
        queues: OwnedQueues,
        offsets: ConsumerOffsetTable,
        queue_id: int,
    ) -> None:
        self._log, self._queues, self._offsets = log, queues, offsets
        self.queue_id = queue_id
        self.position = self._start(HALF_TOPIC)
        self.ended: set[int] = set()
        self._ops: deque[_Op] = deque()
        self._ops_read = self._start(OP_TOPIC)
        self._kept = AfterFlush[tuple[int, int]]()
        self._last = self.position, self._ops_read

    @property
    def end(self) -> int:
        """Queue offset after the last half message that has been dispatched."""
        return self._queues.max_offset(HALF_TOPIC, self.queue_id)

    def count_waiting(self) -> Generator[None, None, int]:
        """Return how many half messages have not ended, a bit at a time.

        Copies of those that were asked about are included.
        """
        ended = 0
        for number, offset in enumerate(list(self.ended)):
            ended += offset >= self.position
            if number % _AT_ONCE == 0:
                yield
        return max(0, self.end - self.position - ended)

    def half(self, queue_offset: int) -> Stored | None:
        """Return a half message, None if there is no good record."""
        found = list(self._records(HALF_TOPIC, queue_offset, 1))
        return found[0][1] if found else None

    def read_ops(self) -> None:
        """Read the op messages that arrived since the last call."""
        end = self._queues.max_offset(OP_TOPIC, self.queue_id)
        while self._ops_read < end:
            start = max(self._ops_read, self._queues.min_offset(OP_TOPIC, self.queue_id))
            stop = min(start + _OPS_A_READ, end)
            for queue_offset, stored in self._records(OP_TOPIC, start, stop - start):
                ended = self._before(stored.record) if stored else []
                self.ended.update(ended)
                self._ops.append(_Op(queue_offset, self.end, ended))
                # Step by step: op messages that the disk cannot read now are read by the next call.
                self._ops_read = queue_offset + 1
            self._ops_read = stop

    def finish_first(self) -> None:
        """Note that the half message at `position` is finished."""
        self.position += 1

    def skip_removed(self) -> None:
        """Skip half messages that retention has removed."""
        first = self._queues.min_offset(HALF_TOPIC, self.queue_id)
        self.position = max(self.position, first)

    def forget_done(self) -> None:
        """Drop the op messages that no half message can need any more; note how far all is
        finished.
        """
        while self._ops and self._ops[0].until <= self.position:
            self.ended.difference_update(self._ops.popleft().ended)
        op_position = self._ops[0].queue_offset if self._ops else self._ops_read
        if (self.position, op_position) != self._last:
            self._last = self.position, op_position
            self._kept.add(self._log.end, self._last)

    def keep(self) -> None:
        """Commit the offsets up to which everything is durable."""
        kept = self._kept.take(self._log.flushed)
        if kept is not None:
            self._offsets.commit(GROUP, HALF_TOPIC, self.queue_id, kept[0])
            self._offsets.commit(GROUP, OP_TOPIC, self.queue_id, kept[1])

    def _before(self, op: Record) -> list[int]:
        """Return the half messages that an op message ends, without later ones, which a forged op
        message may name.

        Some of the earliest may have been removed by now.
        """
        ended = sorted(at for at in set(ended_by(op)) if at < self.end)
        low, high = 0, len(ended)
        if ended and self._is_before(ended[-1], op):
            return ended
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._is_before(ended[middle], op) else (low, middle)
        return ended[:low]

    def _is_before(self, queue_offset: int, op: Record) -> bool:
        data = self._queues.entries(HALF_TOPIC, self.queue_id, queue_offset, 1)
        return not data or QueueEntry(*ENTRY.unpack(data)).physical_offset < op.physical_offset

    def _start(self, topic: str) -> int:
        known = self._offsets.query(GROUP, topic, self.queue_id)
        if known is None:
            return self._queues.min_offset(topic, self.queue_id)
        return min(known, self._queues.max_offset(topic, self.queue_id))

    def _records(self, topic: str, start: int, count: int) -> Iterator[tuple[int, Stored | None]]:
        data = self._queues.entries(topic, self.queue_id, start, count)
        for number, entry in enumerate(ENTRY.iter_unpack(data)):
            yield start + number, read_entry(self._log, QueueEntry(*entry))
