"""Derive consume queues and index from the log as it grows (docs/live-store.md, "Dispatch").

Upstream: `ReputMessageService`, `CommitLogDispatcherBuildConsumeQueue`,
`CommitLogDispatcherBuildIndex`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.digest import load_digester
from mqlake.dispatch.kernel import load
from mqlake.errors import StoreError
from mqlake.formats.consume_queue import ENTRY, ENTRY_SIZE, parse_delay_levels
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.store.dispatch.arriving_starts import ArrivingRun, ArrivingStarts
from mqlake.store.dispatch.batch_units import batch_units
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.light.light_queues import LightQueues
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.log.segments import CommitLog
from mqlake.store.log.steps import LogSteps
from mqlake.store.queues.owned_batch_queue import OwnedBatchQueue
from mqlake.store.queues.owned_queues import OwnedQueues, Queue

Arrived = Callable[[str, int, int], None]
"""Called for a queue that got messages: topic, queue id, the queue's new max offset."""


class Last(NamedTuple):
    """The last record of a kind: its physical offset (-1 without one) and store timestamp (ms)."""

    physical_offset: int
    store_timestamp: int


NONE = Last(-1, 0)


@dataclass(frozen=True)
class Dispatched:
    """How far a log is dispatched.

    Attributes:
        position: physical offset before which everything is dispatched; a record starts there.
        last_record, last_queued: the last ones that were dispatched.
        count, entries: the numbers of dispatched records, and of written queue entries.
        refused: records without a queue entry, because their queue offset is implausible.
        dead: records without a queue entry, because their topic was deleted.
    """

    position: int = 0
    last_record: Last = NONE
    last_queued: Last = NONE
    count: int = 0
    entries: int = 0
    refused: int = 0
    dead: int = 0


_OF_UNITS = ["physical_offset", "size", "tags_code", "store_timestamp", "queue_offset"]


class _TimeIsUpError(Exception):
    """The time of a step is over. The next call does the rest, and skips what was done."""


