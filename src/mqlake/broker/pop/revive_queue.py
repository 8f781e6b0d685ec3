"""One queue of a revive topic: the check points that wait in it."""

from __future__ import annotations

import logging
from typing import NamedTuple

from mqlake.broker.pop.check_points import REVIVE_GROUP, Ack, CheckPoint, Key, read
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.pop_counts import ACK, CHECK_POINT, ReviveBehind
from mqlake.formats.record import Record
from mqlake.remoting.slices import Job
from mqlake.store.port import AfterFlush

_MOST_A_READ = 16
_MOST_READS = 256
_MOST_BYTES = 1 << 18
_LONGEST_WAIT = 60_000
_SKIPPED = 512
"""Check points that are not due yet, and are skipped in one step."""

_log = logging.getLogger(__name__)


class _Point(NamedTuple):
    """A check point that waits for its acknowledgements until `due` (ms)."""

    point: CheckPoint
    due: int
    revive_offset: int


class ReviveQueue:
    """The check points of one queue that are not finished, in its order."""

    def __init__(
        self, state: BrokerState, revive_topic: ReviveTopic, topic: str, queue_id: int
    ) -> None:
        self._store, self._revive_topic = state.store, revive_topic
        self._topic, self._queue_id = topic, queue_id
        self._offsets = self._store.config.consumer_offsets
        self._counts = state.pop_counts.read
        self._points: dict[Key, _Point] = {}
        self._kept = AfterFlush[int]()
        self._done = self._begin()
        self._next = self._done + 1

    def _begin(self) -> int:
        """Return the offset of the last finished message, -1 without one.

        As in upstream, this is the group's offset. If it is past the queue's end, the log is older
        than the table of offsets, and which of its check points are finished is not known: all are
        processed again, and messages are at most redelivered.
        """
        low, high = self._store.reads.queue(self._topic, self._queue_id)
        known = self._offsets.query(REVIVE_GROUP, self._topic, self._queue_id)
        if known is None:
            return low - 1
        if known >= high > low:
            _log.warning(
                "%s, queue %d: consumerOffset.json says %d, and the queue ends at %d: the log is "
                "older, so the check points from %d on are processed again",
                self._topic,
                self._queue_id,
                known,
                high,
                low,
            )
        return known if known < high else low - 1

    def read(self) -> Job[bool]:
        """Read what has arrived; return whether the end of the queue was reached."""
        for _ in range(_MOST_READS):
            found = self._store.reads.get(
                self._topic, self._queue_id, self._next, _MOST_A_READ, max_bytes=_MOST_BYTES
            )
            for record in found.records:
                self._take(read(record), record)
            if found.next_offset == self._next:
                return True
            self._next = found.next_offset
            yield
        return False

    def behind(self) -> ReviveBehind:
        """Return how much of the queue is not finished.

        Raises:
            DiskError: the queue cannot be read.
        """
        _, high = self._store.reads.queue(self._topic, self._queue_id)
        messages = max(0, high - self._done - 1)
        first = None
        if messages:
            first = self._store.reads.head_from(self._topic, self._queue_id, self._done + 1)
        return ReviveBehind(self._queue_id, messages, first.store_timestamp if first else 0)

    def _take(self, what: CheckPoint | Ack | None, record: Record) -> None:
        if what is not None:
            kind = CHECK_POINT if isinstance(what, CheckPoint) else ACK
            self._counts.add((what.group, what.topic, kind, str(self._queue_id)))
        if isinstance(what, CheckPoint):
            # It left the timer a second before its time. One with another time is damaged.
            due = min(what.revive_time, record.store_timestamp + _LONGEST_WAIT)
            self._points.pop(what.key, None)  # so that they are in the queue's order
            self._points[what.key] = _Point(what, due, record.queue_offset)
        elif what is not None and (found := self._points.get(what.key)) is not None:
            for offset in what.offsets:
                found.point.acknowledge(offset)

    def revive(self, until: int) -> Job[None]:
        """Revive the check points that expired before `until` (ms)."""
        for number, (key, found) in enumerate(list(self._points.items())):
            if found.due > until:
                if not number % _SKIPPED:
                    yield
                continue
            if not (yield from self._revive_topic.revive(found.point)):
                break  # The store accepts no messages now.
            del self._points[key]
            yield
        first = next(iter(self._points.values()), None)
        done = (self._next if first is None else first.revive_offset) - 1
        if done > self._done:
            self._kept.add(self._store.watermarks.end, done)
            self._done = done

    def commit(self) -> None:
        """Commit the offset before which all is finished, once the revived messages are durable."""
        done = self._kept.take(self._store.watermarks.flushed)
        if done is not None:
            self._offsets.commit(REVIVE_GROUP, self._topic, self._queue_id, done)
