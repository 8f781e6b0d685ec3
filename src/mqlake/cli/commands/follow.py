"""Follow a store with Spark: write its messages to a lake table as they arrive.

`--to delta`, `iceberg` and `parquet` write each message to the table `--out` exactly once, even if
the program is killed and restarted, because the table records which micro-batches it contains. By
default, the table is partitioned by topic and by the UTC day of `storeTimestamp`. Without `--once`,
the program runs until SIGTERM or Ctrl-C, and then finishes the current micro-batch.

`--to store` keeps `consumequeue/`, `index/` and `checkpoint` of the store itself up to date while
something other than a broker, such as a copy or a restore, appends to its log. No broker may own
the store meanwhile.

Rows are messages as consumers receive them: bodies are decompressed, and the messages of an inner
batch are rows. A body that cannot be decompressed is written as stored, and its `sysFlag` says that
it is compressed. A table that an earlier version began has bodies as stored, and keeps them.

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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqlake.cli import options as shared
from mqlake.cli.combinations import check_combination, named_values
from mqlake.cli.follow_metrics import served
from mqlake.cli.follow_options import PaceOptions, ReplicaOfOptions, RunOptions, SourceOptions
from mqlake.cli.option_groups import grouped
from mqlake.cli.options import UsageError
from mqlake.cli.output import draw, timed, write_json
from mqlake.cli.progress import reported_servers
from mqlake.cli.replicating import follow_masters
from mqlake.cli.table_options import TableOptions, TablePlace

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from mqlake.cli.progress import Report
    from mqlake.lake.options import FollowOptions, StoreQuery
    from mqlake.spark.follow import DispatchReport, FollowReport
    from mqlake.spark.session import Session

    Work = Callable[[Session, Event, Report | None], FollowReport | DispatchReport]

EXAMPLES = (
    "mqlake follow /data/rocketmq/store --to delta --out /lake/messages --once",
    "mqlake follow /data/rocketmq/store --to iceberg --out /lake/orders --subscribe Orders",
    "mqlake follow /data/rocketmq/store --to delta --out /lake/topics --table-per-topic",
    "mqlake follow /data/rocketmq/store --to delta --out /lake/messages --check",
    "mqlake follow /data/rocketmq/store --to delta --out s3://lake/messages --checkpoint /data/at",
    "mqlake follow /data/copy/store --to store",
    "mqlake follow /data/copy --to delta --out /lake/all --replica-of-cluster DefaultCluster",
)


@grouped
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
    *,
    place: TablePlace,
    pace: PaceOptions,
    source: SourceOptions,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the table with the log, then stop.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Move dead letters into the table, then stop.")
    ] = False,
    files: TableOptions,
    copied: ReplicaOfOptions,
    run: RunOptions,
) -> int:
    """Write a store's messages to a lake table as they arrive."""
    check_combination(
        to,
        {
            "--out": place.out,
            "--subscribe": source.subscribe,
            "--subscribe-pattern": source.subscribe_pattern,
            "--starting-offsets": (
                source.starting_offsets if source.starting_offsets != "earliest" else None
            ),
            "--columns": source.columns,
            "--system-topics": source.system_topics is not None,
            "--decompress": source.decompress is not None,
            "--check": check,
            "--replay": replay,
            "--catalog": files.catalog,
            "--catalog-option": files.catalog_option,
            "--table": files.table,
            "--decode": files.decode,
            "--decode-option": files.decode_option,
            "--upsert-by": files.upsert_by,
            "--table-per-topic": files.table_per_topic,
            "--replica-of": copied.replica_of,
            "--replica-of-cluster": copied.replica_of_cluster,
            "--no-ha-tls": not copied.ha_tls,
            "--keep-hours": copied.keep_hours,
            "--keep-bytes": copied.keep_bytes,
            "--metrics": run.metrics,
        },
    )
    pages = None if run.metrics is None else shared.host_and_port(run.metrics)
    masters = copied.masters()
    settings = _storage_settings(files.storage_option, place.out)

    from mqlake.cli.following import beside
    from mqlake.lake.options import STATE, StoreQuery, chosen_columns, target_of

    target, url = target_of(place.out or str(store.absolute()), place.checkpoint, to)
    query = StoreQuery(
        store=store.absolute(),
        checkpoint=(place.checkpoint or target / STATE / "checkpoint").absolute(),
        source=source.query_options(pace.max_offsets_per_trigger, is_table=to != "store"),
        columns=chosen_columns(source.columns),
        once=pace.once,
        processing_time=pace.processing_time,
    )
    if to == "store":
        return _dispatch(query, store, target, run)
    options = _follow_options(to, query, target, url, settings, files=files, pace=pace)
    if masters:
        with reported_servers(run.progress):
            return follow_masters(
                options, masters, run.master, run.progress, pages=pages, json=run.json
            )
    if check or replay:
        return beside(options, run.master, is_check=check, json=run.json)
    return _follow(options, store, target, run, pages)


