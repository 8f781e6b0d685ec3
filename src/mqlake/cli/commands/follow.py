"""Follow a store with Spark: into a lake table, or into its own queues and index.

`--to delta`, `iceberg` and `parquet` bring each message into the table in directory `--out` exactly
once, also when the program is killed and started again: a streaming query whose checkpoint and
table agree. The table is partitioned by topic and by the UTC day of `storeTimestamp`. `--to store`
keeps `consumequeue/`, `index/` and `checkpoint` of the store itself up to date while its log grows;
no broker may own the store meanwhile. Without `--once`, it goes on until SIGTERM or Ctrl-C, and
then finishes the micro-batch that it is at.

JSON: `store`, `output`, `format`, `checkpoint`, `batches` (micro-batches with messages),
`messages`, `files` and `bytesWritten` (before small files were merged), `filesMerged`, `seconds`;
with `--to store`: `store`, `checkpoint`, `isRebuilt` (derived files were missing, and were built
first), `batches`, `records` (dispatched in them), `logEnd` (physical offset), `seconds`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from mqlake.cli import options as shared
from mqlake.cli.options import UsageError
from mqlake.cli.output import draw, timed, write_json

EXAMPLES = (
    "mqlake follow /data/rocketmq/store --to delta --out /lake/messages --once",
    "mqlake follow /data/rocketmq/store --to iceberg --out /lake/orders --subscribe Orders",
    "mqlake follow /data/copy/store --to store",
)
STATE = "_mqlake"


def follow(
    store: shared.Store,
    to: Annotated[
        Literal["delta", "iceberg", "parquet", "store"],
        typer.Option("--to", help="What the messages go to.", show_default=False),
    ],
    out: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Directory of the table.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where Spark keeps how far it is; without it, _mqlake/checkpoint in the table.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all that is there now is taken.")
    ] = False,
    processing_time: Annotated[
        str, typer.Option(metavar="INTERVAL", help="Least time between two micro-batches.")
    ] = "1 second",
    max_offsets_per_trigger: Annotated[
        int, typer.Option(metavar="N", min=1, help="At most so many messages a micro-batch.")
    ] = 500_000,
    subscribe: Annotated[
        str | None, typer.Option(metavar="TOPICS", help="Topics, with commas between them.")
    ] = None,
    subscribe_pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Topics whose whole name matches.")
    ] = None,
    starting_offsets: Annotated[
        str,
        typer.Option(metavar="WHERE", help="Where a new query starts: earliest, latest, or JSON."),
    ] = "earliest",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns, with commas between them; topic and storeTimestamp are always there.",
        ),
    ] = None,
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(
            "--fail-on-data-loss/--no-fail-on-data-loss",
            help="Fail where messages are damaged or were deleted unread; else go on without them.",
        ),
    ] = True,
    target_file_size: Annotated[
        int,
        typer.Option(metavar="BYTES", min=1, help="Size up to which small files are merged."),
    ] = 128 << 20,
    compact_every: Annotated[
        int,
        typer.Option(
            metavar="BATCHES",
            min=0,
            help="Merge small files after so many micro-batches (delta, iceberg); 0 for never.",
        ),
    ] = 50,
    publish_after: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long messages wait for others to share a file with (parquet).",
        ),
    ] = 60.0,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="URI", help="Catalog (iceberg); without it, an SQLite file in the table."
        ),
    ] = None,
    catalog_name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the catalog (iceberg).")
    ] = "default",
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE.NAME",
            help="Name in the catalog (iceberg); without it, mqlake. and the directory's name.",
        ),
    ] = None,
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Follow a store into a lake table, or into its own queues and index."""
    if (out is None) != (to == "store"):
        raise UsageError("--out names the table; it goes with --to delta, iceberg and parquet")
    if to != "iceberg" and (catalog or table):
        raise UsageError("--catalog and --table go with --to iceberg only")
    source = {
        "startingOffsets": starting_offsets,
        "maxOffsetsPerTrigger": str(max_offsets_per_trigger),
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        **({"subscribe": subscribe} if subscribe is not None else {}),
        **({"subscribePattern": subscribe_pattern} if subscribe_pattern is not None else {}),
    }
    narrows = subscribe or subscribe_pattern or columns or starting_offsets != "earliest"
    if to == "store" and narrows:
        raise UsageError("--to store dispatches all messages: no --subscribe, --columns and such")

    from mqlake.cli.following import open_spark, stop_on_signals
    from mqlake.spark.follow.options import (
        FollowOptions,
        Format,
        StoreQuery,
        chosen_columns,
        directory,
    )

    target = store.absolute() if out is None else directory(out)
    query = StoreQuery(
        store=store.absolute(),
        checkpoint=(checkpoint or target / STATE / "checkpoint").absolute(),
        source=source,
        columns=chosen_columns(columns),
        once=once,
        processing_time=processing_time,
    )
    start = time.perf_counter()
    with (
        stop_on_signals() as stop,
        open_spark(master, progress, store, target) as (session, report),
    ):
        if to == "store":
            from mqlake.spark.follow.derived_files import dispatch

            found = dispatch(session, query, stop, report)
        else:
            from mqlake.spark.follow.job import follow as run

            options = FollowOptions(
                **query.members(),
                format=Format(to),
                out=target,
                target_file_size=target_file_size,
                compact_every=compact_every,
                publish_after=publish_after,
                catalog=catalog,
                catalog_name=catalog_name,
                table=table,
            )
            found = run(session, options, stop, report)
    seconds = time.perf_counter() - start
    if json:
        write_json(timed(found, seconds))
    else:
        from mqlake.cli.views.follow import view

        draw(view(found, seconds))
    return 0
