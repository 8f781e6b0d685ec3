"""The Spark source `rocketmq` beside Spark's Kafka source on the same payloads, and Parquet."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.client.servers import create_topic

from benchmarks import spark_peer
from benchmarks.bench import Bench, interleave, remove, say, seconds
from benchmarks.broker.sides import MqlakeBroker, Side
from benchmarks.commit_log import QUEUES_EACH, TOPICS, key, write_commit_log
from benchmarks.ready_batches import ready
from benchmarks.results import Bar, Section, Series
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.query.store.columns import COLUMNS
from mqlake.query.store.options import read_options
from mqlake.query.store.plan import plan_batch
from mqlake.spark.data_source import RocketMQDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.peer.kafka_broker import Broker

SHAPES = {"1 KiB": (1 << 10, 10), "128 bytes": (1 << 7, 8)}
"""Size of a body, and how many bytes of the wanted size there is one message for, as a power."""
BARE_RECORD = 230  # of a record beside its body, about
PARTITIONS = 2
TOPIC = "benchmark"
LIVE_TOPICS = [f"topic-{number}" for number in range(TOPICS)]

ALL, WITHOUT_PROPERTIES, METADATA = "every column", "without properties", "without body"
KAFKAS = "Kafka's columns"
LIVE = f"live, {KAFKAS}"
FEW, FEW_AT_ONCE = f"live, {KAFKAS}, 32 at a time", 32
LIMITS = {
    "maxTransferCountOnMessageInMemory": "1024",
    "maxTransferBytesOnMessageInMemory": str(4 << 20),
}
"""Of one answer of mqlake's broker."""
COLUMN_SETS = {
    WITHOUT_PROPERTIES: tuple(name for name in COLUMNS if name != "properties"),
    ALL: COLUMNS,
    METADATA: tuple(name for name in COLUMNS if name != "body"),
    KAFKAS: ("uniqKey", "body", "topic", "queueId", "queueOffset", "storeTimestamp"),
}
WANTED = {WITHOUT_PROPERTIES: 2, ALL: 1.5, METADATA: 5, KAFKAS: 3, LIVE: 1}
WANTED_OF_READY = 0.8
WANTED_OF_PARQUET = 2

SPARSE_SEGMENTS, SPARSE_USED = 10, 1 << 26
WANTED_SHARE, WANTED_SECONDS = 1, 1

METHOD = """\
The same bodies and unique keys are in a store, of which mqlake's broker has made {queues} queues,
and, sent by Spark, in a topic of a Kafka broker ({partitions} partitions, no compression). Both
brokers run on this machine. "Live" reads through mqlake's broker, whose answers have up to 1,024
messages or 4 MiB, or 32 messages, which is RocketMQ's default; the others read the store as a
directory. All is read in one Spark session (`local[{cores}]`, Spark's default settings), and
discarded (`format("noop")`). All files are in the page cache. Parquet: every column of the same
rows, written by Spark without compression. Ready batches: a Python data source that returns one
prepared Arrow batch of the same columns again and again, which shows Spark's own share of the time.
Each round loads its DataFrames again, so that Spark plans every query. The first two rounds are
dropped."""

LOOKUP_METHOD = """\
A store of {segments} segments of {size} MiB, each with {used} MiB of records and sparse after them,
with its queue and index files. Each round runs a query with the option `keys` for another key, in a
warm Spark session. The share of the log is what the tasks of the query read."""


def measure(bench: Bench) -> Section:
    """Measure whole queries."""
    series: list[Series] = []
    bars: list[Bar] = []
    for shape, (body, power) in SHAPES.items():
        directory = bench.directory / f"spark-source-{body}"
        with (
            spark_peer.open_broker(directory) as broker,
            spark_peer.open_spark(directory) as spark,
        ):
            answers, records = _measure_shape(bench, spark, broker, body, bench.size >> power)
        remove(directory)
        work = {"messages": records}
        found = {
            name: Series(f"{name}, bodies of {shape}", "s", seconds(told), work)
            for name, told in answers.items()
        }
        series += found.values()
        bars += _bars(found, shape)
    queues = TOPICS * QUEUES_EACH
    method = METHOD.format(queues=queues, partitions=PARTITIONS, cores=spark_peer.CORES)
    return Section("spark_source", "Reading with Spark", method, series, bars)


