"""Read the records of a stretch of the commit log (docs/dispatch.md)."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import numpy as np

from mqlake.dispatch.answers import SEARCH_ALLOWANCE, SEARCH_ALLOWANCE_RATE
from mqlake.dispatch.batch import Batch, Window
from mqlake.dispatch.gap import Gap
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.record_view import record_view
from mqlake.dispatch.verdict import MORE
from mqlake.dispatch.window import DEFAULT_WINDOW, Buffers, WindowReader, borrowed
from mqlake.formats import record
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.storage.protocol import ReadableFile

_JUDGEMENT_COST = 64 << 10
"""Cost, in bytes, of checking a candidate at a window's end whose body is not read."""

_HOLE_MARGIN = record.FRAME_SIZE
"""A record may begin with this many zeros, which belong to a hole of the file."""


class Want(enum.Enum):
    """Which columns a scan fills; the others have arbitrary values."""

    LOCATE = enum.auto()
    """The fields of the record's head, without properties, queue and keys."""
    EXPORT = enum.auto()
    """All columns except the key hashes: the KEY array stays empty."""
    DISPATCH = enum.auto()
    """All columns."""


class SegmentScan:
    """Read the records of one commit-log segment between two positions, in windows.

    Records that start in [start, end) belong to the scan, even if they end after `end`. Iterate
    over it once; then `start`, `stop`, `gaps` and `table` are complete. Positions are physical
    offsets, in bytes; `base` is the segment's first. Invalid bytes raise nothing.

    Args:
        file: the segment's file. A mapped file must not be cut during the scan.
        base: physical offset of the file's first byte.
        exact: `start` is a record boundary. Otherwise the scan begins at the first position with
            a matching magic number, physical offset, lengths and CRC. A message body may imitate
            these: only a preceding scan that stops exactly there proves the boundary.
        crc: check the CRC of bodies.
        limit: the log ends here; nothing from here on is read.
        window: bytes to read at a time. A longer record is still read whole.
    """

    def __init__(
        self,
        file: ReadableFile,
        base: int,
        start: int,
        end: int,
        *,
        exact: bool,
        crc: bool = True,
        want: Want = Want.DISPATCH,
        dialect: Dialect = Dialect.V5_5,
        delay_levels: Sequence[int] = DEFAULT_DELAY_LEVELS,
        limit: int | None = None,
        window: int = DEFAULT_WINDOW,
        kernel: Kernel | None = None,
    ) -> None:
        self.start = start
        """Start of the first record, or the boundary given with `exact`."""
        self.stop = start
        """Position after the last record or gap of the scan."""
        self.gaps: list[Gap] = []
        """Stretches without a valid record, ascending. Every byte between `start` and `stop` is in
        a record, in a gap, or in the blank record that ends a segment."""
        self.table = QueueTable()

        self._file, self._base = file, base
        self._segment_end = base + file.size
        self._data_end = self._segment_end if limit is None else min(limit, self._segment_end)
        self._end = max(start, min(end, self._data_end))
        self._exact = exact or start == base
        self._crc, self._want = crc, want
        self._index_tags = dialect is Dialect.V5_5
        self._delay_levels = np.array(delay_levels, np.int64)
        self._window = window
        self._allowance = SEARCH_ALLOWANCE
        self._kernel = kernel or load()

    def __iter__(self) -> Iterator[Batch]:
        with borrowed(self._window) as buffers:
            reader = WindowReader(self._file, self._base, self._data_end, buffers)
            yield from self._scan(reader, buffers)

    def _scan(self, reader: WindowReader, buffers: Buffers) -> Iterator[Batch]:
        if not self._exact:
            self.start = self.stop = self._search(reader, self.start)[0]
        while self.stop < self._end:
            window = reader.at(self.stop)
            walk = self._kernel.walk(
                window,
                self.stop - window.base,
                self._end - window.base,
                buffers.records,
                check_crc=self._crc,
            )
            self.stop = window.base + walk.at
            if walk.rows:
                batch = self._describe(window, walk.rows, buffers)
                if walk.damaged:
                    self._report_damaged_bodies(batch)
                yield batch
            verdict = reader.more(self.stop) if walk.verdict == MORE else Fault(walk.verdict)
            if verdict is not Fault.GOOD:
                self._pass_over(reader, verdict)

    def _describe(self, window: Window, count: int, buffers: Buffers) -> Batch:
        records = buffers.records[:count]
        keys = 0
        if self._want is Want.LOCATE:
            records["queue"] = -1  # Not the queues of an earlier batch.
        else:
            keys = self._kernel.describe(
                window.buffer,
                records,
                buffers.keys,
                self.table,
                self._delay_levels,
                hash_keys=self._want is Want.DISPATCH,
                index_tags=self._index_tags,
            )
        return Batch(window.buffer, window.base, records, buffers.keys[:keys], self.table)

    def _report_damaged_bodies(self, batch: Batch) -> None:
        for row in batch.records[batch.records["fault"] == Fault.CRC]:
            offset, size = int(row["physical_offset"]), int(row["size"])
            self.gaps.append(Gap(offset, size, Fault.CRC, all_zero=False))

    def _pass_over(self, reader: WindowReader, fault: Fault) -> None:
        """Record the gap at `stop`, where no record is, and move `stop` after it."""
        window = reader.at(self.stop)
        head = window.buffer[self.stop - window.base : window.length][: record.FRAME_SIZE].tobytes()
        if fault is Fault.BLANK:
            position = self._segment_end
            if self.stop + int.from_bytes(head[:4], "big") != position:
                # RocketMQ trusts it nevertheless, and continues with the next segment.
                self._add_gap(position, fault, all_zero=False, is_open=False)
        else:
            position, is_found, all_zero = self._search(reader, self.stop + 1)
            all_zero = all_zero and head[:1] in (b"", b"\0")
            is_open = not is_found and self._end < self._data_end
            self._add_gap(position, fault, all_zero=all_zero, is_open=is_open)
        self.stop = position

    def _add_gap(self, end: int, fault: Fault, *, all_zero: bool, is_open: bool) -> None:
        self.gaps.append(Gap(self.stop, end - self.stop, fault, all_zero, is_open))

    def _search(self, reader: WindowReader, start: int) -> tuple[int, bool, bool]:
        """Find the first valid record, or the blank record that ends the segment, before the end.

        Returns:
            Its position, or the scan's end; whether one was found; whether all bytes before it are
            zero.
        """
        position, all_zero = start, True
        while position < self._end:
            position = min(self._end, max(position, self._next_data(reader, position)))
            window = reader.at(position)
            at = position - window.base
            found = self._kernel.search(window, at, self._end - window.base, self._allowance)
            all_zero = all_zero and not window.buffer[at : min(found.at, window.length)].any()
            self._allowance += SEARCH_ALLOWANCE_RATE * (found.at - at) - found.spent
            position = window.base + found.at
            if found.verdict in (Fault.GOOD, Fault.BLANK):
                return position, True, all_zero
            if found.verdict == MORE:
                fault, layout = self._judge(position)
                if fault is Fault.GOOD:
                    return position, True, all_zero
                self._allowance -= layout.size if layout else _JUDGEMENT_COST
                all_zero = False
                position += 1
        return self._end, False, all_zero

    def _judge(self, position: int) -> tuple[Fault, record.Layout | None]:
        """Check a record that crosses the window's end, without moving the window."""
        at, end = position - self._base, self._data_end - self._base
        return record.check(record_view(self._file, at, end), at, end, position)

    def _next_data(self, reader: WindowReader, position: int) -> int:
        """Return where reading must continue: a hole is all zeros, and contains no record."""
        if reader.has(position):
            return position
        ranges = self._file.data_ranges(position - self._base, self._end - self._base)
        start, _ = next(iter(ranges), (self._end - self._base, 0))
        return self._base + start - _HOLE_MARGIN
