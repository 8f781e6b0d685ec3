"""The task of a verification: compare the records of some splits with their expected entries."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.formats.checkpoint import Checksummed
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.queues.batch_units import units_of
from mqlake.jobs.queues.deletions import DeadRecords, QueueTracer
from mqlake.jobs.queues.intervals import Interval
from mqlake.jobs.queues.runs import QueueName, QueueNames, runs
from mqlake.jobs.splits.splits import ScannedSplit, Split, scan_of
from mqlake.jobs.verify.batch_units import UnitCheck
from mqlake.jobs.verify.findings import EntryFindings, merged
from mqlake.jobs.verify.index import IndexPlan, KeyCheck
from mqlake.jobs.verify.queues import RunCheck
from mqlake.storage.local import LocalDirectory
from mqlake.store.incarnations.restarts import Trace
from mqlake.store.log.record_rules import ChecksumRule
from mqlake.store.log.segments import open_log


class VerifyJob(msgspec.Struct, frozen=True):
    """The input of one task: the records of its splits are compared with the existing entries.

    Attributes:
        store: path of the store directory.
        batch_topics: those with batch consume queues.
        index: the index files, oldest first.
        undispatched_from: physical offset from which the broker may not have dispatched yet.
        checksummed: the range of the log in which every record has a checksum of all its bytes;
            None without such a range.
        is_live: a broker is writing.
        dead: the records of deleted topics.
    """

    store: str
    splits: tuple[Split, ...]
    dialect: Dialect
    delay_levels: tuple[int, ...]
    batch_topics: frozenset[str]
    index: list[IndexPlan]
    undispatched_from: int
    checksummed: Checksummed | None
    is_live: bool
    dead: DeadRecords


class VerifyPart(msgspec.Struct, frozen=True):
    """The result of one task; `stated` are the queue offsets in its living records.

    `traces` describe its queues, `dead` counts the records of deleted topics.
    `stated_in_batches` are those of batch consume queues. `torn` are the records (physical offset,
    bytes) whose checksum of all bytes is wrong although lengths and body are valid.
    """

    scanned: list[ScannedSplit]
    stated: dict[QueueName, list[Interval]]
    stated_in_batches: dict[QueueName, list[Interval]]
    queue_entries: EntryFindings
    index_entries: EntryFindings
    records: int
    damaged_bodies: int
    last_record: int
    torn: list[tuple[int, int]]
    traces: dict[tuple[str, int], Trace]
    dead: int


@reports_disk_faults
def verify_splits(job: VerifyJob) -> VerifyPart:
    """Scan the splits of a job, and compare their records with the existing entries."""
    store = LocalDirectory(job.store)
    log = open_log(store)
    tracer = QueueTracer(job.dead)
    dispatched, dead = job.undispatched_from, job.dead
    queues = RunCheck(store, log, dispatched, dead, is_writing=job.is_live)
    units = UnitCheck(store, log, dispatched, dead, is_writing=job.is_live)
    keys = KeyCheck(store, log, job.index, job.undispatched_from)
    rule = job.checksummed and ChecksumRule(job.checksummed)
    scanned: list[ScannedSplit] = []
    torn: list[tuple[int, int]] = []
    records = damaged = 0
    last = -1
    for split in job.splits:
        with scan_of(
            store, split, scanned, dialect=job.dialect, delay_levels=job.delay_levels
        ) as scan:
            names = QueueNames(scan.table, job.batch_topics)
            compared = None
            for batch in scan:
                for run in runs(batch, names):
                    if living := tracer.living(run):
                        queues.check(living)
                for queue, expected in units_of(batch, job.batch_topics):
                    units.check(queue, tracer.living_units(queue, expected))
                keys.check(batch, compared or scan.start, scan.stop, scan.gaps)
                compared = scan.stop
                bad = int(np.count_nonzero(batch.records["fault"] == Fault.CRC))
                records, damaged = records + len(batch.records) - bad, damaged + bad
                torn += _torn(rule, batch) if rule else ()
                last = int(batch.records["physical_offset"][-1])
            keys.check(None, compared or scan.start, scan.stop, scan.gaps)
    units.close()
    log.close()
    return VerifyPart(
        scanned=scanned,
        stated=queues.stated(),
        stated_in_batches=units.stated(),
        queue_entries=merged((queues.findings, units.findings)),
        index_entries=keys.findings,
        records=records,
        damaged_bodies=damaged,
        last_record=last,
        torn=torn,
        traces=tracer.traces,
        dead=tracer.dead,
    )


def _torn(rule: ChecksumRule, batch: Batch) -> Iterator[tuple[int, int]]:
    """Yield the records of a batch whose checksum is wrong although their bodies are valid."""
    records = batch.records[batch.records["fault"] == Fault.GOOD]
    while (row := rule.first_bad(batch.buffer, batch.base, records)) < len(records):
        yield int(records[row]["physical_offset"]), int(records[row]["size"])
        records = records[row + 1 :]
