"""Deliver messages at their own delivery times.

Upstream: `TimerMessageStore`. Waiting messages are in TIMER_TOPIC; the wheel is built from it at
each start, and one position (`TimerPosition`) records what was delivered.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats.consume_queue import ENTRY, QueueEntry
from mqlake.formats.properties import CANCEL
from mqlake.formats.record import Record
from mqlake.formats.timer_checkpoint import TimerPosition
from mqlake.formats.timer_log import MAGIC_DEFAULT, TimerUnit
from mqlake.formats.topic_names import TIMER_TOPIC
from mqlake.metrics.counts import Counts, Histograms
from mqlake.storage.clock import Clock
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import read_entry, real_queue
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.timer_files import TimerFiles
from mqlake.store.delivery.timer_messages import (
    delivered,
    due_slot,
    roll_times,
    rolled,
)
from mqlake.store.delivery.timer_progress import TimerProgress
from mqlake.store.delivery.timer_wheel import TimerWheel
from mqlake.store.delivery.waiting_timers import WaitingTimers, topic_of
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.services import Service
from mqlake.store.settings import StoreSettings
from mqlake.store.stored import Stored

_INTERVAL = 50
_STEPS, _MOST_MESSAGES, _MOST_BYTES, _MOST_TAKEN_IN = 25, 20, 1 << 20, 100
"""Steps each time, and what is put and taken in in each."""
_QUEUE = 0
_DELAYS = (60, 600, 3600, 43_200, 86_400, 259_200)
"""Upper bounds, in seconds. Upstream: `DefaultStoreMetricsManager.getMetricsView`."""


class TimerMessages:
    """The timer messages of one live store. For the store's thread.

    A message is put to its own topic at least once, when its slot is over: after a crash, those
    since the last write of `config/timercheck` are put again. That file never marks a message as
    delivered that a power loss would take back.

    Attributes:
        dropped: messages that could not be delivered: removed by retention, or set aside.
        entered, delivered: how many messages began to wait, and were put to their topic, since the
            start, by topic.
        delays: seconds from when a message was made until its delivery time, of those that began to
            wait, by topic.
        delivered_before: milliseconds: of all messages that were in the queue at the last pass,
            those due before this time were delivered.

    Args:
        files: its checkpoint.
        redelivery: puts a message as it is, whatever delay its properties ask for.
    """

    def __init__(
        self,
        files: TimerFiles,
        log: OwnedCommitLog,
        queues: OwnedQueues,
        redelivery: Redelivery,
        settings: Current[StoreSettings],
        clock: Clock,
    ) -> None:
        self._log, self._queues = log, queues
        self._redelivery, self._settings, self._clock = redelivery, settings, clock
        self._files = files
        self.dropped = 0
        self.entered, self.delivered = Counts(), Counts()
        self.delays = Histograms(_DELAYS)
        self.delivered_before = 0
        self.begin()

    def begin(self) -> None:
        """Read the queue again, from the position of the checkpoint on."""
        self._waiting = WaitingTimers(self._settings.now.timer_precision_ms)
        self._progress = TimerProgress(self._files, self._bounded(self._files.wanted))
        self._read = self._progress.known.first_waiting
        self._scan_end = self._end

    def services(self) -> list[Service]:
        """Return the service that delivers."""

        return [Service(_INTERVAL, self._some, "timerMessages")]

    def _some(self) -> Iterator[None]:
        for _ in range(_STEPS):
            before = self._read
            if not self.deliver() and self._read == before:
                break
            yield

    def file_service(self) -> Service:
        """Return the service that writes the position."""
        return Service(
            lambda: self._settings.now.timer_flush_interval_ms, self._files.pending, "timerFiles"
        )

    def checkpoint(self) -> bytes:
        """Return the checkpoint, without the padding of its page, for a slave."""
        return self._files.encoded()

    def follow(self, checkpoint: bytes) -> None:
        """Adopt a master's delivery progress; it counts once this store delivers itself.

        Raises:
            FormatError: the bytes are not a checkpoint.
        """
        self._files.follow(checkpoint)

    @property
    def waiting(self) -> int:
        """How many messages wait in the wheel."""
        return self._wheel.count

    @property
    def behind(self) -> int:
        """How many messages of the queue are not yet in the wheel."""
        return self._end - self._read

    @property
    def next_offset(self) -> int:
        """Queue offset of the first message that is not yet in the wheel."""
        return self._read

    @property
    def waiting_by_topic(self) -> dict[str, int]:
        """How many messages wait for each topic."""
        return self._waiting.by_topic

    def overdue(self) -> int:
        """Return how many messages of the wheel are due."""
        return self._wheel.count_before(self._clock.milliseconds() - self._wheel.precision + 1)

    def slots(self) -> list[int]:
        """Return the beginnings of the slots for which messages wait, in any order."""
        return self._wheel.slots()

    def waiting_in(self, time: int) -> int:
        """Return how many messages wait for the slot of a time (ms)."""
        return self._wheel.count_in(time)

    def deliver(self, most: int = _MOST_MESSAGES) -> int:
        """Put the messages that are due, at most `most`; return how many were put or skipped.

        It stops at a message that is refused for now; the next call tries that one again.
        """
        self.keep()
        before = self._read
        self._take_in()
        if not self._is_caught_up:
            return 0
        now, waiting = self._clock.milliseconds(), self._wheel.count
        try:
            count = self._deliver(now, most)
        finally:  # Also if the disk cannot read the next one.
            if self._wheel.count != waiting or self._read != before:
                self._note(now)
        if self.behind == 0:
            self.delivered_before = self._done_before(now)
        return count

    def keep(self) -> None:
        """Note as delivered what is durable; to be called before the position is written."""
        self._progress.keep(self._log.flushed)

    def close(self) -> None:
        """Write the position, and what RocketMQ needs to continue; everything before it is durable.

        Raises:
            DiskError: the disk failed.
        """
        self.keep()
        is_known = self._is_caught_up and self._progress.is_kept
        units = list(self._units()) if is_known else None
        self._files.close(units, self._wheel.slot_of(self._clock.milliseconds()))

    def next_due(self) -> int | None:
        """Return when the next message is due (ms), None while no message waits."""
        first = self._wheel.first()
        return first.slot + self._wheel.precision if first else None

    @property
    def _wheel(self) -> TimerWheel:
        return self._waiting.wheel

    # The position

    @property
    def _end(self) -> int:
        return self._queues.max_offset(TIMER_TOPIC, _QUEUE)

    @property
    def _is_caught_up(self) -> bool:
        """Return whether everything that existed at the start has been examined.

        Before that, messages that were put again cannot be distinguished from those still to put.
        """
        return self._read >= self._scan_end

    def _bounded(self, found: TimerPosition) -> TimerPosition:
        """Return a position within the queue, whatever the file says."""
        first, end = self._queues.min_offset(TIMER_TOPIC, _QUEUE), self._end
        taken_in = min(max(found.taken_in, 0), end)
        start = max(first, min(found.first_waiting, taken_in))
        return found._replace(taken_in=taken_in, first_waiting=start)

    def _done_before(self, now: int) -> int:
        first = self._wheel.first()
        slot = self._wheel.slot_of(now)
        return min(slot, first.slot) if first else slot

    def _note(self, now: int) -> None:
        """Let the position wait until everything that was put is durable."""
        first, least = self._wheel.first(), self._wheel.least_offset()
        done_before = self._done_before(now)
        is_in_slot = first is not None and first.slot == done_before
        position = TimerPosition(
            done_before,
            first.queue_offset if first and is_in_slot else 0,
            self._read,
            self._read if least is None else least,
        )
        self._progress.note(position, self._log.end)

    # From the queue into the wheel

    def _take_in(self) -> None:
        """Add the messages that arrived since the last call to the wheel."""
        first = self._queues.min_offset(TIMER_TOPIC, _QUEUE)
        if first > self._read:
            self.dropped += first - self._read
            self._read = first
        count = min(self._end - self._read, _MOST_TAKEN_IN)
        if count <= 0:
            return
        size = 0
        for entry in self._entries(self._read, count):
            self._take_in_one(self._read, entry)
            self._read += 1
            size += entry.size
            if size >= _MOST_BYTES:
                break

    def _take_in_one(self, queue_offset: int, entry: QueueEntry) -> None:
        stored = read_entry(self._log, entry)
        slot = due_slot(stored.record.properties) if stored else None
        if stored is None:
            self._note_missing(queue_offset)
            return
        if slot is None:
            # It does not contain its time: it is set aside in its turn, before all others.
            if not self._progress.was_delivered(queue_offset, 0):
                self._add(queue_offset, stored.record, None, 0)
            return
        if self._progress.was_delivered(queue_offset, self._wheel.slot_of(slot)):
            return
        record = stored.record
        if queue_offset < self._scan_end and roll_times(record.properties):
            self._waiting.discard_original(record, slot)
        self._add(queue_offset, record, slot, self._wake_time(record, slot))

    def _add(self, queue_offset: int, record: Record, slot: int | None, time: int) -> None:
        self._waiting.add(queue_offset, record, slot, time)
        # It arrived since the start, and is not one that was put again.
        if queue_offset >= self._scan_end and not roll_times(record.properties):
            topic = topic_of(record)
            self.entered.add((topic,))
            if slot is not None:
                self.delays.add((topic,), max(0, slot - record.born_timestamp) // 1000)

    def _wake_time(self, record: Record, slot: int) -> int:
        """Return when a message is to be examined: when it is due, or must be put again.

        Retention removes old messages. So that no message waits too long in one place, it is put
        again after `timerRollWindowSlot`; after half of that, if otherwise less than a third of it
        would remain.
        """
        window = self._settings.now.timer_roll_window_slot * self._wheel.precision
        rest = slot - record.store_timestamp - window
        if rest < 0:
            return slot
        wait = window // 2 if rest < window // 3 else window
        return record.store_timestamp + wait

    # From the wheel to the consumers

    def _deliver(self, now: int, most: int) -> int:
        count, begin = 0, self._log.end
        while count < most and (first := self._wheel.first()) is not None:
            if self._log.end - begin >= _MOST_BYTES:
                break
            if first.slot + self._wheel.precision > now:
                break
            if not self._settle(first.slot, first.queue_offset, now):
                break
            self._waiting.pop()
            count += 1
        return count

    def _settle(self, slot: int, queue_offset: int, now: int) -> bool:
        """Put a message whose time has come; return whether it is finished."""
        entry = next(self._entries(queue_offset, 1), None)
        stored = read_entry(self._log, entry) if entry else None
        if stored is None:
            self._note_missing(queue_offset)
            return True
        is_done = self._settle_stored(stored, slot, now)
        if is_done:
            self._waiting.note_end(stored.record)
        return is_done

    def _settle_stored(self, stored: Stored, slot: int, now: int) -> bool:
        record = stored.record
        out = due_slot(record.properties)
        if out is None:
            return self._put(None, stored, "it does not contain its delivery time")
        target = real_queue(record.properties)
        if self._waiting.is_cancelled(record, out) or (
            target is not None and self._redelivery.drops(target[0], record)
        ):
            return True
        if self._wheel.slot_of(out) != slot:
            return self._roll(stored, out, now)
        if CANCEL in record.properties:
            return True
        is_done = self._put(delivered(stored, now), stored, "it does not contain its target")
        if is_done:
            self.delivered.add((topic_of(record),))
        return is_done

    def _put(self, message: Message | None, source: Stored, why: str = "") -> bool:
        """Put a message, or set its source aside; return whether the source is finished."""
        set_aside = self._redelivery.set_aside
        is_done = self._redelivery.settle(message, source, why)
        self.dropped += self._redelivery.set_aside - set_aside
        return is_done

    def _note_missing(self, queue_offset: int) -> None:
        self.dropped += 1
        self._redelivery.note_missing(TIMER_TOPIC, _QUEUE, queue_offset)

    def _roll(self, stored: Stored, out: int, now: int) -> bool:
        is_done = self._put(rolled(stored, now), stored)
        if is_done:
            self._waiting.note_put_again(stored.record, out)
        return is_done

    # For RocketMQ

    def _units(self) -> Iterator[TimerUnit]:
        """Yield the entries of RocketMQ's timer log for the waiting messages, by queue offset.

        The last one is the last message of the queue, whether it waits or not: RocketMQ continues
        after it. Its slot is then over, and no other message has its place in RocketMQ's wheel.
        """
        waiting = self._wheel.all()
        last = self._read - 1
        if waiting and waiting[-1][0] != last:
            earliest = min(slot for _, slot in waiting)
            waiting.append((last, earliest - self._wheel.precision))
        flags = self._waiting.flags()
        entries, start = list[tuple[int, int, int]](), 0
        for queue_offset, slot in waiting:
            if queue_offset >= start + len(entries):
                data = self._queues.entries(TIMER_TOPIC, _QUEUE, queue_offset, _MOST_TAKEN_IN)
                entries, start = list(ENTRY.iter_unpack(data)), queue_offset
            if not entries:
                continue
            physical_offset, size, _ = entries[queue_offset - start]
            kind = MAGIC_DEFAULT | flags.get(queue_offset, 0)
            yield TimerUnit(slot, physical_offset, size, kind)

    def _entries(self, start: int, count: int) -> Iterator[QueueEntry]:
        data = self._queues.entries(TIMER_TOPIC, _QUEUE, start, count)
        return (QueueEntry(*entry) for entry in ENTRY.iter_unpack(data))
