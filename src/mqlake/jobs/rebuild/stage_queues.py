"""Stage one of a rebuild: from splits of the log to queue entries in place and keys on the side."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.jobs.queues.files import QueueFiles
from mqlake.jobs.queues.intervals import Interval
from mqlake.jobs.queues.offset_allocation import OffsetAllocation, Refused
from mqlake.jobs.queues.runs import Queue, QueueNames, runs
from mqlake.jobs.rebuild.batch_queues import UnitPiece, UnitWriter
from mqlake.jobs.rebuild.spill import Keys, Spill, SpillWriter
from mqlake.jobs.splits.splits import Scanned, Split, scan_of
from mqlake.storage.local import LocalDirectory


class QueueJob(msgspec.Struct, frozen=True):
    """What one task of stage one does.

    Attributes:
        store: path of the store directory.
        output: path of the directory that gets consumequeue/TOPIC/QUEUE/FILE.
        keys: path of the directory that gets the scratch file with the keys.
        batch_topics: topics with batch consume queues, whose units go to a scratch file.
        believable: for some queues, the bounds of the queue offsets that can be true.
        taken: queue offsets that the tasks before this one have.
    """

    store: str
    splits: tuple[Split, ...]
    output: str
    keys: str
    queue_file_size: int
    dialect: Dialect
    delay_levels: tuple[int, ...]
    batch_topics: frozenset[str]
    believable: dict[Queue, Interval] = {}
    taken: dict[Queue, list[Interval]] = {}


class QueuePart(msgspec.Struct):
    """What one task of stage one did.

    `stated` are the queue offsets that its records state; `refused` has the first few of the
    `refused_count` records whose entry was not written. Of the last record, the last one that
    belongs into a queue and the last one with an index key: physical offset (bytes; -1 for none)
    and store time (milliseconds).
    """

    scanned: list[Scanned]
    spill: Spill
    stated: dict[Queue, list[Interval]]
    records: int = 0
    damaged_bodies: int = 0
    entries: int = 0
    keys: int = 0
    refused_count: int = 0
    refused: list[Refused] = []
    last_record: int = -1
    last_record_time: int = 0
    last_queued: int = -1
    last_queued_time: int = 0
    last_keyed: int = -1
    units: list[UnitPiece] = []


def build_queues(job: QueueJob) -> QueuePart:
    """Scan the splits, write the queue entries to their places and the keys to a scratch file."""
    store = LocalDirectory(job.store)
    with (
        SpillWriter(Path(job.keys)) as spill,
        QueueFiles(Path(job.output), job.queue_file_size) as files,
    ):
        units = UnitWriter(Path(job.keys), job.batch_topics)
        allocation = OffsetAllocation(files, job.believable, job.taken)
        part = QueuePart([], Spill("", []), {})
        for split in job.splits:
            with scan_of(
                store,
                split,
                part.scanned,
                dialect=job.dialect,
                delay_levels=job.delay_levels,
            ) as scan:
                names = QueueNames(scan.table, job.batch_topics)
                for batch in scan:
                    _take(batch, names, part, allocation, spill)
                    units.take(batch)
        part.spill, part.units = spill.finish(), units.finish()
        part.stated = allocation.stated()
        part.entries = allocation.written
        part.refused_count, part.refused = allocation.refused_count, allocation.refused
    return part


def _take(
    batch: Batch,
    names: QueueNames,
    part: QueuePart,
    allocation: OffsetAllocation,
    spill: SpillWriter,
) -> None:
    records, keys = batch.records, batch.keys
    for run in runs(batch, names):
        allocation.allocate(run)
    offsets, times, counts = (
        records[name] for name in ("physical_offset", "store_timestamp", "key_count")
    )
    spill.write(Keys(keys["hash"], np.repeat(offsets, counts), np.repeat(times, counts)))
    part.records += len(records)
    part.damaged_bodies += int(np.count_nonzero(records["fault"] == Fault.CRC))
    part.keys += len(keys)
    part.last_record, part.last_record_time = int(offsets[-1]), int(times[-1])
    if len(keys):
        part.last_keyed = int(offsets[keys["record"][-1]])
    queued = np.flatnonzero(records["queue"] >= 0)
    if len(queued):
        last = queued[-1]
        part.last_queued, part.last_queued_time = int(offsets[last]), int(times[last])
