"""Rebuild `consumequeue/`, `index/` and `checkpoint` from the commit log.

In place, the new files are built beside the old ones and replace them when all are complete. No
broker may own the store meanwhile. With `--out`, the store is only read. If a rebuild is killed
before all new files are complete, the store is as it was. If it is killed later, the next rebuild
finishes replacing the files.

JSON: `store`, `output`, `settings` (`dialect`, `queueFileSize`, `hashSlots`, `maxIndex`,
`delayLevels`), `logEnd` (physical offset), `bytesScanned`, `records` and `recordsBeyond` (good
records past the log's end, which get no entries), `deletedTopicRecords` (records of topics that
were deleted after they were put, which get no queue entries), `recreatedTopicRecords` (those of
them whose topic exists again: it has settings in `config/topics.json`), `queues` and `queuesKept`
(queues without a record in the log, which are not changed), `queueEntries`, `blankEntries`,
`indexFiles`, `indexEntries`, `refused` (records without a queue entry, because an earlier record
has their queue offset or because the offset is implausible), `passes` (how often the log was read),
`damage` (objects with `file`, `offset`, `bytes`, `reason`), `seconds`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.engines import open_engine
from mqlake.cli.output import draw, timed, write_json

EXAMPLES = (
    "mqlake rebuild /data/rocketmq/store",
    "mqlake rebuild /data/rocketmq/store --out /data/derived --engine local",
    "mqlake rebuild /data/rocketmq/store --dialect 5.3 --hash-slots 5000000",
)
FROM_FILES = "; default: as in the existing files, otherwise RocketMQ's default."


def rebuild(
    store: shared.Store,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Build in this new or empty directory; default: in place.",
        ),
    ] = None,
    hash_slots: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Hash slots of an index file" + FROM_FILES),
    ] = None,
    max_index: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="Entries of an index file, including the unused entry 0" + FROM_FILES,
        ),
    ] = None,
    queue_file_size: Annotated[
        int | None,
        typer.Option(metavar="BYTES", min=20, help="Size of a queue file" + FROM_FILES),
    ] = None,
    dialect: shared.Dialect = None,
    engine: shared.Engine = "spark",
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Rebuild consumequeue/, index/ and checkpoint from the commit log."""
    with open_engine(engine, master, progress, reads=store, writes=out or store) as chosen:
        from mqlake.formats.dialect import Dialect
        from mqlake.jobs.rebuild.job import rebuild as run

        start = time.perf_counter()
        report = run(
            store,
            chosen,
            out=out,
            dialect=Dialect(dialect) if dialect else None,
            queue_file_size=queue_file_size,
            hash_slots=hash_slots,
            max_index=max_index,
        )
        seconds = time.perf_counter() - start
    if json:
        write_json(timed(report, seconds))
    else:
        from mqlake.cli.views.rebuild import view

        draw(view(report, seconds))
    return 0
