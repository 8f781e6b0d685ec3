"""Derive where batch consume queues end: `recovery_queues`, for units.

Upstream: `BatchConsumeQueue.recover`, `truncateDirtyLogicFiles`.
"""

from __future__ import annotations

from mqlake.formats import batch_consume_queue
from mqlake.formats.batch_consume_queue import BatchQueueUnit
from mqlake.store.dispatch.batch_units import batch_unit, properties_at
from mqlake.store.incarnations.restarts import Position
from mqlake.store.log.scan import head_at
from mqlake.store.queues.owned_queue import MOST_BLANKS
from mqlake.store.recovery.queue_bytes import FoundQueue
from mqlake.store.recovery.recovery_queues import QueueBegin, QueueRecovery

_CHUNK = 64


class BatchQueueRecovery(QueueRecovery):
    """Checks the units in files, as `QueueRecovery` checks entries.

    The end of a queue is the number of its units, not a queue offset.
    """

    def _find_end_before(self, queue: FoundQueue, first: int) -> tuple[FoundQueue, int, bool]:
        end = self._find_end(queue)
        reached = self._offset_at(queue, end)
        if reached == first:
            return queue, end, False
        if self._start > self._log.min_offset:
            return queue, end, True
        # All of the log is dispatched: these units belong to removed records.
        if 0 <= first - reached <= MOST_BLANKS:
            return queue, end, False
        return queue._replace(bases=()), 0, False

    def begin(self, queue: FoundQueue) -> QueueBegin | None:
        if self._files.entry(queue, queue.first) is None:
            return None
        unit = batch_consume_queue.decode(self._files.read(queue, queue.first, queue.first + 1))
        if not self._is_right_unit(queue, unit):
            return None
        return QueueBegin(queue[:2], unit.base_offset, unit.physical_offset)

    def _position(self, queue: FoundQueue, place: int) -> Position | None:
        if self._files.entry(queue, place) is None:
            return None
        unit = batch_consume_queue.decode(self._files.read(queue, place, place + 1))
        return Position(unit.physical_offset, unit.base_offset)

    def _offset_at(self, queue: FoundQueue, end: int) -> int:
        """Return the queue offset after so many units of a queue."""
        if end == queue.first:
            return 0
        return batch_consume_queue.decode(self._files.read(queue, end - 1, end)).end_offset

    def _place(self, first: int, end: int) -> int:
        del first
        return end

    def _find_end(self, queue: FoundQueue) -> int:
        stop = self._files.written_end(queue)
        while stop > queue.first:
            first = max(queue.first, stop - _CHUNK)
            units = batch_consume_queue.UNIT.iter_unpack(self._files.read(queue, first, stop))
            found = [BatchQueueUnit(*unit) for unit in units]
            for number in range(len(found) - 1, -1, -1):
                if self._is_right_unit(queue, found[number]):
                    return first + number + 1
            stop = first
        return queue.first

    def _is_right_unit(self, queue: FoundQueue, unit: BatchQueueUnit) -> bool:
        """Return whether a unit's record is this batch, or was removed."""
        offset = unit.physical_offset
        if not batch_consume_queue.is_written(unit) or offset >= self._start:
            return False
        if self._incarnations.is_dead(queue.topic, offset):
            return False
        if offset < self._log.min_offset:
            return True
        head = head_at(self._log, offset)
        if head is None or (head.topic.decode(), head.queue_id) != queue[:2]:
            return False
        entry = offset, head.size, unit.tags_code
        properties = properties_at(self._log, offset)
        wanted = batch_unit(entry, head.store_timestamp, head.queue_offset, properties)
        return unit._replace(compacted_offset=wanted.compacted_offset) == wanted
