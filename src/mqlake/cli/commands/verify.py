"""Check every record, and compare queue and index entries with the records.

The structure and the checksum of each record are checked. Each record must have its entries, and
each entry its record. Batch consume queues count as queues, and their units as queue entries.
The files of light queues are derived again up to the checkpoint, and compared byte by byte.
Differences that are explained by a crash, or by RocketMQ's removal of expired files, are counted
and noted, but are not damage.

JSON: `store`, `ok`, `dialect`, `logEnd` (physical offset), `bytesScanned`, `records`,
`recordsBeyond` (good records past the log's end), `deletedTopicRecords` (records of topics that
were deleted after they were put, which need no queue entries), `damagedBodies`, `tornRecords`
(records whose body is valid, but whose checksum over the whole record, which mqlake adds, is
wrong), `queues`, `indexFiles`, `queueEntries`, `indexEntries`, `lightFiles`, `lightEntries`
(files of light queues, and entries in them, that were compared), `damage` (objects with `file`,
`offset`, `bytes`, `reason`), `notes`, `seconds`.

`queueEntries` and `indexEntries` have the counts `good`, `undispatched`, `lost`, `expired`,
`stale`, `blank`, `dead` and `repeated`, and the objects `missing`, `wrong` and `dangling` with
`count` and `examples`. docs/rebuild.md explains these kinds of entries.

The exit code is 1 if damage was found.
"""

from __future__ import annotations

import time

from mqlake.cli import options as shared
from mqlake.cli.engines import open_engine
from mqlake.cli.output import draw, timed, write_json

EXAMPLES = (
    "mqlake verify /data/rocketmq/store",
    "mqlake verify /data/rocketmq/store --engine local --json",
    "mqlake verify /mnt/store --master spark://head:7077",
)
DAMAGE_FOUND = 1


def verify(
    store: shared.Store,
    dialect: shared.Dialect = None,
    engine: shared.Engine = "spark",
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Check every record, and compare queue and index entries with the records."""
    with open_engine(engine, master, progress, reads=store) as chosen:
        from mqlake.formats.dialect import Dialect
        from mqlake.jobs.verify.job import verify as run

        start = time.perf_counter()
        report = run(store, chosen, dialect=Dialect(dialect) if dialect else None)
        seconds = time.perf_counter() - start
    if json:
        write_json(timed(report, seconds))
    else:
        from mqlake.cli.views.verify import view

        draw(view(report, seconds))
    return 0 if report.ok else DAMAGE_FOUND
