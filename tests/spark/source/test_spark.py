"""The source inside of a real Spark session."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden import store
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import as_recorded, in_order
from tests.query.store.truth import comparable, expected_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

PATIENCE = 60


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return in_order(as_recorded(row.asDict()) for row in frame.collect())


@pytest.mark.parametrize("name", ["rmq5-torn", "rmq49-clean"])
def test_every_message_in_every_column(spark: SparkSession, name: str) -> None:
    golden = store(name)
    frame = spark.read.format("rocketmq").option("minPartitions", 3).load(str(golden.path))
    assert [comparable(row) for row in rows_of(frame)] == expected_rows(golden)


def test_errors_are_lines(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    reader = spark.read.format("rocketmq")
    wrong = {
        "subscibe": "there is no option 'subscibe'; the nearest is subscribe",
        "subscribe": "topic 'TopcA' does not exist; the nearest is TopicA",
    }
    for name, line in wrong.items():
        with pytest.raises(PySparkException) as raised:
            reader.option(name, "TopcA").load(str(store("rmq5-clean").path)).collect()
        text = str(raised.value)
        assert line in text
        assert "Traceback" not in text
        assert 'File "' not in text
        reader = spark.read.format("rocketmq")


def test_filters(pushing: SparkSession) -> None:
    golden = store("rmq5-clean")
    rows = expected_rows(golden)
    reader = pushing.read.format("rocketmq").option("pushFilters", "true")
    row = rows[len(rows) // 2]
    time = datetime.fromtimestamp(row["storeTimestamp"] / 1000, UTC)
    wanted = {
        "topic = 'TopicTxDirect' and queueOffset < 3": lambda one: (
            one["topic"] == "TopicTxDirect" and one["queueOffset"] < 3
        ),
        f"storeTimestamp > timestamp'{time:%Y-%m-%d %H:%M:%S.%f}Z'": lambda one: (
            one["storeTimestamp"] > row["storeTimestamp"]
        ),
        f"storeTimestamp = timestamp'{time:%Y-%m-%d %H:%M:%S.%f}Z'": lambda one: (
            one["storeTimestamp"] == row["storeTimestamp"]
        ),
        f"uniqKey in ('{row['uniqKey']}', 'x') or uniqKey is null": lambda one: (
            one["uniqKey"] in (row["uniqKey"], None)
        ),
        f"uniqKey in ('{row['uniqKey']}', 'x')": lambda one: one["uniqKey"] == row["uniqKey"],
        f"msgId = '{row['msgId']}'": lambda one: one["msgId"] == row["msgId"],
        "tags <=> 'TagA' and queueId in (1, 2)": lambda one: (
            one["tags"] == "TagA" and one["queueId"] in (1, 2)
        ),
        "not (topic = 'TopicA') and physicalOffset >= 1000000": lambda one: (
            one["topic"] != "TopicA" and one["physicalOffset"] >= 1_000_000
        ),
    }
    for condition, holds in wanted.items():
        frame = reader.option("includeBody", "false").load(str(golden.path))
        found = {one["physicalOffset"] for one in rows_of(frame.where(condition))}
        assert found == {one["physicalOffset"] for one in rows if holds(one)}, condition


def test_filters_of_one_query_are_not_used_for_another(pushing: SparkSession) -> None:
    frame = pushing.read.format("rocketmq").load(str(store("rmq5-clean").path))
    one, other = frame.where("topic = 'TopicA'"), frame.where("topic = 'TopicB'")
    topics = [row["topic"] for row in expected_rows(store("rmq5-clean"))]

    assert one.count() == topics.count("TopicA")
    assert frame.count() == len(topics)
    both = one.union(other).groupBy("topic").count().collect()
    assert {row.topic: row["count"] for row in both} == {
        topic: topics.count(topic) for topic in ("TopicA", "TopicB")
    }


def test_columns_by_a_schema(spark: SparkSession) -> None:
    path = str(store("rmq5-clean").path)
    frame = spark.read.format("rocketmq").schema("queueOffset bigint, topic string").load(path)
    assert frame.columns == ["queueOffset", "topic"]
    assert frame.count() == 3931
    wrong = spark.read.format("rocketmq").schema("queueOffset int").load(path)
    with pytest.raises(Exception, match="column queueOffset has type bigint, not int"):
        wrong.count()


def test_errors_say_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    reader = spark.read.format("rocketmq")
    with pytest.raises(Exception, match="no option 'startingofsets'; the nearest is startingO"):
        reader.option("startingOfsets", "earliest").load(str(tmp_path))
    with pytest.raises(Exception, match="no commitlog/ in it"):
        spark.read.format("rocketmq").load(str(tmp_path)).count()


def test_damage_fails_the_query_or_is_skipped(spark: SparkSession, tmp_path: Path) -> None:
    path = store("rmq5-clean").copy(tmp_path / "store")
    messages = store("rmq5-clean").messages()
    message = messages[1000]
    segment = path / "commitlog" / f"{message['physicalOffset'] >> 20 << 20:020d}"
    at = message["physicalOffset"] - int(segment.name)
    data = bytearray(segment.read_bytes())
    data[at + 4] ^= 1
    segment.write_bytes(data)

    frame = spark.read.format("rocketmq").option("columns", "physicalOffset").load(str(path))
    with pytest.raises(
        Exception, match=rf"{segment.name}: \d+ bytes at {at}: no record starts here: unknown magic"
    ):
        frame.count()
    lenient = spark.read.format("rocketmq").option("failOnDataLoss", "false").load(str(path))
    found = [row.physicalOffset for row in lenient.select("physicalOffset").collect()]
    assert sorted(found) == [one["physicalOffset"] for one in messages if one is not message]


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(50)

    def run(options: dict[str, str]) -> list[int]:
        frame = spark.readStream.format("rocketmq").options(**options).load(str(growing.path))
        query = (
            frame.selectExpr("keys[0] key", "topic")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress]

    options = {"startingOffsets": "earliest", "columns": "keys,topic"}
    assert run(options | {"maxOffsetsPerTrigger": "20"}) == [20, 20, 10]
    growing.grow(30, ("New", "A"))
    assert [rows for rows in run(options) if rows] == [30]
    assert [rows for rows in run(options) if rows] == []

    table = [row.key for row in spark.read.parquet(str(tmp_path / "table")).collect()]
    assert sorted(table) == sorted(growing.keys)


def test_a_running_stream_finds_new_topics(spark: SparkSession, tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(5)
    options = {"startingOffsets": "earliest", "minOffsetsPerTrigger": "5", "columns": "keys"}
    query = (
        spark.readStream.format("rocketmq")
        .options(**options)
        .load(str(growing.path))
        .writeStream.format("memory")
        .queryName("found")
        .start()
    )
    try:
        query.processAllAvailable()
        growing.grow(7, ("New",))
        query.processAllAvailable()
        found = [row.keys[0] for row in spark.table("found").collect()]
        source = query.lastProgress["sources"][0]
        latest, done = (json.loads(source[name]) for name in ("latestOffset", "endOffset"))
        assert latest["physicalOffset"] == done["physicalOffset"] > 0
    finally:
        query.stop()
    assert sorted(found) == sorted(growing.keys)


def test_the_access_path_is_in_sparks_worker_logs(pushing: SparkSession) -> None:
    pushing.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    path = str(store("rmq5-clean").path)
    try:
        frame = pushing.read.format("rocketmq").option("keys", "键-16").load(path)
        frame.count()
        deadline = time.monotonic() + PATIENCE
        while True:  # Spark may have them later than the rows
            said = [row.msg for row in pushing.tvf.python_worker_logs().collect()]
            if any(f"{path}: access path index: " in text for text in said):
                break
            assert time.monotonic() < deadline, said
    finally:
        pushing.conf.unset("spark.sql.pyspark.worker.logging.enabled")
