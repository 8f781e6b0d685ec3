"""The source inside of a real Spark session."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import golden_kafka
from tests.golden_kafka import GoldenPartition
from tests.query.kafka_log.growing import GrowingLogs
from tests.query.kafka_log.rows import as_recorded, batch_rows, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


def test_the_schema_is_that_of_sparks_kafka_source(spark: SparkSession) -> None:
    reader = spark.read.format("kafka-log").option("includeHeaders", "true")
    frame = reader.load(str(golden_kafka.log_directory()))
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert all(field.nullable for field in frame.schema)


def test_every_record_in_every_column(spark: SparkSession) -> None:
    reader = spark.read.format("kafka-log").option("includeHeaders", "true")
    for name in ("nulls-headers", "logappend"):
        frame = reader.option("subscribe", name).load(str(golden_kafka.log_directory()))
        rows = []
        for row in in_order(row.asDict(recursive=True) for row in frame.collect()):
            time = row["timestamp"].astimezone(UTC).timestamp()
            rows.append(as_recorded(row | {"timestamp": round(time * 1000)}))
        expected = GoldenPartition(f"{name}-0").records()
        for record in expected:
            del record["leaderEpoch"]
        assert rows == expected


def test_filters(pushing: SparkSession) -> None:
    path = golden_kafka.log_directory()
    rows = batch_rows(
        path, subscribe="ooo-ts,plain-none", columns="topic,partition,offset,timestamp"
    )
    late = datetime.fromtimestamp(rows[-500]["timestamp"] / 1000, UTC)
    millis = rows[-500]["timestamp"]
    wanted = {
        "topic = 'plain-none' and partition = 1 and offset >= 2900": lambda one: (
            (one["topic"], one["partition"]) == ("plain-none", 1) and one["offset"] >= 2900
        ),
        f"timestamp > timestamp'{late:%Y-%m-%d %H:%M:%S.%f}Z'": lambda one: (
            one["timestamp"] > millis
        ),
        "offset in (3, 8) and topic <> 'ooo-ts'": lambda one: (
            one["offset"] in (3, 8) and one["topic"] != "ooo-ts"
        ),
    }
    for condition, holds in wanted.items():
        reader = pushing.read.format("kafka-log").option("pushFilters", "true")
        frame = reader.option("subscribe", "ooo-ts,plain-none").load(str(path)).where(condition)
        found = {
            (row.topic, row.partition, row.offset)
            for row in frame.select("topic", "partition", "offset").collect()
        }
        expected = {(one["topic"], one["partition"], one["offset"]) for one in rows if holds(one)}
        assert found == expected, condition
        assert expected


def test_filters_of_one_query_are_not_used_for_another(pushing: SparkSession) -> None:
    frame = (
        pushing.read.format("kafka-log")
        .option("subscribe", "plain-none,txn")
        .load(str(golden_kafka.log_directory()))
    )
    assert frame.where("topic = 'plain-none'").count() == 6000
    assert frame.count() == 6000 + len(GoldenPartition("txn-0").records())


def test_errors_say_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    reader = spark.read.format("kafka-log")
    with pytest.raises(Exception, match="no option 'startingofsets'; the nearest is startingO"):
        reader.option("startingOfsets", "earliest").load(str(tmp_path))
    with pytest.raises(Exception, match="no partition in it; path must be the log directory"):
        spark.read.format("kafka-log").load(str(tmp_path)).count()
    wrong = spark.read.format("kafka-log").schema("offset int").load(str(tmp_path))
    with pytest.raises(Exception, match="column offset has type bigint, not int"):
        wrong.count()


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    logs = GrowingLogs(tmp_path / "logs")
    logs.grow(50)

    def run(**options: str) -> list[int]:
        frame = spark.readStream.format("kafka-log").options(**options).load(str(logs.path))
        query = (
            frame.select("key", "topic")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress]

    options = {"startingOffsets": "earliest", "columns": "key,topic"}
    assert run(**options, maxOffsetsPerTrigger="30") == [30, 20]
    logs.grow(30, ("new", 0), ("a", 0), ("a", 1))
    assert [rows for rows in run(**options) if rows] == [30]
    assert [rows for rows in run(**options) if rows] == []

    table = [bytes(row.key) for row in spark.read.parquet(str(tmp_path / "table")).collect()]
    assert sorted(table) == logs.keys
