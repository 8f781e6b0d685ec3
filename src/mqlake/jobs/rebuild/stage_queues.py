"""Stage one of a rebuild: write queue entries to their positions, and keys to scratch files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.queues.deletions import DeadRecords, QueueTracer
from mqlake.jobs.queues.files import QueueFileWriter
from mqlake.jobs.queues.intervals import Interval
from mqlake.jobs.queues.offset_allocation import OffsetAllocation, Refused
from mqlake.jobs.queues.runs import QueueName, QueueNames, runs
from mqlake.jobs.rebuild.batch_queues import UnitPiece, UnitWriter
from mqlake.jobs.rebuild.spill import Spill, SpilledKeys, SpillWriter
from mqlake.jobs.splits.splits import ScannedSplit, Split, scan_of
from mqlake.storage.local import LocalDirectory
from mqlake.store.incarnations.restarts import Trace


class RebuildQueueJob(msgspec.Struct, frozen=True):
    """The input of one task of stage one.

    Attributes:
        store: path of the store directory.
        output: path of the directory for consumequeue/TOPIC/QUEUE/FILE.
        keys: path of the directory for the scratch file with the keys.
        batch_topics: topics with batch consume queues, whose units go to a scratch file.
        dead: the records of deleted topics, which get no queue entries.
        believable: for some queues, the bounds of plausible queue offsets.
        taken: the queue offsets that earlier tasks found.
    """

    store: str
    splits: tuple[Split, ...]
    output: str
    keys: str
    queue_file_size: int
    dialect: Dialect
    delay_levels: tuple[int, ...]
    batch_topics: frozenset[str]
    dead: DeadRecords
    believable: dict[QueueName, Interval] = {}
    taken: dict[QueueName, list[Interval]] = {}


class QueuePart(msgspec.Struct):
    """The result of one task of stage one.

    `stated` are the queue offsets in its living records, `traces` describe its queues, `dead`
    counts the records of deleted topics, by topic. `refused` has the first few of the
    `refused_count` records whose entry was not written. The other fields are the physical offset
    (bytes; -1 without such a record) and the store time (milliseconds) of the last record, of the
    last record that belongs to a queue, and of the last record with an index key.
    """

    scanned: list[ScannedSplit]
    spill: Spill
    stated: dict[QueueName, list[Interval]]
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
    traces: dict[tuple[str, int], Trace] = {}
    dead: dict[str, int] = {}


@reports_disk_faults
def build_queues(job: RebuildQueueJob) -> QueuePart:
    """Scan the splits; write queue entries to their positions, and keys to a scratch file."""
    store = LocalDirectory(job.store)
    with (
        SpillWriter(Path(job.keys)) as spill,
        QueueFileWriter(Path(job.output), job.queue_file_size) as files,
    ):
        tracer = QueueTracer(job.dead)
        units = UnitWriter(Path(job.keys), job.batch_topics, tracer)
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
                    for run in runs(batch, names):
                        if living := tracer.living(run):
                            allocation.allocate(living)
                    _take(batch, part, spill)
                    units.take(batch)
        part.spill, part.units = spill.finish(), units.finish()
        part.stated = allocation.stated()
        part.entries = allocation.written
        part.refused_count, part.refused = allocation.refused_count, allocation.refused
        part.traces, part.dead = tracer.traces, tracer.dead_by_topic
    return part


def _take(batch: Batch, part: QueuePart, spill: SpillWriter) -> None:
    records, keys = batch.records, batch.keys
    offsets, times, counts = (
        records[name] for name in ("physical_offset", "store_timestamp", "key_count")
    )
    spill.write(SpilledKeys(keys["hash"], np.repeat(offsets, counts), np.repeat(times, counts)))
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
