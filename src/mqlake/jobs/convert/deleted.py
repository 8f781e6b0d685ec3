"""Count the messages of deleted topics in a log: no queue has them, so none is converted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import StoreError
from mqlake.formats.record import Fault
from mqlake.jobs.convert.topics import for_kafka
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.jobs.queues.deletions import DeadRecords, living_mask
from mqlake.jobs.source import StoreSource
from mqlake.storage.local import LocalDirectory
from mqlake.store.log.segments import Segment


class DeletedJob(msgspec.Struct, frozen=True):
    """One segment of a log, the records that are dead, and the topics that are asked for."""

    store: str
    segment: Segment
    dead: DeadRecords
    end: int
    topics: tuple[str, ...]


def count_deleted(source: StoreSource, engine: Engine, topics: Sequence[str]) -> int:
    """Return how many messages of deleted topics a conversion leaves out.

    Only the part of the log that contains such messages is read.

    Args:
        topics: only these; if empty, all that can be converted.

    Raises:
        StoreError: the log cannot be read.
    """
    table = source.snapshot.incarnations
    dead = DeadRecords(table.befores, table.others)
    end = max((*table.befores.values(), table.others))
    jobs = [
        DeletedJob(source.path, segment, dead, end, tuple(topics))
        for segment in source.log.segments
        if segment.base < end
    ]
    return sum(engine.run(count_in_segment, jobs, "deleted topics")) if jobs else 0


@reports_disk_faults
def count_in_segment(job: DeletedJob) -> int:
    """Return how many messages of deleted topics a segment has; the task of `count_deleted`."""
    directory, segment = LocalDirectory(job.store), job.segment
    try:
        file = directory.open(segment.path)
    except StoreError:
        if directory.exists(segment.path):
            raise
        return 0  # Retention removed it.
    found = 0
    try:
        end = min(segment.end, job.end)
        scan = SegmentScan(file, segment.base, segment.base, end, exact=True, want=Want.EXPORT)
        for batch in scan:
            records = batch.records
            dead = (records["fault"] == Fault.GOOD) & ~living_mask(batch, job.dead)
            numbers = [
                number for number, queue in enumerate(batch.table) if _is_asked(queue[0], job)
            ]
            found += sum(int((records["queue"][dead] == number).sum()) for number in numbers)
    finally:
        file.close()
    return found


def _is_asked(topic: bytes, job: DeletedJob) -> bool:
    name = topic.decode()
    return name in job.topics if job.topics else for_kafka(name) is None
