"""What mqlake converts, the other system's own server opens."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.jobs.convert.to_kafka import convert_to_kafka
from mqlake.jobs.convert.to_rocketmq import convert_to_rocketmq
from mqlake.jobs.local import LocalEngine
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.storage.local import LocalDirectory
from mqlake.store import StoreReader
from tests import golden_kafka
from tests.golden import store
from tests.peer.java_build import JavaMissingError
from tests.peer.kafka_clients import Kafka, read
from tests.peer.rocketmq_store import RocketMQ

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

FIELDS = ("topic", "queueId", "queueOffset", "properties", "body", "bornTimestamp")


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    try:
        peer = Kafka(tmp_path)
    except JavaMissingError as reason:
        pytest.skip(f"without the real Kafka: {reason}")
    yield peer
    peer.close()


def test_rocketmq_opens_a_converted_store(tmp_path: Path, rocketmq: RocketMQ) -> None:
    path = tmp_path / "converted"
    report = convert_to_rocketmq(golden_kafka.log_directory(), LocalEngine(2), out=path)
    expected: list[tuple[Any, ...]] = []
    with StoreReader.open(path) as reader:
        for topic in reader.topics():
            for queue in reader.queues(topic):
                expected += [
                    (
                        topic,
                        queue,
                        one.queue_offset,
                        one.properties,
                        base64.b64encode(one.body).decode(),
                        one.born_timestamp,
                    )
                    for one in reader.get(topic, queue, 0, 1 << 30).records
                ]
    assert len(expected) == report.records > 30_000

    opened = rocketmq.open(path, {})
    assert opened["messages"] == report.records
    # Java says nothing of properties where there are none.
    answers = ({"properties": {}} | one for one in rocketmq.read())
    found = [tuple(one[name] for name in FIELDS) for one in answers]
    assert sorted(found, key=_place) == sorted(expected, key=_place)
    rocketmq.shut_down()


def _place(message: tuple[Any, ...]) -> tuple[Any, ...]:
    return message[:3]


@pytest.mark.nightly  # tests/jobs/convert reads them in each run
def test_kafka_starts_on_converted_partitions(tmp_path: Path, kafka: Kafka) -> None:
    convert_to_kafka(store("rmq5-clean").path, LocalEngine(2), out=tmp_path / "converted")
    converted = LogDirectory(LocalDirectory(tmp_path / "converted"))
    names = [name for name in converted.partitions() if name.partition == 0]
    topics = [name.topic for name in names]
    kafka.broker.start()
    for topic in topics:
        kafka.create(topic)
    kafka.broker.stop()
    for topic in topics:
        _replace(kafka.logs / f"{topic}-0", tmp_path / "converted" / f"{topic}-0")
    kafka.broker.start()
    count = 0
    for topic in topics:
        consumed = kafka.consume(topic)
        assert consumed == read(tmp_path / "converted", topic)
        count += len(consumed)
    assert count > 500
    kafka.produce(topics[0], 10, "none")
    assert len(kafka.consume(topics[0])) == len(read(tmp_path / "converted", topics[0])) + 10


def _replace(partition: Path, converted: Path) -> None:
    """Put converted segments in the place of those that the broker has made."""
    for file in partition.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    shutil.copytree(converted, partition, dirs_exist_ok=True)
