"""What users build from streams: windows, joins, and queries that outlive parts of the log."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlake.store import BlockingMessageStore, Message
from tests.query.store.growing import GrowingStore
from tests.store.make_store import START

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark]

WINDOW, LATENESS = 100, 200
"""Milliseconds."""


def stream(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    given = {"startingOffsets": "earliest", **options}
    return spark.readStream.format("rocketmq").options(**given).load(str(path))


def run(frame: DataFrame, checkpoint: Path, out: Path) -> StreamingQuery:
    """Process what is there, and append it to Parquet files."""
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(out))
    )
    query.awaitTermination()
    return query


def keys(spark: SparkSession, out: Path) -> list[str]:
    return sorted(row.key for row in spark.read.parquet(str(out)).collect())


def test_windows_with_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as sql

    store = GrowingStore(tmp_path / "store")
    store.grow(1000)
    frame = stream(spark, store.path, columns="topic,storeTimestamp", maxOffsetsPerTrigger="300")
    counts = (
        frame.withWatermark("storeTimestamp", f"{LATENESS} milliseconds")
        .groupBy(sql.window("storeTimestamp", f"{WINDOW} milliseconds"), "topic")
        .count()
        .selectExpr("window.start AS start", "topic", "count")
    )
    run(counts, tmp_path / "checkpoint", tmp_path / "out")

    found: dict[tuple[int, str], int] = {}
    for row in spark.read.parquet(str(tmp_path / "out")).collect():
        start = round(row.start.replace(tzinfo=UTC).timestamp() * 1000)
        assert (start, row.topic) not in found
        found[start, row.topic] = row["count"]
    expected: Counter[tuple[int, str]] = Counter()
    for one in store.messages:
        expected[one.time // WINDOW * WINDOW, one.topic] += 1
    last = START + 999
    closed = {key: many for key, many in expected.items() if key[0] + WINDOW <= last - LATENESS}
    assert found == closed
    assert closed


def test_two_streams_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with BlockingMessageStore.open(path) as live:
        for number in range(40):
            live.put(Message("orders", b"%d" % number, properties={"KEYS": f"order-{number}"}))
        for number in range(0, 60, 3):
            live.put(Message("payments", b"", properties={"KEYS": f"order-{number}"}))

    def side(topic: str) -> DataFrame:
        frame = stream(spark, path, subscribe=topic, columns="keys,storeTimestamp")
        named = frame.selectExpr(f"keys[0] AS {topic}", f"storeTimestamp AS {topic}_at")
        return named.withWatermark(f"{topic}_at", "1 hour")

    joined = side("orders").join(
        side("payments").alias("payment"),
        on=_within_an_hour(),
    )
    run(joined.selectExpr("orders AS key"), tmp_path / "checkpoint", tmp_path / "out")
    assert keys(spark, tmp_path / "out") == sorted(f"order-{number}" for number in range(0, 40, 3))


def _within_an_hour() -> Any:
    from pyspark.sql import functions as sql

    return sql.expr(
        "orders = payments AND payments_at BETWEEN orders_at - INTERVAL 1 HOUR "
        "AND orders_at + INTERVAL 1 HOUR"
    )


def test_retention_removes_what_a_stream_has_not_read(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    store, checkpoint, out = GrowingStore(tmp_path / "store"), tmp_path / "at", tmp_path / "out"
    store.grow(20)

    def read(**options: str) -> None:
        run(stream(spark, store.path, **options).selectExpr("keys[0] AS key"), checkpoint, out)

    read()
    store.grow(200)
    for _ in range(2):
        begin = store.drop_first_segment()
    with pytest.raises(StreamingQueryException, match=f"the log begins at {begin}"):
        read()
    read(failOnDataLoss="false")
    left = [one for one in store.messages if one.physical_offset >= begin]
    expected = {one.properties["KEYS"] for one in left} | {f"key-{number}" for number in range(20)}
    assert keys(spark, out) == sorted(expected)


def test_topics_and_queues_that_are_added(spark: SparkSession, tmp_path: Path) -> None:
    store, checkpoint, out = GrowingStore(tmp_path / "store"), tmp_path / "at", tmp_path / "out"
    for topics in (("A",), ("A", "C"), ("A", "C", "D")):
        store.grow(50, topics)
        frame = stream(spark, store.path, subscribePattern="[AC]").selectExpr("keys[0] AS key")
        run(frame, checkpoint, out)
    expected = [one.properties["KEYS"] for one in store.messages if one.topic != "D"]
    assert keys(spark, out) == sorted(expected)


def test_times_are_utc(spark: SparkSession, tmp_path: Path) -> None:
    store = GrowingStore(tmp_path / "store")
    store.grow(1)
    (row,) = spark.read.format("rocketmq").load(str(store.path)).select("storeTimestamp").collect()
    assert row.storeTimestamp.astimezone(UTC) == datetime.fromtimestamp(START / 1000, UTC)