class Dispatcher:
    """Dispatches what was appended, in order, each record once. For one thread.

    Args:
        incarnations: records that are dead according to this table get no queue entries. They get
            index entries as in RocketMQ: the index is a function of the log.
        dialect: decides which keys are indexed.
        message_delay_level: the setting of that name.
        done: how far the log is dispatched already.
        across_gaps: whether the log continues after a missing file.
        arrived: called for each queue that got messages, if not None.
        on_restart: called, while `expects_restarts`, with a topic and the physical offset before
            which its records are dead, since queues of it begin with queue offset 0 again: it was
            deleted and created again where they were put. It must change `incarnations`. Otherwise
            such records get no entries.

    Attributes:
        expects_restarts: whether a topic may have been deleted and created again where its records
            were put.
        position, last_record, last_queued, count, entries, refused, dead: see `Dispatched`.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: OwnedQueues,
        index: OwnedIndex,
        incarnations: Incarnations,
        *,
        dialect: Dialect,
        message_delay_level: str,
        done: Dispatched = Dispatched(),
        across_gaps: bool = False,
        arrived: Arrived | None = None,
        on_restart: Callable[[str, int], object] | None = None,
    ) -> None:
        self.position = done.position
        self.last_record, self.last_queued = done.last_record, done.last_queued
        self.count, self.entries = done.count, done.entries
        self.refused, self.dead = done.refused, done.dead
        self._arrived, self._on_restart = arrived, on_restart
        self.expects_restarts = False
        self._arriving = ArrivingStarts(queues)
        self._incarnations = incarnations
        self._until = inf
        levels = parse_delay_levels(message_delay_level)
        index_tags = dialect is Dialect.V5_5
        self._steps = LogSteps(log, levels, index_tags=index_tags, across_gaps=across_gaps)
        self._own_log = log if isinstance(log, OwnedCommitLog) else None
        self._digester = (
            load_digester(self._steps.delay_levels, index_tags=index_tags)
            if self._own_log is not None
            else None
        )
        self._all_queues, self._index = queues, index if index.is_used else None
        self._light: LightQueues | None = None
        self._log = log
        self._kernel = load()
        # The queues by their numbers in the table of the batches.
        self._table, self._queues = self._steps.table, dict[int, Queue]()

    @property
    def done(self) -> Dispatched:
        """How far the log is dispatched."""
        last = self.last_record, self.last_queued
        return Dispatched(self.position, *last, self.count, self.entries, self.refused, self.dead)

    def skip_to(self, physical_offset: int) -> None:
        """Continue at a physical offset: everything before it is dispatched, or does not exist."""
        self.position = physical_offset

    def set_restarts_expected(self, *, are_expected: bool) -> None:
        """Expect, or no longer expect, that topics were deleted and created again elsewhere."""
        self.expects_restarts = are_expected

    def derive_light_queues(self, light: LightQueues) -> None:
        """Derive light queues from the same records from now on."""
        self._light = light

    def forget_queues(self) -> None:
        """Look up queues again: the kind of some has changed, or their topic was deleted."""
        self._queues = {}

    def run(self, limit: int, until: float = inf) -> int:
        """Dispatch all records that end at or before `limit`; return how many.

        Args:
            limit: a physical offset. A master's confirm offset may be inside a record.
            until: a time of `perf_counter` at which it stops early; each call makes progress.

        Raises:
            DiskError: there is no room, or the disk failed; the next call continues.
            StoreError: the next bytes of the log are not a record.
        """
        count, self._until = self.count, until
        while self.position < limit:
            try:
                if not self._step_small(limit) and not self.step(limit):
                    break
            except _TimeIsUpError:
                break
            if perf_counter() >= until:
                break
        self._until = inf
        return self.count - count

    def step(self, limit: int, index_from: int = 0, index_skip: int = 0) -> bool:
        """Dispatch some of the records that end at or before `limit`.

        Args:
            index_from: physical offset of the first record whose keys are inserted.
            index_skip: the number of keys of that record that are already in the index.

        Returns:
            False if none was dispatched: at a file's end without a next file yet, if the next
            record ends after `limit`, or if the next step reads a record longer than a window.

        Raises:
            DiskError: as for `run`.
            StoreError: as for `run`.
        """
        step = self._steps.step(self.position, limit)
        if step.batch is not None:
            self.take(step.batch, index_from, index_skip)
        start, self.position = self.position, step.end
        if step.fault is not Fault.GOOD and not self._crosses(step.end, limit):
            raise StoreError(
                f"the log has no record at physical offset {step.end}: {FAULT_REASONS[step.fault]}"
            )
        return step.end > start or step.batch is not None

    def _crosses(self, start: int, limit: int) -> bool:
        """Return whether a whole record starts here and ends after `limit`."""
        log = self._own_log
        if log is None or limit >= log.end:
            return False
        fault, layout = log.check(start, crc=False)
        return fault is Fault.GOOD and layout is not None and start + layout.size <= log.end

    def _step_small(self, limit: int) -> bool:
        """Dispatch all records before `limit` if they are few, and in the last file.

        Raises:
            DiskError: as for `run`.
        """
        log, digester = self._own_log, self._digester
        if log is None or digester is None:
            return False
        if self._steps.table is not self._table:
            self._table, self._queues = self._steps.table, {}
        start = self.position
        found = digester.digest(log.array, log.base, start, limit, self._table)
        if found is None:
            return False
        if found.runs:
            if batches := self._append(digester.entries.data, found.runs):
                records = digester.records[: found.rows]
                self._append_units(
                    Batch(log.array, log.base, records, digester.keys[: found.keys], self._table),
                    batches,
                )
            self.last_queued = Last(*found.last_queued)
        if self._light is not None:
            records = digester.records[: found.rows]
            self._light.take(Batch(log.array, log.base, records, digester.keys[:0], self._table))
        if self._index is not None:
            if keys := found.keys:
                self._index.insert(
                    digester.hashes[:keys],
                    digester.offsets[:keys],
                    digester.times[:keys],
                    is_last=found.ends_with_key,
                )
            else:
                self._index.take_record()
        self.last_record = Last(*found.last)
        self.count += found.rows
        self.position = limit
        return True

    def take(self, batch: Batch, index_from: int = 0, index_skip: int = 0) -> None:
        """Dispatch records that were read already; `position` does not change.

        Args:
            index_from: as for `step`.
            index_skip: as for `step`.

        Raises:
            DiskError: as for `run`.
        """
        if batch.table is not self._table:
            self._table, self._queues = batch.table, {}
        self._queue(batch)
        if self._light is not None:
            self._light.take(batch)
        if self._index is not None:
            self._insert(self._index, batch, index_from, index_skip)
        last = batch.records[-1]
        self.last_record = Last(int(last["physical_offset"]), int(last["store_timestamp"]))
        self.count += len(batch.records)

    # Queues

    def _queue(self, batch: Batch) -> None:
        entries, starts, offsets = self._kernel.group(batch.records, len(batch.table))
        if not len(offsets):
            return
        numbers = np.flatnonzero(np.diff(starts))
        firsts = starts[numbers]
        # Neighbours of one queue whose offsets are not consecutive.
        breaks = np.diff(offsets) != 1
        breaks[firsts[1:] - 1] = False
        if breaks.any():
            edges = np.union1d(firsts, np.flatnonzero(breaks) + 1)
            numbers = np.searchsorted(starts, edges, "right") - 1
            firsts = edges
        ends = [*firsts[1:].tolist(), len(offsets)]
        columns = (numbers.tolist(), firsts.tolist(), ends, offsets[firsts].tolist())
        runs = list(zip(*columns, strict=True))
        if batches := self._append(entries.data, runs):
            self._append_units(batch, batches)
        queued = np.flatnonzero(batch.records["queue"] >= 0)[-1]
        last = batch.records[queued]
        self.last_queued = Last(int(last["physical_offset"]), int(last["store_timestamp"]))

    def _append(
        self, data: memoryview, runs: Sequence[Sequence[int]]
    ) -> dict[int, OwnedBatchQueue]:
        """Append to simple queues; return the other ones, by their numbers.

        Args:
            data: queue entries.
            runs: as in `Digest`.
        """
        batches: dict[int, OwnedBatchQueue] = {}
        if self.expects_restarts and self._on_restart is not None:
            self._notice_restarts(data, runs, self._on_restart)
        any_dead = bool(self._incarnations)
        for number, start, end, offset in runs:
            entries = data[start * ENTRY_SIZE : end * ENTRY_SIZE]
            if any_dead:
                dead = _dead(entries, self._incarnations.before(self._table[number][0].decode()))
                self.dead += dead
                if start + dead == end:
                    continue
                offset, entries = offset + dead, entries[dead * ENTRY_SIZE :]
            queue = self._queue_of(number)
            if isinstance(queue, OwnedBatchQueue):
                batches[number] = queue
                continue
            written = queue.append(offset, entries)
            self.entries += written
            if written == 0 and offset >= queue.end:
                self.refused += len(entries) // ENTRY_SIZE
            elif self._arrived is not None and written:
                self._arrived(queue.topic, queue.queue_id, queue.end)
            self._check_time(written)
        return batches

    def _notice_restarts(
        self,
        data: memoryview,
        runs: Sequence[Sequence[int]],
        on_restart: Callable[[str, int], object],
    ) -> None:
        if not any(offset == 0 for *_, offset in runs):
            return
        found = [ArrivingRun.of(self._table[run[0]], data, run) for run in runs]
        for topic, before in self._arriving.befores(found).items():
            if before > self._incarnations.before(topic):
                on_restart(topic, before)

    def _append_units(self, batch: Batch, queues: dict[int, OwnedBatchQueue]) -> None:
        """Append to batch consume queues; the records' properties are read from the log."""
        for number, queue in queues.items():
            rows = batch.records[batch.records["queue"] == number][_OF_UNITS].tolist()
            if before := self._incarnations.before(queue.topic):
                rows = [row for row in rows if row[0] >= before]
            written, refused = queue.append(batch_units(self._log, rows))
            self.entries += written
            self.refused += refused
            if self._arrived is not None and written:
                self._arrived(queue.topic, queue.queue_id, queue.end)
            self._check_time(written)

    def _check_time(self, written: int) -> None:
        # Each queue may need a file: creating thousands takes seconds.
        if written and self._until is not inf and perf_counter() >= self._until:
            raise _TimeIsUpError

    def _queue_of(self, number: int) -> Queue:
        queue = self._queues.get(number)
        if queue is None:
            name, queue_id = self._table[number]
            queue = self._queues[number] = self._all_queues.queue(name.decode(), queue_id)
        return queue

    # Index

    def _insert(self, index: OwnedIndex, batch: Batch, index_from: int, index_skip: int) -> None:
        records, keys = batch.records, batch.keys
        if int(records["physical_offset"][0]) < index_from:
            rows = records["physical_offset"] >= index_from
            keys = keys[rows[keys["record"]]]
            if not rows.any():
                return
        if len(keys):
            owners = keys["record"]
            offsets = records["physical_offset"][owners]
            skip = index_skip if index_skip and int(offsets[0]) == index_from else 0
            times = records["store_timestamp"][owners]
            is_last = int(owners[-1]) == len(records) - 1
            if skip < len(keys):
                # One call does everything or nothing: it is repeated if the disk refuses it.
                index.insert(keys["hash"][skip:], offsets[skip:], times[skip:], is_last=is_last)
                return
            if is_last:
                return
        index.take_record()


def _dead(entries: memoryview, before: int) -> int:
    """Return how many of the first entries point before a physical offset.

    Args:
        entries: queue entries, physical offsets ascending; at least one.
    """
    if not before or ENTRY.unpack_from(entries)[0] >= before:
        return 0
    offsets = np.frombuffer(entries, ">i8, >i4, >i8")["f0"]
    return int(np.searchsorted(offsets, before))
