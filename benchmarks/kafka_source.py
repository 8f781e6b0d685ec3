"""The Spark source `kafka-log` beside Spark's Kafka source over a broker, on the same log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import spark_peer
from benchmarks.bench import Bench, interleave, remove, say, seconds
from benchmarks.ready_batches import ready
from benchmarks.results import Bar, Section, Series
from mqlake.spark.kafka_log.data_source import KafkaLogDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.peer.kafka_broker import Broker

SHAPES = {"1 KiB": 1 << 10, "100 bytes": 100}
"""Size of a record's value."""
WANTED = 3
PARTITIONS = 2
TOPIC = "benchmark"

METHOD = """\
Records with values of 1 KiB and of 100 bytes, keys of 10 bytes and no compression, {size} MiB in
{partitions} partitions, sent by Spark to a broker on this machine. Both sources read the same
partitions in one Spark session (`local[{cores}]`): Spark's Kafka source through the broker, which
has the log in memory; `kafka-log` from the broker's log directory, while the broker runs. All
columns of all records are built, and discarded (`format("noop")`). Before the first round, counts
and sums over hashes of all columns are found equal. Ready batches: a Python data source that
returns one prepared Arrow batch of the same columns again and again, which shows Spark's own share
of the time. Each round loads its DataFrames again, so that Spark plans every query. The first two
rounds are dropped."""


def measure(bench: Bench) -> Section:
    """Measure whole queries."""
    series: list[Series] = []
    bars: list[Bar] = []
    for shape, value in SHAPES.items():
        directory = bench.directory / f"kafka-source-{value}"
        with (
            spark_peer.open_broker(directory) as broker,
            spark_peer.open_spark(directory) as spark,
        ):
            records = bench.size // (value + 10)
            say(f"sending {records} records of {shape}")
            _send(spark, broker, records, value)
            frames: dict[str, Callable[[], DataFrame]] = {
                "Spark's Kafka source": partial(spark_peer.from_kafka, spark, broker, TOPIC),
                "kafka-log": partial(_from_log, spark, broker),
            }
            assert len({_check_sum(make()) for make in frames.values()}) == 1, "other rows"
            options = {"path": str(broker.logs), "subscribe": TOPIC}
            file = directory / "ready.arrow"
            frames["ready batches"] = ready(
                spark, KafkaLogDataSource(options), file, records, PARTITIONS
            )
            runs = {name: partial(_run, make) for name, make in frames.items()}
            answers = interleave(runs, dropped=2, repetitions=bench.repetitions)
        remove(directory)
        work = {"records": records, "bytes": bench.size}
        found = [
            Series(f"{name}, records of {shape}", "s", seconds(told), work)
            for name, told in answers.items()
        ]
        series += found
        text = f"rate of `kafka-log`, records of {shape}, against Spark's Kafka source"
        bars.append(Bar(text, "≥", WANTED, found[0].median / found[1].median, "x"))
    method = METHOD.format(size=bench.size >> 20, partitions=PARTITIONS, cores=spark_peer.CORES)
    return Section("kafka_source", "Kafka: reading with Spark", method, series, bars)


def _send(spark: SparkSession, broker: Broker, records: int, value: int) -> None:
    spark_peer.create_topic(spark, broker, TOPIC, PARTITIONS)
    text = "sha2(cast(id as string), 512)"
    rows = spark.range(records).selectExpr(
        "cast(lpad(cast(id as string), 10, '0') as binary) key",
        f"cast(rpad({text}, {value}, {text}) as binary) value",
    )
    spark_peer.to_kafka(rows, broker, TOPIC)


def _from_log(spark: SparkSession, broker: Broker) -> DataFrame:
    return spark.read.format("kafka-log").option("subscribe", TOPIC).load(str(broker.logs))


def _check_sum(frame: DataFrame) -> tuple[Any, ...]:
    columns = "key, value, topic, partition, offset, timestamp, timestampType"
    whole = frame.selectExpr(f"cast(xxhash64({columns}) as decimal(38)) hash")
    [row] = whole.selectExpr("count(*)", "sum(hash)").collect()
    return tuple(row)


def _run(make: Callable[[], DataFrame]) -> dict[str, Any]:
    return {"seconds": spark_peer.noop(make())}
