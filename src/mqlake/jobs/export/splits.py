"""The task of an export: write the messages of some splits, each to its own Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import JobError
from mqlake.formats.record import Fault
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.export.parquet import PartFile, write_part
from mqlake.jobs.export.selection import Selection
from mqlake.jobs.queues.deletions import DeadRecords, living_mask
from mqlake.jobs.splits.splits import ScannedSplit, Split, scan_of
from mqlake.storage.local import LocalDirectory

if TYPE_CHECKING:
    from mqlake.jobs.bodies.plain_bodies import StoredBodies


class ExportJob(msgspec.Struct, frozen=True):
    """The input of one task of an export; `directory` receives its files.

    Attributes:
        decompress: whether bodies are decompressed, and inner batches split.
    """

    store: str
    splits: tuple[Split, ...]
    directory: str
    selection: Selection
    dead: DeadRecords = DeadRecords()
    decompress: bool = True


class ExportPart(msgspec.Struct):
    """The result of one task of an export.

    Attributes:
        last_record: physical offset of the last record that was read, or -1 if there was no record.
        dead: selected records of deleted topics, which are left out.
        stored_bodies: bodies that could not be decompressed.
    """

    scanned: list[ScannedSplit]
    files: list[PartFile]
    records: int = 0
    last_record: int = -1
    dead: int = 0
    stored_bodies: int = 0


@reports_disk_faults
def export_splits(job: ExportJob) -> ExportPart:
    """Write the selected messages of each split to a Parquet file, if there are any."""
    store, directory = LocalDirectory(job.store), Path(job.directory)
    part = ExportPart([], [])
    stored = _stored_bodies() if job.decompress else None
    for split in job.splits:
        name = f"part-{split.start:020d}.parquet"
        with scan_of(store, split, part.scanned, want=Want.EXPORT) as scan:
            written = write_part(directory, name, _wanted(scan, job, part), stored)
        if written.messages:
            part.files.append(written)
    part.stored_bodies = stored.count if stored is not None else 0
    return part


def _stored_bodies() -> StoredBodies:
    """Return a count of bodies. Its module needs pyarrow, which may be missing."""
    try:
        from mqlake.jobs.bodies.plain_bodies import StoredBodies
    except ImportError:
        raise JobError("pyarrow is not installed: pip install 'mqlake[parquet]'") from None
    return StoredBodies()


def _wanted(scan: SegmentScan, job: ExportJob, part: ExportPart) -> Iterator[Batch]:
    from mqlake.jobs.bodies.inner_batches import split

    for batch in scan:
        part.records += len(batch.records)
        part.last_record = int(batch.records["physical_offset"][-1])
        for messages in split(batch) if job.decompress else (batch,):
            selected = _choose(messages, job.selection)
            chosen = _keep(selected, living_mask(selected, job.dead))
            part.dead += len(selected.records) - len(chosen.records)
            if len(chosen.records):
                yield chosen


def _choose(batch: Batch, selection: Selection) -> Batch:
    wanted = selection.choose(batch) & (batch.records["fault"] == Fault.GOOD)
    return _keep(batch, wanted)


def _keep(batch: Batch, wanted: NDArray[np.bool_]) -> Batch:
    return batch if wanted.all() else batch._replace(records=batch.records[wanted])
