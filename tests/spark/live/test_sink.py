"""Rows become messages of a running cluster, and come back as rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mqlake.client.producer.producer import Producer
from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.messages.body_compression import compress
from mqlake.spark.live import send
from mqlake.spark.live.send import send_rows
from mqlake.spark.live.sink_options import LiveWriteOptions, live_write_options
from mqlake.testing import RunningBroker
from tests.broker.running import PATIENCE
from tests.query.live.rows import batch_rows
from tests.query.live.topics import NumberedTopic
from tests.query.store.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def options(running: RunningBroker, **given: str) -> LiveWriteOptions:
    return live_write_options({"nameServer": running.name_server, "retryTimeout": "60s", **given})


def batches(*rows: Row) -> Iterator[Any]:
    yield pa.RecordBatch.from_pylist(
        list(rows),
        pa.schema(
            {
                "body": pa.binary(),
                "topic": pa.string(),
                "tags": pa.string(),
                "keys": pa.list_(pa.string()),
                "properties": pa.map_(pa.string(), pa.string()),
                "uniqKey": pa.string(),
                "delayLevel": pa.int32(),
                "flag": pa.int32(),
                "sysFlag": pa.int32(),
                "queueOffset": pa.int64(),
            }
        ),
    )


@pytest.fixture
def topic(running: RunningBroker) -> NumberedTopic:
    return NumberedTopic(running)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent again, for a broker answers late, is stored twice."""
    monkeypatch.setattr(send, "Producer", partial(Producer, timeout=PATIENCE))


def stored(running: RunningBroker, topic: NumberedTopic, least: int) -> list[Row]:
    """Return a topic's rows once there are so many: a send is acknowledged before its dispatch."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = batch_rows(running.name_server, subscribe=topic.name)
        if len(found) >= least or time.monotonic() > deadline:
            return found
        time.sleep(0.01)


@pytest.mark.usefixtures("patient")
def test_columns_of_a_message(running: RunningBroker, topic: NumberedTopic) -> None:
    packed, flag = compress(b"long " * 100, "zlib", 5)
    full: Row = {
        "body": b"1",
        "topic": topic.name,
        "tags": "red",
        "keys": ["a", "b"],
        "properties": [("colour", "green"), ("TAGS", "of the property"), ("DELAY", "3")],
        "uniqKey": "AC11000100002A9F",
        "flag": 7,
        "queueOffset": 99,
    }
    plain: Row = {"body": b"2", "topic": topic.name, "properties": [("KEYS", "k")]}
    was_packed: Row = {"body": packed, "topic": topic.name, "sysFlag": flag}

    assert send_rows(batches(full, plain, was_packed), options(running)) == 3

    first, second, third = stored(running, topic, 3)
    assert (first["body"], first["tags"], first["keys"], first["flag"]) == (
        b"1",
        "red",
        ["a", "b"],
        7,
    )
    assert first["uniqKey"] == "AC11000100002A9F"
    assert first["properties"]["colour"] == "green"
    assert "DELAY" not in first["properties"]
    assert (second["body"], second["tags"], second["keys"]) == (b"2", None, ["k"])
    assert third["body"] == b"long " * 100


def test_delayed_rows(running: RunningBroker, topic: NumberedTopic) -> None:
    sent = send_rows(
        batches({"body": b"late", "delayLevel": 18}), options(running, topic=topic.name)
    )
    assert sent == 1
    assert batch_rows(running.name_server, subscribe=topic.name) == []


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"body": None}, "a row has no body"),
        ({"body": b"x" * (5 << 20)}, "exceeds the maximum"),
        ({"body": b"x", "properties": [("a\x01", "b")]}, "a"),
    ],
)
def test_rows_that_cannot_be_sent(
    running: RunningBroker, topic: NumberedTopic, row: Row, message: str
) -> None:
    good = ({"body": b"good"} for _ in range(2001))
    with pytest.raises(FormatError, match=f"{message}.*; at least 2000 messages of this task"):
        send_rows(batches(*good, row), options(running, topic=topic.name))
    assert len(stored(running, topic, 2000)) in (2000, 2001)


def test_no_topic(running: RunningBroker) -> None:
    with pytest.raises(FormatError, match="a row has no topic"):
        send_rows(batches({"body": b"x"}), options(running))


def test_nobody_there() -> None:
    asked = live_write_options({"nameServer": "127.0.0.1:9", "retryTimeout": "300ms"})
    with pytest.raises(MqlakeError, match=r"1 messages were not acknowledged within 0.3 s"):
        send_rows(batches({"body": b"x", "topic": "A"}), asked)


def test_wrong_options() -> None:
    with pytest.raises(FormatError, match="option maxIndexNum is for store directories"):
        live_write_options({"nameServer": "a:1", "maxIndexNum": "7"})
    with pytest.raises(FormatError, match="option producerGroup"):
        live_write_options({"nameServer": "a:1", "producerGroup": "a b"})


@pytest.mark.spark
def test_spark_writes(
    spark: SparkSession, running: RunningBroker, topic: NumberedTopic, tmp_path: Path
) -> None:
    frame = spark.range(100).selectExpr("concat('body ', id) as body", "cast(id as string) as keys")
    writer = frame.write.format("rocketmq").option("nameServer", running.name_server)
    writer.option("topic", topic.name).mode("append").save()
    found = stored(running, topic, 100)
    # A task whose broker answers late sends again: messages may be there twice.
    assert {row["body"].decode() for row in found} == {f"body {number}" for number in range(100)}
    with pytest.raises(Exception, match="use mode append"):
        writer.mode("overwrite").save()

    copies = NumberedTopic(running)
    source = spark.readStream.format("rocketmq").option("nameServer", running.name_server)
    rows = source.option("subscribe", topic.name).option("startingOffsets", "earliest").load()
    query = (
        rows.writeStream.format("rocketmq")
        .option("nameServer", running.name_server)
        .option("topic", copies.name)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(240)
    copied, same = stored(running, copies, len(found)), ("body", "keys", "uniqKey")
    assert {str([row[name] for name in same]) for row in copied} == {
        str([row[name] for name in same]) for row in found
    }
