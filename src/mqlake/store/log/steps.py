"""Read a growing commit log as columns, a window at a time, without searching past damage.

`SegmentScan` reads any bytes; this reads what this process, or one before it, appended, and stops
at the first bytes that are not a record: there the log ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Batch, Bytes, Window
from mqlake.dispatch.kernel import load
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.verdict import MORE
from mqlake.dispatch.window import SLACK, Buffers
from mqlake.formats import record
from mqlake.formats.record import Fault
from mqlake.storage.protocol import ReadableFile
from mqlake.store.log.record_rules import RecordRule
from mqlake.store.log.segments import CommitLog, Segment

_WINDOW = 4 << 20

_FIRST_WINDOW = 16 << 10
"""Enough for a tick, and for a store that is only read."""


_SIZE = 4
"""The size of a record's first field, in bytes."""


class Step(NamedTuple):
    """The result of reading one window of the log.

    Attributes:
        batch: its records, None without any. Overwritten by the step after the next.
        end: physical offset at which the next step starts.
        fault: why the log ends there; GOOD if it does not.
    """

    batch: Batch | None
    end: int
    fault: Fault


class LogSteps:
    """Describes the records of a log in ascending steps.

    Args:
        delay_levels: milliseconds of each delay level.
        index_tags: whether tags are also index keys, as from RocketMQ 5.5 on.
        across_gaps: continue with the next file after a missing one.
        rule: the requirement on records whose bytes may be damaged.
        is_arriving: the log is being copied: wait for the rest of its last record.

    Attributes:
        table: the queues of all records so far.
        delay_levels: i8[n], milliseconds of each delay level.
    """

    def __init__(
        self,
        log: CommitLog,
        delay_levels: tuple[int, ...],
        *,
        index_tags: bool,
        across_gaps: bool,
        rule: RecordRule | None = None,
        is_arriving: bool = False,
    ) -> None:
        self.table = QueueTable()
        self._log = log
        self.delay_levels = np.array(delay_levels, np.int64)
        self._index_tags, self._across_gaps = index_tags, across_gaps
        self._rule, self._is_arriving = rule, is_arriving
        self._buffers, self._others = Buffers(_FIRST_WINDOW), Buffers(_FIRST_WINDOW)
        self._kernel = load()

    def step(self, start: int, limit: int, *, check: bool = False) -> Step:
        """Return the records from a boundary on that start before `limit`, some of them.

        Args:
            limit: physical offset of the end of a record, or of the last file.
            check: the bytes may be damaged: check bodies, and the rule. This continues wherever
                RocketMQ's recovery would.
        """
        segment = self._log.segment_at(start)
        file = segment and self._log.file(segment)
        if segment is None or file is None:
            return Step(None, start, Fault.SHORT)
        self._buffers, self._others = self._others, self._buffers
        data_end = min(limit, segment.end)
        if data_end - start > self._buffers.window:
            self._buffers.grow(_WINDOW)
        length = min(self._buffers.window, data_end - start)
        buffer = self._bytes(segment, file, start - segment.base, length)
        window = Window(buffer, start, length, data_end - start, segment.end - start)
        walk = self._kernel.walk(window, 0, length, self._buffers.records, check_crc=check)
        rows, end, verdict = walk.rows, start + walk.at, walk.verdict
        if check:
            bad, fault = self._first_bad(window, file, segment.base, rows)
            if bad < rows:
                rows, verdict = bad, fault
                end = int(self._buffers.records["physical_offset"][rows])
        batch = self._describe(window, rows) if rows else None
        if verdict == MORE:
            return self._more(segment, file, data_end, batch, end)
        return self._judge(segment, window, batch, end, Fault(verdict))

    def _bytes(self, segment: Segment, file: ReadableFile, at: int, length: int) -> Bytes:
        """Return bytes of a file from a position on: those of its mapping, or a copy."""
        mapped = self._log.mapped(segment)
        if mapped is not None and at + length + SLACK <= len(mapped):
            return mapped[at:]
        data = self._buffers.data
        got = file.read_into(data.data[:length], at)
        data[got:length] = 0  # A file that was truncated must not end in what was read before.
        return data

    def _first_bad(
        self, window: Window, file: ReadableFile, base: int, rows: int
    ) -> tuple[int, Fault]:
        """Return the first row whose record ends the log, and why; `rows` if no record does."""
        records = self._buffers.records[:rows]
        bodies = np.flatnonzero(records["fault"])
        bad, fault = (int(bodies[0]), Fault.CRC) if len(bodies) else (rows, Fault.GOOD)
        if self._rule is not None:
            torn = self._rule.first_bad(window.buffer, window.base, records[:bad])
            bad, fault = (torn, Fault.TORN) if torn < bad else (bad, fault)
        if self._is_arriving and bad == rows > 0:
            end = int(records[-1]["physical_offset"]) + int(records[-1]["size"]) - base
            # A record whose last bytes have not arrived yet ends in a zero, and nothing follows it.
            if not file.read(end - 1, 1 + _SIZE).strip(b"\0"):
                return rows - 1, Fault.TORN
        return bad, fault

    def _describe(self, window: Window, rows: int) -> Batch:
        records = self._buffers.records[:rows]
        keys = self._kernel.describe(
            window.buffer,
            records,
            self._buffers.keys,
            self.table,
            self.delay_levels,
            hash_keys=True,
            index_tags=self._index_tags,
        )
        return Batch(window.buffer, window.base, records, self._buffers.keys[:keys], self.table)

    def _more(
        self,
        segment: Segment,
        file: ReadableFile,
        data_end: int,
        batch: Batch | None,
        end: int,
    ) -> Step:
        """Continue with a record that crosses the window's end, in a larger window if necessary."""
        if batch is None:
            at, stop = end - segment.base, data_end - segment.base
            fault, layout = record.check(file.view(), at, stop, end, crc=False)
            if layout is None:
                return Step(None, end, fault)
            self._buffers.grow(layout.size)
            self._others.grow(layout.size)
        return Step(batch, end, Fault.GOOD)

    def _judge(
        self, segment: Segment, window: Window, batch: Batch | None, end: int, fault: Fault
    ) -> Step:
        if fault is Fault.BLANK:
            following = self._log.segment_after(segment)
            if following and (following.base == segment.end or self._across_gaps):
                return Step(batch, following.base, Fault.GOOD)
            return Step(batch, end, fault)
        if fault in (Fault.OFFSET, Fault.TOPIC):
            # RocketMQ checks neither; without a valid queue there is no entry.
            data, at = window.buffer.data, end - window.base
            _, layout = record.check(data, at, window.length, crc=False)
            if layout is None:
                return Step(batch, end, fault)
            found = data[at : at + layout.size]
            if self._rule and self._rule.is_bad(end, found, layout.properties_length):
                return Step(batch, end, Fault.TORN)
            return Step(batch, end + layout.size, Fault.GOOD)
        return Step(batch, end, fault)
