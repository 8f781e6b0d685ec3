"""Find the good records past the log's end, which RocketMQ's recovery cuts off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mqlake.store.log.scan import is_small, pieces, segment_scan, walk
from mqlake.store.log.segments import CommitLog
from mqlake.store.report import BeyondEndReport, GoodRange


def find_good_records(log: CommitLog, end: int) -> BeyondEndReport:
    """Return the runs of good records that start at or past the log's end, with their bodies
    checked.
    """
    good_records = _walk if is_small(log, end, log.limit) else _scan
    ranges = list(_runs(good_records(log, end)))
    return BeyondEndReport(
        records=sum(run.records for run in ranges),
        length=sum(run.length for run in ranges),
        ranges=ranges,
    )


def _walk(log: CommitLog, end: int) -> Iterator[tuple[int, int]]:
    for step in walk(log, end, log.limit, crc=True):
        if not step.fault and step.layout:
            yield step.offset, step.layout.size


def _scan(log: CommitLog, end: int) -> Iterator[tuple[int, int]]:
    from mqlake.dispatch.scan import Want

    for segment, start, stop in pieces(log, end, log.limit):
        scan = segment_scan(log, segment, start, stop, want=Want.LOCATE, crc=True, exact=False)
        for batch in scan or ():
            good = batch.records[batch.records["fault"] == 0]
            yield from zip(good["physical_offset"].tolist(), good["size"].tolist(), strict=True)


def _runs(records: Iterable[tuple[int, int]]) -> Iterator[GoodRange]:
    """Join consecutive records (offset, size)."""
    start = stop = count = 0
    for offset, size in records:
        if count and offset != stop:
            yield GoodRange(start, stop - start, count)
            count = 0
        if not count:
            start = offset
        stop, count = offset + size, count + 1
    if count:
        yield GoodRange(start, stop - start, count)
