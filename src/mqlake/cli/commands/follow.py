"""Follow a store with Spark: write its messages to a lake table as they arrive.

`--to delta`, `iceberg` and `parquet` write each message to the table `--out` exactly once, even if
the program is killed and restarted: the checkpoint of the streaming query and the table agree. The
table is partitioned by topic and by the UTC day of `storeTimestamp`. `--to store` keeps
`consumequeue/`, `index/` and `checkpoint` of the store itself up to date while its log grows; no
broker may own the store meanwhile. Without `--once`, the program runs until SIGTERM or
Ctrl-C, and then finishes the current microbatch.

Damaged parts of the log, and rows that the table refuses, go to a table of dead letters beside it,
so they do not stop the query. `--check` compares the table and its dead letters with the log,
record by record, and exits with 1 if they differ. `--replay` moves dead letters into the table if
it now accepts them. Neither needs Spark, unless `--replay` is used with `--decode`.

JSON: `store`, `output`, `format`, `checkpoint`, `batches` (microbatches with messages), `messages`,
`files` and `bytesWritten` (before small files were merged), `filesMerged`, `deadLetters` (rows
added there), `seconds`; with `--check`: `output`, `records` (of the log), `rows` (of the table) and
`refused` (among the dead letters), each with `count` and `checksum`, `older` (rows whose part of
the log was deleted since), `damagedBytes` (of the log), `damagedBytesNoted` (among the dead
letters), `columns` (that the checksums cover), `ok`, `seconds`; with `--replay`: `output`,
`messages` (added to the table), `left` (remaining dead letters), `seconds`; with `--to store`:
`store`, `checkpoint`, `isRebuilt` (derived files were missing, and were built first), `batches`,
`records` (dispatched in them), `logEnd` (physical offset), `seconds`.
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
    "mqlake follow /data/rocketmq/store --to delta --out /lake/topics --table-per-topic",
    "mqlake follow /data/rocketmq/store --to delta --out /lake/messages --check",
    "mqlake follow /data/rocketmq/store --to delta --out s3://lake/messages --checkpoint /data/at",
    "mqlake follow /data/copy/store --to store",
)
STATE = "_mqlake"


def follow(
    store: shared.Store,
    to: Annotated[
        Literal["delta", "iceberg", "parquet", "store"],
        typer.Option("--to", help="Format of the target.", show_default=False),
    ],
    out: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Directory of the table, or s3://BUCKET/PREFIX."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Spark's checkpoint directory, required with s3://; default: _mqlake/checkpoint"
            " in the table.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all current messages are written.")
    ] = False,
    target_lag: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long messages wait for others, unless a full microbatch waits.",
        ),
    ] = 60.0,
    processing_time: Annotated[
        str, typer.Option(metavar="INTERVAL", help="Minimum time between two checks of the log.")
    ] = "1 second",
    max_offsets_per_trigger: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of messages in a microbatch.")
    ] = 500_000,
    subscribe: Annotated[
        str | None, typer.Option(metavar="TOPICS", help="Topics, separated by commas.")
    ] = None,
    subscribe_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="Topics whose whole name matches this regular expression."
        ),
    ] = None,
    starting_offsets: Annotated[
        str,
        typer.Option(metavar="WHERE", help="Where a new query starts: earliest, latest, or JSON."),
    ] = "earliest",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns, separated by commas; topic and storeTimestamp are always included.",
        ),
    ] = None,
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(
            "--fail-on-data-loss/--no-fail-on-data-loss",
            help="Fail at damage and at messages that were deleted unread, instead of writing"
            " dead letters.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the table with the log, then stop.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Move dead letters into the table, then stop.")
    ] = False,
    target_file_size: Annotated[
        int,
        typer.Option(metavar="BYTES", min=1, help="Minimum size of merged files."),
    ] = 128 << 20,
    compact_every: Annotated[
        int,
        typer.Option(
            metavar="BATCHES",
            min=0,
            help="Merge small files after this many microbatches (delta, iceberg); 0: never.",
        ),
    ] = 10,
    keep_versions: Annotated[
        float,
        typer.Option(
            metavar="HOURS",
            min=0,
            help="How long old versions stay readable (delta, iceberg).",
        ),
    ] = 168.0,
    expire: Annotated[
        bool,
        typer.Option(
            "--expire/--no-expire", help="Remove older versions and their files once an hour."
        ),
    ] = True,
    publish_after: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long messages wait for others to share a file (parquet).",
        ),
    ] = 60.0,
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Setting of the object store, such as fs.s3a.endpoint=URL; may be repeated.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="URI", help="Catalog (iceberg); default: an SQLite file in the table."
        ),
    ] = None,
    catalog_name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the catalog (iceberg).")
    ] = "default",
    catalog_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of PyIceberg's catalog, such as type=glue; may be repeated.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE.NAME",
            help="Name in the catalog (iceberg); default: mqlake. and the directory's name.",
        ),
    ] = None,
    decode: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT[:SCHEMA]",
            help="Add the bodies' fields as columns: json, avro, protobuf or cloudevents.",
        ),
    ] = None,
    decode_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="message, registry, subject, writer_schema or framing; may be repeated.",
        ),
    ] = None,
    upsert_by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Keep only the newest message of each key; an empty body deletes it.",
        ),
    ] = None,
    partition_by: Annotated[
        str,
        typer.Option(
            metavar="PARTS",
            help="Partition a new table by topic, by day, by both, or not (none) (delta, iceberg).",
        ),
    ] = "topic,day",
    table_per_topic: Annotated[
        bool,
        typer.Option(
            "--table-per-topic",
            help="Write a table for each topic, in a directory below --out (delta, iceberg).",
        ),
    ] = False,
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Write a store's messages to a lake table as they arrive."""
    if (out is None) != (to == "store"):
        raise UsageError("--out names the table; it goes with --to delta, iceberg and parquet")
    if (check or replay) and (to == "store" or (check and replay)):
        raise UsageError("--check or --replay go with --to delta, iceberg and parquet")
    if to != "iceberg" and (catalog or catalog_option or table):
        raise UsageError("--catalog, --catalog-option and --table go with --to iceberg only")
    if table_per_topic and (to not in ("delta", "iceberg") or table):
        raise UsageError("--table-per-topic goes with --to delta or iceberg, without --table")
    settings = _storage_settings(storage_option, out)
    if decode_option and decode is None:
        raise UsageError("--decode-option goes with --decode")
    if decode is not None and to == "store":
        raise UsageError("--decode goes with --to delta, iceberg and parquet")
    source = {
        "startingOffsets": starting_offsets,
        "maxOffsetsPerTrigger": str(max_offsets_per_trigger),
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        **({"subscribe": subscribe} if subscribe is not None else {}),
        **({"subscribePattern": subscribe_pattern} if subscribe_pattern is not None else {}),
    }
    narrows = subscribe or subscribe_pattern or columns or upsert_by
    narrows = narrows or starting_offsets != "earliest"
    if to == "store" and narrows:
        raise UsageError("--to store dispatches all messages: no --subscribe, --columns and such")

    from mqlake.cli.following import beside, open_spark, stop_on_signals
    from mqlake.spark.follow.body_columns import parse_format
    from mqlake.spark.follow.options import (
        FollowOptions,
        Format,
        StoreQuery,
        chosen_columns,
        partition_parts,
        target_of,
    )

    target, url = target_of(out or str(store.absolute()), checkpoint, to)
    query = StoreQuery(
        store=store.absolute(),
        checkpoint=(checkpoint or target / STATE / "checkpoint").absolute(),
        source=source,
        columns=chosen_columns(columns),
        once=once,
        processing_time=processing_time,
    )
    options = None
    if to != "store":
        options = FollowOptions(
            **query.members(),
            format=Format(to),
            out=target,
            url=url,
            storage=settings,
            target_file_size=target_file_size,
            target_lag=target_lag,
            compact_every=compact_every,
            keep_versions=keep_versions * 3600 if expire else None,
            publish_after=publish_after,
            catalog=catalog,
            catalog_name=catalog_name,
            catalog_options=_named_values(catalog_option, "--catalog-option"),
            table=table,
            is_per_topic=table_per_topic,
            upsert_by=upsert_by,
            partition_by=partition_parts(partition_by),
            body=parse_format(decode, _named_values(decode_option, "--decode-option")),
        )
    if options is not None and (check or replay):
        return beside(options, master, is_check=check, json=json)
    start = time.perf_counter()
    with (
        stop_on_signals() as stop,
        open_spark(master, progress, store, target) as (session, report),
    ):
        if options is None:
            from mqlake.spark.follow.derived_files import dispatch

            found = dispatch(session, query, stop, report)
        else:
            from mqlake.spark.follow.job import follow as run

            found = run(session, options, stop, report)
    seconds = time.perf_counter() - start
    if json:
        write_json(timed(found, seconds))
    else:
        from mqlake.cli.views.follow import view

        draw(view(found, seconds))
    return 0


def _storage_settings(given: list[str] | None, out: str | None) -> dict[str, str]:
    """Return the settings of the object store."""
    if not given:
        return {}
    if out is None or "://" not in out:
        raise UsageError("--storage-option goes with --out s3://BUCKET/PREFIX")
    from mqlake.storage.object_stores import check_settings

    return check_settings(_named_values(given, "--storage-option"))


def _named_values(given: list[str] | None, option: str) -> dict[str, str]:
    """Return NAME=VALUE options by name; an error does not show the value, it may be a secret."""
    found: dict[str, str] = {}
    for one in given or []:
        name, separator, value = one.partition("=")
        if not separator or not name:
            raise UsageError(f"{option} takes NAME=VALUE")
        found[name] = value
    return found
