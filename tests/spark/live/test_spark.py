"""The live source inside of a real Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqlake.testing import RunningBroker
from tests.query.live.rows import batch_rows
from tests.query.live.test_stream import progress
from tests.query.live.topics import NumberedTopic
from tests.spark.conftest import PUSH_DOWN
from tests.spark.source.test_spark import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


@pytest.fixture
def topic(running: RunningBroker) -> NumberedTopic:
    made = NumberedTopic(running)
    made.send(40)
    return made


def test_batch(pushing: SparkSession, running: RunningBroker, topic: NumberedTopic) -> None:
    reader = pushing.read.format("rocketmq").option("nameServer", running.name_server)
    frame = reader.option("subscribe", topic.name).option("pushFilters", "true").load()
    expected = batch_rows(running.name_server, subscribe=topic.name)
    some = frame.where("queueId = 1 and queueOffset >= 5")
    assert rows_of(some) == [
        row for row in expected if row["queueId"] == 1 and row["queueOffset"] >= 5
    ]
    if pushing.conf.get(PUSH_DOWN) != "true":
        assert rows_of(frame) == expected


def test_streaming(
    spark: SparkSession, running: RunningBroker, topic: NumberedTopic, tmp_path: Path
) -> None:
    group = f"spark-{topic.name}"

    def run() -> list[str]:
        frame = (
            spark.readStream.format("rocketmq")
            .option("rocketmq.namesrvAddr", running.name_server)
            .option("subscribe", topic.name)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 15)
            .option("groupId", group)
            .load()
        )
        query = (
            frame.selectExpr("keys[0] as key")
            .writeStream.format("json")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        assert query.awaitTermination(240)
        return sorted(row.key for row in spark.read.json(str(tmp_path / "table")).collect())

    assert run() == topic.keys
    topic.send(20)
    assert run() == topic.keys
    assert progress(running, group) == {0: (30, 0), 1: (30, 0)}
