"""Copy one file of a store to an archive."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from zlib import crc32

from msgspec import UNSET

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.formats.archive_manifest import HEAD_BYTES, ArchivedFile, ArchivedSegment
from mqlake.formats.record import Fault
from mqlake.jobs.archive.restarted import head_checksum, is_queue_file
from mqlake.storage.local import LocalDirectory
from mqlake.storage.object_target import Target
from mqlake.storage.protocol import ReadableFile
from mqlake.store.log.file_end import end_of_data
from mqlake.store.log.segments import Segment

_CHUNK = 8 << 20


def copy_segment(source: LocalDirectory, segment: Segment, target: Target) -> ArchivedSegment:
    """Copy a closed segment, once all of it is durable.

    Raises:
        StoreError: the segment cannot be read, or the object cannot be written.
    """
    source.make_durable(segment.path)
    file = source.open(segment.path)
    try:
        found = _look_at(file, segment)
        size = segment.end - segment.base
        stored = end_of_data(file, 0, size)
        digest = put(file, segment.path, stored, target)
        return ArchivedSegment(
            path=segment.path,
            object=segment.path,
            size=size,
            stored=stored,
            sha256=digest,
            start=segment.base,
            end=segment.end,
            head_crc32=crc32(file.read(0, min(HEAD_BYTES, size))),
            records=found.records,
            damaged=found.damaged,
            min_store_timestamp=found.first,
            max_store_timestamp=found.last,
        )
    finally:
        file.close()


def copy_file(
    file: ReadableFile,
    path: str,
    length: int,
    target: Target,
    before: ArchivedFile | None,
    name: str,
    *,
    is_final: bool,
) -> ArchivedFile:
    """Copy a derived file, unless the archive has the same bytes.

    A reader that uses the previous manifest must find the object that it names. So `name` must not
    be one of its objects.

    Args:
        length: bytes from the file's start that belong to the archive; the rest are zeros.
        before: what the archive has of the file already.
        name: of the new object.
    """
    stored = end_of_data(file, 0, length)
    is_alike = before is not None and (before.stored, before.size) == (stored, file.size)
    if before and is_alike and before.sha256 == _digest(file, stored):
        return before
    written = put(file, name, stored, target)
    return ArchivedFile(
        path=path,
        object=name,
        size=file.size,
        stored=stored,
        sha256=written,
        is_final=is_final,
        entries_crc32=head_checksum(file) if is_final and is_queue_file(path) else UNSET,
    )


def put(file: ReadableFile, name: str, stored: int, target: Target) -> str:
    """Write the first bytes of a file as an object; return their SHA-256, in hex."""
    digest = sha256()

    def chunks() -> Iterator[bytes]:
        for chunk in _chunks(file, stored):
            digest.update(chunk)
            yield chunk

    target.put(name, stored, chunks())
    return digest.hexdigest()


def _digest(file: ReadableFile, stored: int) -> str:
    digest = sha256()
    for chunk in _chunks(file, stored):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(file: ReadableFile, stored: int) -> Iterator[bytes]:
    for at in range(0, stored, _CHUNK):
        yield file.read(at, min(_CHUNK, stored - at))


class _SegmentContents:
    """What a scan over a segment found."""

    def __init__(self) -> None:
        self.records = self.damaged = 0
        self.first = self.last = 0

    def add(self, first: int, last: int, records: int) -> None:
        """Record the number of records, and the bounds of their store times."""
        self.first = min(self.first, first) if self.records else first
        self.last = max(self.last, last)
        self.records += records


def _look_at(file: ReadableFile, segment: Segment) -> _SegmentContents:
    found = _SegmentContents()
    scan = SegmentScan(file, segment.base, segment.base, segment.end, exact=True, want=Want.LOCATE)
    for batch in scan:
        good = batch.records[batch.records["fault"] == Fault.GOOD]
        times = good["store_timestamp"]
        if len(times):
            found.add(int(times.min()), int(times.max()), len(times))
    found.damaged = sum(gap.length for gap in scan.gaps if not gap.all_zero)
    return found