def _follow_options(
    to: str,
    query: StoreQuery,
    target: Path,
    url: str | None,
    storage: dict[str, str],
    *,
    files: TableOptions,
    pace: PaceOptions,
) -> FollowOptions:
    from mqlake.lake.options import FollowOptions, Format, partition_parts
    from mqlake.spark.follow.body_columns import parse_format

    return FollowOptions(
        **query.members(),
        format=Format(to),
        out=target,
        url=url,
        storage=storage,
        target_file_size=files.target_file_size,
        target_lag=pace.target_lag,
        compact_every=files.compact_every,
        keep_versions=files.keep_versions * 3600 if files.expire else None,
        publish_after=files.publish_after,
        catalog=files.catalog,
        catalog_name=files.catalog_name,
        catalog_options=named_values(files.catalog_option, "--catalog-option"),
        table=files.table,
        is_per_topic=files.table_per_topic,
        upsert_by=files.upsert_by,
        partition_by=partition_parts(files.partition_by),
        body=parse_format(files.decode, named_values(files.decode_option, "--decode-option")),
    )


def _dispatch(query: StoreQuery, store: Path, target: Path, run: RunOptions) -> int:
    """Keep the derived files of the store up to date."""

    def work(session: Session, stop: Event, report: Report | None) -> DispatchReport:
        from mqlake.spark.follow.derived_files import dispatch

        return dispatch(session, query, stop, report)

    return _run(work, store, target, run)


def _follow(
    options: FollowOptions,
    store: Path,
    target: Path,
    run: RunOptions,
    pages: tuple[str, int] | None,
) -> int:
    """Write messages to the table."""

    def work(session: Session, stop: Event, report: Report | None) -> FollowReport:
        from mqlake.spark.follow.job import follow as follow_store
        from mqlake.spark.follow.metrics import FollowProgress

        followed = FollowProgress(str(store), report)
        with served(pages, [followed]):
            return follow_store(session, options, stop, followed.report, totals=followed.totals)

    return _run(work, store, target, run)


def _run(work: Work, store: Path, target: Path, run: RunOptions) -> int:
    """Do work on Spark until it ends, or a signal stops it; show its report."""
    from mqlake.cli.following import open_spark, stop_on_signals

    start = time.perf_counter()
    with (
        stop_on_signals() as stop,
        open_spark(run.master, run.progress, store, target) as (session, report),
    ):
        found = work(session, stop, report)
    _show(found, time.perf_counter() - start, as_json=run.json)
    return 0


def _show(found: FollowReport | DispatchReport, seconds: float, *, as_json: bool) -> None:
    if as_json:
        write_json(timed(found, seconds))
        return
    from mqlake.cli.views.follow import view

    draw(view(found, seconds))


def _storage_settings(given: list[str] | None, out: str | None) -> dict[str, str]:
    """Return the settings of the object store."""
    if not given:
        return {}
    if out is None or "://" not in out:
        raise UsageError(
            "--storage-option needs an --out on an object store, such as s3://BUCKET/PREFIX"
        )
    from mqlake.storage.remote.object_stores import check_settings

    return check_settings(named_values(given, "--storage-option"))
