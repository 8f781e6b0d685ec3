"""Export all messages, or those that match filters, to Parquet files.

The files appear in the new directory when all are complete. Their columns are the fields of `mqlake
query --json`, plus `tags` and `keys`. `bornTimestamp` and `storeTimestamp` are timestamps,
`properties` is a map, and `body` is binary. Records with a damaged body are left out and reported.

Rows are messages as consumers receive them: bodies are decompressed, and the messages of an inner
batch are rows. A body that cannot be decompressed is written as stored, and its `sysFlag` says that
it is compressed. With `--no-decompress`, rows are records as stored.

JSON: `store`, `output`, `files`, `bytesWritten`, `messages` (exported), `deletedTopicMessages`
(left out, because their topic was deleted after they were put), `storedBodies` (bodies that could
not be decompressed), `records` (read from the log), `bytesScanned`, `logEnd` (physical offset),
`damage` (objects with `file`, `offset`, `bytes`, `reason`), `seconds`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from mqlake.cli import options as shared
from mqlake.cli.engines import open_engine
from mqlake.cli.option_groups import grouped
from mqlake.cli.output import draw, timed, write_json

EXAMPLES = (
    "mqlake export /data/rocketmq/store --out /data/messages",
    "mqlake export /data/rocketmq/store --out paid --topic Orders --tag paid",
    "mqlake export /data/rocketmq/store --out day --begin 1795206616198 --end 1795206799234",
)


class SelectionOptions(NamedTuple):
    """Which messages are exported."""

    topic: Annotated[
        list[str] | None, typer.Option(help="Only messages of this topic; may be repeated.")
    ] = None
    tag: Annotated[str | None, typer.Option(help="Only messages with this tag.")] = None
    key: Annotated[
        str | None, typer.Option(metavar="K", help="Only messages with this key or unique key.")
    ] = None
    begin: shared.Begin = None
    end: shared.End = None
    decompress: Annotated[
        bool,
        typer.Option(
            "--decompress/--no-decompress",
            help="Decompress bodies, and split inner batches into their messages.",
        ),
    ] = True


@grouped
def export(
    store: shared.Store,
    out: Annotated[Path, typer.Option(metavar="DIR", help="New or empty directory for the files.")],
    *,
    chosen: SelectionOptions,
    engine: shared.Engine = "spark",
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Export all messages, or those that match filters, to Parquet files."""
    with open_engine(engine, master, progress, reads=store, writes=out) as opened:
        from mqlake.jobs.export.job import export as run

        start = time.perf_counter()
        report = run(
            store,
            opened,
            out=out,
            topics=chosen.topic or (),
            tag=chosen.tag,
            key=chosen.key,
            begin=chosen.begin,
            end=chosen.end,
            decompress=chosen.decompress,
        )
        seconds = time.perf_counter() - start
    if json:
        write_json(timed(report, seconds))
    else:
        from mqlake.cli.views.export import view

        draw(view(report, seconds))
    return 0
