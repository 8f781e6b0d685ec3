"""Table functions about a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlake.spark.functions.register import register
from mqlake.store.reader import StoreReader
from tests.golden import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

Ask = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def ask(spark: SparkSession) -> Ask:
    register(spark)
    return lambda query: [row.asDict() for row in spark.sql(query).collect()]


@pytest.fixture
def path() -> Path:
    return store("rmq5-clean").path


def test_queues_and_topics(ask: Ask, path: Path) -> None:
    queues = {(row["topic"], row["queueId"]): row for row in ask(f"FROM rocketmq_queues('{path}')")}
    last: dict[tuple[str, int], int] = {}
    counts: Counter[str] = Counter()
    for message in store("rmq5-clean").messages():
        queue = message["topic"], message["queueId"]
        last[queue] = max(last.get(queue, -1), message["queueOffset"])
        counts[message["topic"]] += 1
    assert queues["TopicA", 0]["maxOffset"] == last["TopicA", 0] + 1
    assert queues["TopicA", 0]["minOffset"] == 0

    [topic] = ask(f"SELECT * FROM rocketmq_topics('{path}') WHERE topic = 'TopicA'")
    assert topic["messages"] == counts["TopicA"]
    assert topic["readQueueNums"] == len([name for name, _ in queues if name == "TopicA"])


def test_groups_and_their_lag(ask: Ask, path: Path) -> None:
    with StoreReader.open(path) as reader:
        report = reader.inspect()
    expected = {
        (group.group, topic, queue_id): offset
        for group in report.config.consumer_groups
        for topic, offsets in group.offsets.items()
        for queue_id, offset in offsets.items()
    }
    rows = ask(f"SELECT * FROM rocketmq_groups('{path}') WHERE topic IS NOT NULL")
    found = {(row["group"], row["topic"], row["queueId"]): row["consumerOffset"] for row in rows}
    assert found == expected
    assert found
    assert all(row["diff"] == row["brokerOffset"] - row["consumerOffset"] for row in rows)
    ends = {
        (row["topic"], row["queueId"]): row["maxOffset"]
        for row in ask(f"SELECT * FROM rocketmq_queues('{path}')")
    }
    assert all(row["brokerOffset"] == ends.get((row["topic"], row["queueId"]), 0) for row in rows)


def test_segments_and_damage(ask: Ask, path: Path, tmp_path: Path) -> None:
    files = {
        f"commitlog/{file.name}": file.stat().st_size for file in (path / "commitlog").iterdir()
    }
    rows = ask(f"SELECT * FROM rocketmq_segments('file:{path}')")
    assert {row["file"]: row["bytes"] for row in rows} == files
    assert ask(f"SELECT * FROM rocketmq_damage('{path}')") == []
    torn = store("rmq5-torn").path
    with StoreReader.open(torn) as reader:
        report = reader.inspect()
    damage = [*report.commit_log.damage, *report.damage]
    assert [
        (row["file"], row["offset"], row["bytes"], row["reason"])
        for row in ask(f"SELECT * FROM rocketmq_damage('{torn}')")
    ] == [(one.file, one.offset, one.length, one.reason) for one in damage]
    with pytest.raises(Exception, match=r"StoreError: .*nothing"):
        ask(f"SELECT * FROM rocketmq_damage('{tmp_path / 'nothing'}')")