def _measure_shape(
    bench: Bench, spark: SparkSession, broker: Broker, body: int, messages: int
) -> tuple[dict[str, list[dict[str, Any]]], int]:
    store, table = broker.logs.parent / "store", broker.logs.parent / "parquet"
    say(f"writing about {messages} messages of {body} bytes")
    size = messages * (body + BARE_RECORD) // 2
    log = write_commit_log(
        store / "commitlog", segment_size=size, segments=2, record_size=body + BARE_RECORD
    )
    live = _serve(store.parent, size)
    source = partial(_from_store, spark, store)
    spark_peer.create_topic(spark, broker, TOPIC, PARTITIONS)
    sent = source(("uniqKey", "body")).selectExpr("cast(uniqKey as binary) key", "body value")
    spark_peer.to_kafka(sent, broker, TOPIC)
    source(COLUMNS).write.option("compression", "uncompressed").parquet(str(table))
    frames: dict[str, Callable[[], DataFrame]] = {
        "Kafka": partial(spark_peer.from_kafka, spark, broker, TOPIC),
        "Parquet": lambda: spark.read.parquet(str(table)),
        **{name: partial(source, columns) for name, columns in COLUMN_SETS.items()},
        LIVE: partial(_from_broker, spark, live),
        FEW: partial(_from_broker, spark, live, FEW_AT_ONCE),
    }
    for name, make in frames.items():
        assert make().count() == log.records, name
    for name, columns in COLUMN_SETS.items():
        options = {"path": str(store), "columns": ",".join(columns)}
        file = store.parent / f"{name}.arrow"
        frames[f"ready batches, {name}"] = ready(
            spark, RocketMQDataSource(options), file, log.records, PARTITIONS
        )
    runs = {name: partial(_run, make) for name, make in frames.items()}
    try:
        return interleave(runs, dropped=2, repetitions=bench.repetitions), log.records
    finally:
        live.stop()


def _serve(directory: Path, segment_size: int) -> Side:
    """Start mqlake's broker on the store in a directory, which has a commit log alone."""
    broker = MqlakeBroker(directory, mappedFileSizeCommitLog=str(segment_size), **LIMITS)
    for topic in LIVE_TOPICS:
        asyncio.run(create_topic(broker.broker, topic, QUEUES_EACH))
    return broker


def _bars(found: dict[str, Series], shape: str) -> list[Bar]:
    kafka, parquet = found["Kafka"].median, found["Parquet"].median
    bars = [
        Bar(
            f"rate of `rocketmq` {name}, bodies of {shape}, against Spark's Kafka source",
            "≥",
            wanted,
            kafka / found[name].median,
            "x",
        )
        for name, wanted in WANTED.items()
    ]
    bars += [
        Bar(
            f"rate of `rocketmq` {name}, bodies of {shape}, against ready batches",
            "≥",
            WANTED_OF_READY,
            found[f"ready batches, {name}"].median / found[name].median,
            "x",
        )
        for name in COLUMN_SETS
    ]
    text = f"time of `rocketmq`, {ALL}, bodies of {shape}, against Parquet"
    return [*bars, Bar(text, "≤", WANTED_OF_PARQUET, found[ALL].median / parquet, "x")]


def _from_store(spark: SparkSession, store: Path, columns: tuple[str, ...]) -> DataFrame:
    reader = spark.read.format("rocketmq").option("columns", ",".join(columns))
    return reader.load(str(store))


def _from_broker(spark: SparkSession, broker: Side, at_once: int = 1024) -> DataFrame:
    reader = spark.read.format("rocketmq").option("nameServer", broker.names)
    reader = reader.option("columns", ",".join(COLUMN_SETS[KAFKAS]))
    reader = reader.option("pullBatchSize", at_once)
    return reader.option("subscribe", ",".join(LIVE_TOPICS)).load()


def _run(make: Callable[[], DataFrame]) -> dict[str, Any]:
    return {"seconds": spark_peer.noop(make())}


def measure_lookup(bench: Bench) -> Section:
    """Look keys up in a large store."""
    directory = bench.directory / "spark-lookup"
    store = directory / "store"
    used = min(SPARSE_USED, bench.size)
    say(f"writing {SPARSE_SEGMENTS} sparse segments")
    log = write_commit_log(
        store / "commitlog", segment_size=bench.size, segments=SPARSE_SEGMENTS, used=used
    )
    rebuild(store, LocalEngine(spark_peer.CORES))
    shares: list[float] = []
    times: list[float] = []
    with spark_peer.open_spark(directory) as spark:
        for number in range(2 + bench.repetitions):
            wanted = key((number + 1) * log.records // (3 + bench.repetitions))
            plan = plan_batch(read_options({"path": str(store), "keys": wanted}))
            read = sum(piece.end - piece.start for task in plan.tasks for piece in task.pieces)
            shares.append(100 * read / log.size)
            frame = spark.read.format("rocketmq").option("keys", wanted).load(str(store))
            begin = time.perf_counter()
            [row] = frame.collect()
            times.append(time.perf_counter() - begin)
            assert row["keys"] == [wanted]
    remove(directory)
    series = [Series("a lookup, including planning", "s", times[2:])]
    bars = [
        Bar("share of the log that a key lookup reads", "<", WANTED_SHARE, max(shares), "%"),
        Bar("time of a key lookup", "<", WANTED_SECONDS, statistics.median(times[2:]), "s"),
    ]
    method = LOOKUP_METHOD.format(segments=SPARSE_SEGMENTS, size=bench.size >> 20, used=used >> 20)
    return Section("spark_lookup", "A key lookup with Spark", method, series, bars)
