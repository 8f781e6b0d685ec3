"""Read the records of a stretch of the log without NumPy: for small scans, and to be read."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.dispatch.answers import SEARCH_ALLOWANCE, SEARCH_ALLOWANCE_RATE
from mqlake.dispatch.gap import Gap
from mqlake.dispatch.reference.records import candidates
from mqlake.formats import record
from mqlake.formats.record import Fault, Layout
from mqlake.storage.protocol import ReadableFile

_CHUNK = 1 << 20


def scan_records(
    file: ReadableFile,
    base: int,
    start: int,
    end: int,
    *,
    exact: bool,
    crc: bool = True,
    limit: int | None = None,
    gaps: list[Gap] | None = None,
) -> Iterator[tuple[int, Layout, Fault]]:
    """Yield the records that `mqlake.dispatch.scan.SegmentScan` finds; never raises on bad bytes.

    Each as (physical offset, layout, GOOD or CRC); the layout's positions are those in
    `file.view()`. The arguments are SegmentScan's; what it has in `gaps` is appended to `gaps`.
    """
    scan = _Scan(file, base, limit)
    at, end = start - base, min(end - base, scan.data_end)
    if not exact and at > 0:
        at = scan.find(at, end)[0]
    gaps = [] if gaps is None else gaps
    while at < end:
        fault, layout = record.check(scan.view, at, scan.data_end, base + at, crc=crc)
        if layout is not None and fault in (Fault.GOOD, Fault.CRC):
            if fault is Fault.CRC:
                gaps.append(Gap(base + at, layout.size, fault, all_zero=False))
            yield base + at, layout, fault
            at += layout.size
        elif fault is Fault.BLANK and scan.ends_segment(at):
            return
        else:
            gap = scan.gap(at, end, fault)
            gaps.append(gap._replace(physical_offset=base + at))
            at += gap.length


class _Scan:
    """One segment; all positions are those in the file."""

    def __init__(self, file: ReadableFile, base: int, limit: int | None) -> None:
        self._file, self._base = file, base
        self._allowance = SEARCH_ALLOWANCE
        self.view = file.view()
        self.data_end = file.size if limit is None else min(limit - base, file.size)

    def gap(self, at: int, end: int, fault: Fault) -> Gap:
        """Return the gap at a position, as long as it is within the scan."""
        if fault is Fault.BLANK:
            return Gap(at, self._file.size - at, fault, all_zero=False)
        stop, is_found = self.find(at + 1, end)
        is_open = not is_found and end < self.data_end
        return Gap(at, stop - at, fault, self._is_zero(at, stop), is_open)

    def find(self, start: int, end: int) -> tuple[int, bool]:
        """Return the first position that a good record starts at, else (end, False)."""
        last = start
        for data_start, data_end in self._file.data_ranges(start, end):
            # A record may start with zeros that are part of a hole.
            for at in range(max(start, data_start - record.FRAME_SIZE), data_end, _CHUNK):
                for candidate in candidates(self.view, at, min(at + _CHUNK, data_end, end)):
                    self._allowance += SEARCH_ALLOWANCE_RATE * (candidate - last)
                    last = candidate
                    is_good, read = self._judge(candidate, self._allowance)
                    if is_good:
                        return candidate, True
                    self._allowance -= read
        return end, False

    def ends_segment(self, at: int) -> bool:
        """Return whether a blank record reaches exactly to the segment's end."""
        return at + int.from_bytes(self.view[at : at + 4], "big") == self._file.size

    def _judge(self, at: int, allowance: int) -> tuple[bool, int]:
        """Return (whether a good record starts here, bytes of body that were read)."""
        offset = self._base + at
        fault, layout = record.check(self.view, at, self.data_end, offset, crc=False)
        if fault is Fault.BLANK:
            return self.ends_segment(at), 0
        if fault is not Fault.GOOD or layout is None or layout.body_length > allowance:
            return False, 0
        fault, _ = record.check(self.view, at, self.data_end, offset)
        return fault is Fault.GOOD, layout.body_length

    def _is_zero(self, start: int, end: int) -> bool:
        return not any(
            self.view[at : min(at + _CHUNK, data_end)].tobytes().strip(b"\0")
            for data_start, data_end in self._file.data_ranges(start, end)
            for at in range(data_start, data_end, _CHUNK)
        )
