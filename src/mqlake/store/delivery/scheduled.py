"""Deliver delayed messages when they are due.

Upstream: `ScheduleMessageService`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from mqlake.formats.consume_queue import (
    ENTRY,
    SCHEDULE_TOPIC,
    QueueEntry,
    delivery_time,
    parse_delay_levels,
)
from mqlake.formats.topic_names import WAITING
from mqlake.storage.clock import Clock
from mqlake.store.config.delay_offsets import DelayOffsetTable
from mqlake.store.delivery.after_flush import AfterFlush
from mqlake.store.delivery.put_again import read_entry, real_queue
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.services import Service
from mqlake.store.settings import StoreSettings
from mqlake.store.stored import message_of

_INTERVAL = 100
_STEPS, _MOST_MESSAGES, _MOST_BYTES = 40, 25, 1 << 20
"""Steps each time, and what is put in each."""

_log = logging.getLogger(__name__)


class ScheduledMessages:
    """The delayed messages of one live store. For the store's thread.

    A message is put to its own topic at least once: after a crash, those since the last write of
    `config/delayOffset.json` are put again. That file never marks a message as delivered that a
    power loss would take back.

    Attributes:
        dropped: messages that could not be delivered: removed by retention, or set aside.

    Args:
        offsets: the delivery progress of each level.
        redelivery: puts a message as it is, whatever delay its properties ask for.

    Raises:
        FormatError: `messageDelayLevel` is not a list of delays.
    """

    def __init__(
        self,
        log: OwnedCommitLog,
        queues: OwnedQueues,
        offsets: DelayOffsetTable,
        redelivery: Redelivery,
        settings: StoreSettings,
        clock: Clock,
    ) -> None:
        self._log, self._queues, self._offsets = log, queues, offsets
        self._redelivery, self._clock = redelivery, clock
        self._delays = parse_delay_levels(settings.message_delay_level)
        self._turn = 0
        self.dropped = 0
        self.begin()

    def begin(self) -> None:
        """Continue where the table says, whichever broker has written it."""
        # Levels that `messageDelayLevel` no longer has may have messages; upstream never delivers
        # them.
        waiting = {queue_id + 1 for queue_id in self._queues.ids(SCHEDULE_TOPIC)}
        self._levels = sorted(waiting.union(range(1, len(self._delays) + 1)))
        self._next = {level: self._start(level) for level in self._levels}
        self._delivered = {level: AfterFlush[int]() for level in self._levels}
        self._report_dropped_levels()

    def _report_dropped_levels(self) -> None:
        for level in self._levels[len(self._delays) :]:
            first = max(self._next[level], self._queues.min_offset(SCHEDULE_TOPIC, level - 1))
            if count := self._queues.max_offset(SCHEDULE_TOPIC, level - 1) - first:
                _log.warning(
                    "messageDelayLevel ends with level %d; messages of level %d that wait, and are "
                    "delivered at the time that they were given: %d",
                    len(self._delays),
                    level,
                    count,
                )

    def services(self) -> list[Service]:
        """Return a service that delivers at RocketMQ's interval."""

        return [Service(_INTERVAL, self._some, "delayedMessages")]

    def _some(self) -> Iterator[None]:
        for _ in range(_STEPS):
            before = sum(self._next.values())
            self.deliver()
            if sum(self._next.values()) == before:
                break
            yield

    def deliver(self, most: int = _MOST_MESSAGES) -> int:
        """Put the messages that are due, at most `most`; return how many.

        A level stops at a message that is refused for now; the next call tries it again. Each call
        begins with another level, so that none must wait for the others.
        """
        self.keep()
        now, count = self._clock.milliseconds(), 0
        levels = [*self._levels[self._turn :], *self._levels[: self._turn]]
        self._turn = (self._turn + 1) % len(levels)
        for level in levels:
            if count < most:
                count += self._deliver(level, now, most - count)
        return count

    def keep(self) -> None:
        """Note as delivered what is durable; to be called before the table is written."""
        for level, delivered in self._delivered.items():
            offset = delivered.take(self._log.flushed)
            if offset is not None:
                self._offsets.set(level, offset)

    def next_due(self) -> int | None:
        """Return when the next message is due (ms), None while no message waits.

        Messages that are put later may be due earlier.
        """
        times = (self._next_due(level) for level in self._levels)
        return min((time for time in times if time is not None), default=None)

    def _next_due(self, level: int) -> int | None:
        entries = self._entries(level, 1)
        if not entries:
            return None
        now = self._clock.milliseconds()
        return now if self._is_due(level, entries[0], now) else entries[0].tags_code

    def _start(self, level: int) -> int:
        """Return where a level continues: within its queue, whatever the table says."""
        known = self._offsets.get(level) or 0
        return min(known, self._queues.max_offset(SCHEDULE_TOPIC, level - 1))

    def _entries(self, level: int, count: int) -> list[QueueEntry]:
        """Return the next entries of a level; those that retention removed are skipped."""
        start = self._next[level]
        if start >= self._queues.max_offset(SCHEDULE_TOPIC, level - 1):
            return []
        first = self._queues.min_offset(SCHEDULE_TOPIC, level - 1)
        if first > start:
            self.dropped += first - start
            start = self._next[level] = first
        data = self._queues.entries(SCHEDULE_TOPIC, level - 1, start, count)
        return [QueueEntry(*entry) for entry in ENTRY.iter_unpack(data)]

    def _is_due(self, level: int, entry: QueueEntry, now: int) -> bool:
        if entry.tags_code <= now:
            return True
        # Later than any message of this level can be: the clock went back since it was put.
        if level <= len(self._delays):
            return entry.tags_code > delivery_time(level, now, self._delays)
        stored = read_entry(self._log, entry)
        return stored is None or stored.record.store_timestamp > now

    def _deliver(self, level: int, now: int, most: int) -> int:
        count = size = 0
        entries = self._entries(level, most)
        first = self._next[level]
        try:
            for entry in entries:
                if size > _MOST_BYTES or not self._is_due(level, entry, now):
                    break
                is_done = self._deliver_one(level, entry)
                if is_done is None:
                    break
                self._next[level] += 1
                count += is_done
                size += entry.size
        finally:  # Also if the disk cannot read the next one.
            if first != self._next[level]:
                self._delivered[level].add(self._log.end, self._next[level])
        return count

    def _deliver_one(self, level: int, entry: QueueEntry) -> bool | None:
        """Return whether a message was put; None if it is to be tried again."""
        redelivery, set_aside = self._redelivery, self._redelivery.set_aside
        stored = read_entry(self._log, entry)
        if stored is None:
            redelivery.note_missing(SCHEDULE_TOPIC, level - 1, self._next[level])
        else:
            target = real_queue(stored.record.properties)
            if target is not None and redelivery.drops(target[0], stored.record):
                return False
            message = None
            if target is not None and target[0] not in WAITING:
                flags = stored.record.sys_flag
                message = message_of(stored.record, *target, stored.properties, flags)
            if not redelivery.settle(message, stored, "it does not contain its target"):
                return None
        is_put = redelivery.set_aside == set_aside
        self.dropped += not is_put
        return is_put
