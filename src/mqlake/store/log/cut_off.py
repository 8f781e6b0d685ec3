"""Keep a copy of what recovery cuts off the commit log (docs/live-store.md, "What is cut off is
kept").

Records that RocketMQ considers good may follow one that ends the log. They are copied to
`commitlog-cut/OFFSET-TIME` before they are cut off: the physical offset of the first byte, and the
time of the cut, in milliseconds. RocketMQ ignores that directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from mqlake.errors import DiskError, StoreError, raise_passing
from mqlake.formats.file_name import segment_name
from mqlake.storage.durable import make_directories
from mqlake.storage.protocol import Directory, OwnedDirectory, ReadableFile, WritableFile
from mqlake.store.log.beyond_end import find_good_records
from mqlake.store.log.scan import pieces
from mqlake.store.log.segments import CommitLog, Segment
from mqlake.store.report import CutOffReport, GoodRange

DIRECTORY = "commitlog-cut"

_UNFINISHED = ".tmp"
_CHUNK = 1 << 20


class CutOff(NamedTuple):
    """A file of `DIRECTORY`.

    Attributes:
        name: the name of the file.
        offset: physical offset of its first byte.
        time: when it was cut off, milliseconds.
    """

    name: str
    offset: int
    time: int

    @property
    def path(self) -> str:
        return f"{DIRECTORY}/{self.name}"


def cut_off_files(directory: Directory) -> list[CutOff]:
    """Return the kept files, ascending by offset."""
    found = (_parse(name) for name in directory.names(DIRECTORY))
    return [file for file in found if file is not None]


def keep(directory: OwnedDirectory, log: CommitLog, end: int, time: int) -> list[CutOffReport]:
    """Copy what is about to be cut off, if it contains good records; return what was copied.

    One file for each segment. Returns once everything is durable. What an interrupted recovery has
    copied is not copied again.

    Args:
        end: physical offset at which the log will end.
        time: the current time, milliseconds.

    Raises:
        DiskError: the disk failed, or has no room for the copy.
    """
    kept = cut_off_files(directory)
    for name in directory.names(DIRECTORY):
        if name.endswith(_UNFINISHED):
            directory.remove(f"{DIRECTORY}/{name}")
    ranges = find_good_records(log, end).ranges
    reports: list[CutOffReport] = []
    for segment, start, stop in pieces(log, end, log.limit):
        good = [each for each in ranges if start <= each.offset < stop]
        file = log.file(segment) if good else None
        if file is None:
            continue
        make_directories(directory, DIRECTORY)
        stop = good[-1].offset + good[-1].length
        same = next((one for one in kept if _has(directory, one, file, segment, good)), None)
        new = CutOff(f"{segment_name(start)}-{time}", start, time)
        if same is None:
            _copy(directory, new.path, file, start - segment.base, stop - segment.base)
        path = (same or new).path
        records = sum(each.records for each in good)
        reports.append(CutOffReport(path, start, stop - start, records))
    if reports:
        directory.sync_directory(DIRECTORY)
    return reports


def report(directory: Directory) -> list[CutOffReport]:
    """Return the kept files, with the number of their good records."""
    reports: list[CutOffReport] = []
    for kept in cut_off_files(directory):
        try:
            file = directory.open(kept.path)
        except StoreError as error:
            raise_passing(error)
            continue  # The file was removed since it was listed.
        try:
            size, records = file.size, _count(file, kept.offset)
        finally:
            file.close()
        reports.append(CutOffReport(kept.path, kept.offset, size, records))
    return reports


def remove_expired(directory: OwnedDirectory, before: int) -> None:
    """Remove the files that were cut off before a time, in milliseconds.

    Raises:
        DiskError: the system refused it.
    """
    for kept in cut_off_files(directory):
        if kept.time < before:
            directory.remove(kept.path)


def _parse(name: str) -> CutOff | None:
    offset, _, time = name.partition("-")
    if not offset.isdecimal() or not time.isdecimal():
        return None
    return CutOff(name, int(offset), int(time))


def _count(file: ReadableFile, offset: int) -> int:
    """Return the good records of a file whose first byte has a physical offset."""
    from mqlake.dispatch.scan import SegmentScan, Want

    scan = SegmentScan(file, offset, offset, offset + file.size, exact=True, want=Want.LOCATE)
    return sum(int((batch.records["fault"] == 0).sum()) for batch in scan)


def _has(
    directory: Directory,
    kept: CutOff,
    file: ReadableFile,
    segment: Segment,
    good: Sequence[GoodRange],
) -> bool:
    """Return whether a kept file has all these records, with the same bytes as in the segment."""
    copy = directory.open(kept.path)
    try:
        if good[0].offset < kept.offset or good[-1].offset >= kept.offset + copy.size:
            return False
        return all(
            file.read(at - segment.base, length) == copy.read(at - kept.offset, length)
            for each in good
            for at, length in _chunks(each.offset, each.offset + each.length)
        )
    finally:
        copy.close()


def _copy(directory: OwnedDirectory, path: str, source: ReadableFile, start: int, end: int) -> None:
    """Copy bytes of a file to a new one, without holes; return once they are durable."""
    unfinished = f"{path}{_UNFINISHED}"
    target = directory.create(unfinished, end - start)
    try:
        _fill(target, source, start, end)
        target.sync()
    except BaseException:
        target.close()
        with suppress(DiskError):
            directory.remove(unfinished)
        raise
    target.close()
    directory.replace(unfinished, path)


def _fill(target: WritableFile, source: ReadableFile, start: int, end: int) -> None:
    for data_start, data_end in source.data_ranges(start, end):
        for at, length in _chunks(data_start, data_end):
            data = source.read(at, length)
            if data.strip(b"\0"):
                target.write(at - start, data)


def _chunks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (position, length) of the chunks of a stretch."""
    edges = [*range(start, end, _CHUNK), end]
    return ((at, stop - at) for at, stop in pairwise(edges))
