"""Union reads: how soon a message is in a query's result, and what planning takes by lake size."""

# pyright: basic
# Reason: pyarrow and PySpark carry no types, or few.

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from benchmarks.bench import Bench, interleave, remove, say, seconds
from benchmarks.results import Bar, Section, Series
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.followers.identity import CheckpointIdentity, note_query
from mqlake.lake.options import FollowOptions, Format
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.tables.opening import open_table
from mqlake.lake.union.plan import plan_union
from mqlake.query.store.fingerprint import fingerprint
from mqlake.query.store.options import read_options
from mqlake.query.store.place import open_store
from mqlake.spark.session import open_session
from mqlake.store import BlockingMessageStore, Message

COLUMNS = ("topic", "queueId", "queueOffset", "storeTimestamp", "physicalOffset")
TOPIC = "Orders"
FILES = (8, 80, 800)
ROWS = (1_250, 125_000)
"""Rows of a file."""

WAITING = 10_000
BODY = 1 << 10
FOLLOWER = "f" * 32
WANTED_SECONDS = 1
WANTED_GROWTH = 1.25

METHOD = """\
Tables of {files} files with {rows:,} rows each, so up to {most:,} M rows. The files are links to
one file; their entries in the table's metadata are real. The log has {waiting:,} newer messages of
1 KiB that are not in the table. Freshness: from the acknowledgement of a put to the answer of a new
query (`.load()`, planning, the tasks) for the greatest queue offset of its topic in table and log,
in a warm Spark session with two threads; the answer must be that message's offset. Plan: the
driver's planning of the same query alone, from opening the table to its tasks. The first two rounds
are dropped."""


@dataclass(frozen=True)
class Lake:
    """A table, and the store that it follows."""

    name: str
    table: Path
    rows: int

    def options(self, store: Path) -> dict[str, str]:
        """Return the options of a query."""
        return {"path": str(store), "table": str(self.table), "subscribe": TOPIC}


def measure(bench: Bench) -> Section:
    """Measure both for tables of several sizes in two formats."""
    store = bench.directory / "store-union"
    with BlockingMessageStore.open(store) as live:
        live.put_many([_message() for _ in range(10)])
        lakes = list(_lakes(bench, store))
        live.put_many([_message() for _ in range(WAITING)])
        plans = {lake.name: partial(_plan, lake.options(store)) for lake in lakes}
        planned = interleave(plans, dropped=2, repetitions=bench.repetitions)
        with _spark() as spark:
            queries = {
                lake.name: partial(_freshness, spark, live, lake.options(store))
                for lake in lakes
                if lake.rows == FILES[-1] * ROWS[-1]
            }
            answered = interleave(queries, dropped=2, repetitions=bench.repetitions)
    for lake in lakes:
        remove(lake.table)
    remove(store)
    fresh = [Series(f"freshness, {name}", "s", seconds(told)) for name, told in answered.items()]
    plan = {name: Series(f"plan, {name}", "s", seconds(told)) for name, told in planned.items()}
    bars = [Bar(one.name, "<", WANTED_SECONDS, one.median, "s") for one in fresh]
    bars += [_growth(plan, format_) for format_ in (Format.DELTA, Format.ICEBERG)]
    method = METHOD.format(
        files=", ".join(map(str, FILES)),
        rows=ROWS[-1],
        most=FILES[-1] * ROWS[-1] // 1_000_000,
        waiting=WAITING,
    )
    return Section("union_read", "Union reads", method, [*fresh, *plan.values()], bars)


def _growth(plan: dict[str, Series], format_: Format) -> Bar:
    few, many = (plan[_name(format_, FILES[-1], rows)] for rows in ROWS)
    times = f"plan time of {format_} with {ROWS[1] // ROWS[0]} times the rows in as many files"
    return Bar(times, "≤", WANTED_GROWTH, many.median / few.median, "x")


def _name(format_: Format, files: int, rows: int) -> str:
    return f"{format_}, {files} files, {files * rows / 1e6:,.0f} M rows"


def _lakes(bench: Bench, store: Path) -> Iterator[Lake]:
    with open_store(str(store)) as opened:
        offset = opened.snapshot.end.offset
        end = CommittedEnd(offset, fingerprint(opened.log, offset))
    for format_ in (Format.DELTA, Format.ICEBERG):
        for files, rows in [*((files, ROWS[-1]) for files in FILES), (FILES[-1], ROWS[0])]:
            name = _name(format_, files, rows)
            say(f"a table: {name}")
            out = bench.directory / f"lake-{format_}-{files}-{rows}"
            options = FollowOptions(
                store=store,
                checkpoint=out / "checkpoint",
                columns=COLUMNS,
                format=format_,
                out=out,
                target_file_size=1 << 30,
            )
            note_query(options, CheckpointIdentity(FOLLOWER, str(store), "", {"physicalOffset": 0}))
            table = open_table(options)
            (first,) = write_all(table.shape(FOLLOWER, 0), [_rows(rows)])
            table.commit(FOLLOWER, 0, list(_links(first, files)), end=end)
            yield Lake(name, out, files * rows)


def _rows(count: int) -> pa.RecordBatch:
    """Return messages of a topic that the query does not ask for."""
    numbers = range(count)
    columns = [["Older"] * count, [0] * count, numbers, [1_700_000_000_000_000] * count, numbers]
    schema = table_schema(COLUMNS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _links(first: DataFile, count: int) -> Iterator[DataFile]:
    """Yield a file and links to it."""
    yield first
    for number in range(1, count):
        path = Path(first.path).with_name(f"mqlake-{number:08d}.parquet")
        os.link(first.path, path)
        yield msgspec.structs.replace(first, path=str(path))


def _message() -> Message:
    return Message(TOPIC, os.urandom(BODY), queue_id=0)


def _plan(options: dict[str, str]) -> dict[str, Any]:
    begin = time.perf_counter()
    plan_union(read_options(options, streaming=False), COLUMNS)
    return {"seconds": time.perf_counter() - begin}


@contextmanager
def _spark() -> Iterator[Any]:
    with open_session("local[2]") as session:
        yield session.spark


def _freshness(spark: Any, live: BlockingMessageStore, options: dict[str, str]) -> dict[str, Any]:
    put = live.put(_message())
    begin = time.perf_counter()
    frame = spark.read.format("rocketmq").options(**options, columns="topic,queueOffset").load()
    ((found,),) = frame.selectExpr("max(queueOffset)").collect()
    taken = time.perf_counter() - begin
    if found != put.queue_offset:
        raise AssertionError(f"offset {found} instead of {put.queue_offset}")
    return {"seconds": taken}
