"""Follow a store with Spark: write its messages to a lake table as they arrive.

`--to delta`, `iceberg` and `parquet` write each message to the table `--out` exactly once, even if
the program is killed and restarted, because the table records which micro-batches it contains. By
default, the table is partitioned by topic and by the UTC day of `storeTimestamp`. Without `--once`,
the program runs until SIGTERM or Ctrl-C, and then finishes the current micro-batch.

`--to store` keeps `consumequeue/`, `index/` and `checkpoint` of the store itself up to date while
something other than a broker, such as a copy or a restore, appends to its log. No broker may own
the store meanwhile.

Damaged parts of the log, and rows that the table refuses, go to a table of dead letters beside it,
so they do not stop the query. `--check` compares the table and its dead letters with the log,
record by record, and exits with 1 if they differ. `--replay` moves dead letters into the table if
it now accepts them. `--check` does not need Spark; `--replay` needs it only with `--decode`.

With `--replica-of`, STORE is a copy of a running master, as `mqlake replica` keeps it. If several
masters are copied, their messages go to one table, and `--json` prints one line for each master.
`--keep-hours` and `--keep-bytes` remove only segments whose messages are in the table.

JSON: `store`, `output`, `format`, `checkpoint`, `batches` (micro-batches with messages),
`messages`, `files` and `bytesWritten` (before small files were merged), `filesMerged`,
`deadLetters` (added to their table), `seconds`.

With `--check`: `output`, `records` (of the log), `rows` (of the table), `refused` (the refused
messages among the dead letters), `older` (rows whose part of the log has been deleted since),
`damagedBytes` (damaged bytes of the log), `damagedBytesNoted` (those that the dead letters
contain), `columns` (columns that the checksums cover), `ok`, `seconds`. `records`, `rows` and
`refused` are objects with `count` and `checksum`.

With `--replay`: `output`, `messages` (added to the table), `left` (remaining dead letters),
`seconds`.

With `--to store`: `store`, `checkpoint`, `isRebuilt` (whether missing derived files were built
first), `batches`, `records` (dispatched), `logEnd` (physical offset), `seconds`.
"""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from mqlake.cli import options as shared
from mqlake.cli import table_options as lake
from mqlake.cli.combinations import check_combination, named_values
from mqlake.cli.options import UsageError
from mqlake.cli.output import draw, timed, write_json
from mqlake.cli.replicating import Masters, follow_masters
from mqlake.cli.streams import DEFAULT_NAMES, Names

EXAMPLES = (
    "mqlake follow /data/rocketmq/store --to delta --out /lake/messages --once",
    "mqlake follow /data/rocketmq/store --to iceberg --out /lake/orders --subscribe Orders",
    "mqlake follow /data/rocketmq/store --to delta --out /lake/topics --table-per-topic",
    "mqlake follow /data/rocketmq/store --to delta --out /lake/messages --check",
    "mqlake follow /data/rocketmq/store --to delta --out s3://lake/messages --checkpoint /data/at",
    "mqlake follow /data/copy/store --to store",
    "mqlake follow /data/copy --to delta --out /lake/all --replica-of-cluster DefaultCluster",
)


