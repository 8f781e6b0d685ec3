"""Read the revive topic: expired check points, and their acknowledgements.

Upstream: `PopReviveService`. Check points of an earlier process, or of RocketMQ, are handled too.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.broker.parts import Parts
from mqlake.broker.pop.check_points import REVIVE_GROUP, Ack, CheckPoint, Key, read
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.formats.record import Record
from mqlake.store.port import AfterFlush

_MOST_A_READ = 256
_MOST_READS = 16
_MOST_BYTES = 1 << 20
_LONGEST_WAIT = 60_000


class _Horizon(NamedTuple):
    """Acknowledgements due before `time` (ms) are before physical offset `log_end`."""

    time: int
    log_end: int


class _Point(NamedTuple):
    """A check point that waits for its acknowledgements until `due` (ms)."""

    point: CheckPoint
    due: int
    revive_offset: int


class Revival:
    """All queues of the revive topic."""

    def __init__(self, parts: Parts, revive_topic: ReviveTopic) -> None:
        self._store = parts.store
        count = max(1, parts.settings.revive_queue_num)
        self._queues = [_ReviveQueue(parts, revive_topic, number) for number in range(count)]
        self._horizon = _Horizon(0, 0)

    def look(self) -> None:
        """Revive what is due; called once a second.

        A check point waits until the timer has delivered everything that is due before the check
        point's time, and until all of that was read here.
        """
        horizon = self._horizon
        is_readable = self._store.watermarks.dispatched >= horizon.log_end
        for queue in self._queues:
            if queue.read() and is_readable:
                queue.revive(horizon.time)
            queue.commit()
        if is_readable:
            self._horizon = _Horizon(
                self._store.timers.delivered_before, self._store.watermarks.end
            )


class _ReviveQueue:
    """One queue of the revive topic."""

    def __init__(self, parts: Parts, revive_topic: ReviveTopic, queue_id: int) -> None:
        self._store, self._revive_topic, self._queue_id = parts.store, revive_topic, queue_id
        self._offsets = self._store.config.consumer_offsets
        self._points: dict[Key, _Point] = {}
        self._kept = AfterFlush[int]()
        # As in upstream: the offset of the last finished message.
        known = self._offsets.query(REVIVE_GROUP, revive_topic.topic, queue_id)
        self._done = -1 if known is None else known
        self._next = self._done + 1

    def read(self) -> bool:
        """Read what has arrived; return whether the end of the queue was reached."""
        for _ in range(_MOST_READS):
            found = self._store.reads.get(
                self._revive_topic.topic,
                self._queue_id,
                self._next,
                _MOST_A_READ,
                max_bytes=_MOST_BYTES,
            )
            for record in found.records:
                self._take(read(record), record)
            if found.next_offset == self._next:
                return True
            self._next = found.next_offset
        return False

    def _take(self, what: CheckPoint | Ack | None, record: Record) -> None:
        if isinstance(what, CheckPoint):
            # It left the timer a second before its time. One with another time is damaged.
            due = min(what.revive_time, record.store_timestamp + _LONGEST_WAIT)
            self._points[what.key] = _Point(what, due, record.queue_offset)
        elif what is not None and (found := self._points.get(what.key)) is not None:
            for offset in what.offsets:
                found.point.acknowledge(offset)

    def revive(self, until: int) -> None:
        """Revive the check points that expired before `until` (ms)."""
        for key, found in list(self._points.items()):
            if found.due > until:
                continue
            if not self._revive_topic.revive(found.point):
                break  # The store accepts no messages now.
            del self._points[key]
        waiting = (found.revive_offset for found in self._points.values())
        done = min(waiting, default=self._next) - 1
        if done > self._done:
            self._done = done
            self._kept.add(self._store.watermarks.end, done)

    def commit(self) -> None:
        """Commit the offset before which all is finished, once the revived messages are durable."""
        done = self._kept.take(self._store.watermarks.flushed)
        if done is not None:
            self._offsets.commit(REVIVE_GROUP, self._revive_topic.topic, self._queue_id, done)
