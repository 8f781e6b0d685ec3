"""Stage two of a rebuild: index files, each from its share of the keys.

A key's position among all keys determines its file and its position there, so each file is a task.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from mqlake.dispatch.derived.index_entries import IndexFileBuilder
from mqlake.formats.file_name import index_name
from mqlake.formats.index_file import IndexHeader
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.rebuild import spill
from mqlake.jobs.rebuild.index_writer import IndexFileWriter
from mqlake.jobs.rebuild.spill import Spill, WindowKeys

_LATEST_NAME = 253_402_300_799_999 - 24 * 3600 * 1000
"""The latest time, in milliseconds, that can be a file name in any time zone: end of 9999."""

# A file of the default size takes 420 MB of memory while it is built.
_building = threading.BoundedSemaphore(2)


class IndexJob(msgspec.Struct, frozen=True):
    """The input of one task of stage two: the file number `number`, of `share` keys.

    `before` is the last key of the file before it.
    """

    directory: str
    number: int
    slots: int
    max_entries: int
    share: list[WindowKeys]
    before: WindowKeys | None


class IndexPart(msgspec.Struct, frozen=True):
    """A complete index file under a unique name."""

    path: str
    header: IndexHeader


def plan(
    spills: Sequence[Spill], directory: Path, slots: int, max_entries: int, *, roll: bool
) -> list[IndexJob]:
    """Return a job for each index file.

    With `roll`, a record without keys follows the last key. RocketMQ opens the next file for such
    a record, too, if the last file is full or no file exists.
    """
    shares = spill.divide(spills, max_entries - 1)
    full = not shares or sum(piece.take for piece in shares[-1]) == max_entries - 1
    if roll and full:
        shares.append([])
    return [
        IndexJob(
            str(directory),
            number,
            slots,
            max_entries,
            share,
            spill.last_key(shares[number - 1]) if number else None,
        )
        for number, share in enumerate(shares)
    ]


@reports_disk_faults
def build_index(job: IndexJob) -> IndexPart:
    """Build one index file; it appears under its name when it is complete and durable."""
    directory = Path(job.directory)
    path, scratch = directory / f"{job.number}", directory / f"{job.number}.{uuid.uuid4().hex}"
    before = next(spill.read([job.before])) if job.before else None
    end_before = int(before.timestamps[0]) if before else 0
    with _building:
        builder = IndexFileBuilder(job.slots, job.max_entries, previous_end_timestamp=end_before)
        try:
            with builder.view() as data, IndexFileWriter(scratch, data, job.slots) as file:
                for keys in spill.read(job.share):
                    builder.insert(keys.hashes, keys.offsets, keys.timestamps)
                    file.write_behind(builder.used_bytes)
                if not job.share and before:
                    offset = max(0, int(before.offsets[0]))
                    builder.header = IndexHeader(end_before, end_before, offset, offset, 0, 1)
                builder.finish().release()
                file.complete(builder.used_bytes)
        finally:
            builder.close()
    scratch.replace(path)
    return IndexPart(str(path), builder.header)


def names(headers: Sequence[IndexHeader]) -> list[str]:
    """Return the files' names: the times of the first entries, ascending and each used once.

    RocketMQ names a file by the local time of its creation, and sorts files by name. The store time
    of the first entry, also in local time, is never later than the name of a file created later.
    """
    found: list[str] = []
    local = -(1 << 62)
    for header in headers:
        time = min(max(header.begin_timestamp, 0), _LATEST_NAME)
        offset = datetime.fromtimestamp(time / 1000, UTC).astimezone().utcoffset() or timedelta()
        local = max(local + 1, time + offset // timedelta(milliseconds=1))
        found.append(index_name(local))
    return found