def follow(
    store: shared.Store,
    to: Annotated[
        Literal["delta", "iceberg", "parquet", "store"],
        typer.Option(
            "--to",
            help="Format of the table; store: write no table, but update the consume queues, index "
            "and checkpoint of STORE itself.",
            show_default=False,
        ),
    ],
    out: lake.Out = None,
    checkpoint: lake.Checkpoint = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all current messages are written.")
    ] = False,
    target_lag: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Maximum time that messages wait for a micro-batch to fill.",
        ),
    ] = 60.0,
    processing_time: Annotated[
        str, typer.Option(metavar="INTERVAL", help="Minimum time between two checks of the log.")
    ] = "1 second",
    max_offsets_per_trigger: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of messages in a micro-batch; default: 4 GiB of the log, or"
            " 500,000 messages with --decode or --upsert-by.",
        ),
    ] = None,
    subscribe: Annotated[
        str | None, typer.Option(metavar="TOPICS", help="Only these topics, separated by commas.")
    ] = None,
    subscribe_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="Only topics whose whole name matches this regular expression."
        ),
    ] = None,
    starting_offsets: Annotated[
        str,
        typer.Option(metavar="WHERE", help="Where a new query starts: earliest, latest, or JSON."),
    ] = "earliest",
    columns: lake.Columns = None,
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(
            "--fail-on-data-loss/--no-fail-on-data-loss",
            help="Fail at damage, at messages deleted before they were read, and at messages that"
            " the table refuses, instead of writing dead letters.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the table with the log, then stop.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Move dead letters into the table, then stop.")
    ] = False,
    target_file_size: lake.TargetFileSize = 128 << 20,
    compact_every: lake.CompactEvery = 10,
    keep_versions: lake.KeepVersions = 168.0,
    expire: lake.Expire = True,
    publish_after: lake.PublishAfter = 60.0,
    storage_option: lake.StorageOption = None,
    catalog: lake.Catalog = None,
    catalog_name: lake.CatalogName = "default",
    catalog_option: lake.CatalogOption = None,
    table: lake.Table = None,
    decode: lake.Decode = None,
    decode_option: lake.DecodeOption = None,
    upsert_by: lake.UpsertBy = None,
    partition_by: lake.PartitionBy = "topic,day",
    table_per_topic: lake.TablePerTopic = False,
    replica_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MASTER",
            help="Copy this running master (broker name or host:port) to STORE; may be repeated:"
            " each master then has a directory in STORE.",
        ),
    ] = None,
    replica_of_cluster: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER", help="Copy all masters of this cluster, each to STORE/brokerName."
        ),
    ] = None,
    names: Names = DEFAULT_NAMES,
    ha_tls: shared.HaTls = True,
    keep_hours: shared.KeepHours = None,
    keep_bytes: shared.KeepBytes = None,
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Write a store's messages to a lake table as they arrive."""
    check_combination(
        to,
        {
            "--out": out,
            "--subscribe": subscribe,
            "--subscribe-pattern": subscribe_pattern,
            "--starting-offsets": starting_offsets if starting_offsets != "earliest" else None,
            "--columns": columns,
            "--check": check,
            "--replay": replay,
            "--catalog": catalog,
            "--catalog-option": catalog_option,
            "--table": table,
            "--decode": decode,
            "--decode-option": decode_option,
            "--upsert-by": upsert_by,
            "--table-per-topic": table_per_topic,
            "--replica-of": replica_of,
            "--replica-of-cluster": replica_of_cluster,
            "--no-ha-tls": not ha_tls,
            "--keep-hours": keep_hours,
            "--keep-bytes": keep_bytes,
        },
    )
    masters = Masters(
        tuple(replica_of or ()), replica_of_cluster, names, keep_hours, keep_bytes, ha_tls
    )
    settings = _storage_settings(storage_option, out)
    source = {
        "startingOffsets": starting_offsets,
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        **(
            {"maxOffsetsPerTrigger": str(max_offsets_per_trigger)}
            if max_offsets_per_trigger is not None
            else {}
        ),
        **({"subscribe": subscribe} if subscribe is not None else {}),
        **({"subscribePattern": subscribe_pattern} if subscribe_pattern is not None else {}),
    }

    from mqlake.cli.following import beside, open_spark, stop_on_signals
    from mqlake.lake.options import (
        STATE,
        FollowOptions,
        Format,
        StoreQuery,
        chosen_columns,
        partition_parts,
        target_of,
    )
    from mqlake.spark.follow.body_columns import parse_format

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
            catalog_options=named_values(catalog_option, "--catalog-option"),
            table=table,
            is_per_topic=table_per_topic,
            upsert_by=upsert_by,
            partition_by=partition_parts(partition_by),
            body=parse_format(decode, named_values(decode_option, "--decode-option")),
        )
    if options is not None and (check or replay or masters):
        if masters:
            return follow_masters(options, masters, master, progress, json=json)
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
        raise UsageError(
            "--storage-option needs an --out on an object store, such as s3://BUCKET/PREFIX"
        )
    from mqlake.storage.object_stores import check_settings

    return check_settings(named_values(given, "--storage-option"))
