"""Checkpoints are read as they were first written, whatever modules the code is in.

The texts were written by version 0.1 before queries left the adapter to Spark.
"""

from __future__ import annotations

import json

import pytest

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.kafka_log.position import KafkaLogPosition
from mqlake.query.live.brokers import Mark
from mqlake.query.live.position import LivePosition
from mqlake.query.reading.conditions import Living
from mqlake.query.store.position import StorePosition
from mqlake.query.stores.position import read_positions, write_positions

OF_STORE = (
    '{"physicalOffset": 4096, "fingerprint": 2774861, "starts": {"orders": {"0": 23}}, '
    '"startsEnd": 9000, "subscription": "{\\"subscribe\\":[\\"orders\\"],\\"tags\\":[\\"a\\",'
    '\\"b\\"]}", "deadBefore": {"gone": 700}, "othersDeadBefore": 500}'
)
OF_STORES = f'{{"stores": {{"broker-a": {OF_STORE}, "broker-b": {{"physicalOffset": 7}}}}}}'
OF_CLUSTER = (
    '{"orders": {"broker-a": {"0": 23}}, '
    '"#marks": {"orders": {"broker-a": {"0": [4096, 1700000000000]}}}}'
)
OF_KAFKA = '{"orders": {"0": 23, "1": 345}, "#topicIds": {"orders": "4KRDEyi7T2mAUeIiUSxdHg"}}'


def test_the_position_in_a_store_is_read_and_written() -> None:
    found = StorePosition.read(json.loads(OF_STORE))
    assert found == StorePosition(
        4096,
        {("orders", 0): 23},
        9000,
        2774861,
        '{"subscribe":["orders"],"tags":["a","b"]}',
        Living({"gone": 700}, 500),
    )
    assert json.dumps(found.write()) == OF_STORE


def test_the_positions_in_several_stores_are_read_and_written() -> None:
    found = read_positions(json.loads(OF_STORES))
    assert found == {"broker-a": json.loads(OF_STORE), "broker-b": {"physicalOffset": 7}}
    assert json.dumps(write_positions(found)) == OF_STORES


def test_the_position_in_a_cluster_is_read_and_written() -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    found = LivePosition.read(json.loads(OF_CLUSTER))
    assert found == LivePosition({queue: 23}, {queue: Mark(4096, 1_700_000_000_000)})
    assert json.dumps(found.write()) == OF_CLUSTER


def test_the_position_in_kafkas_logs_is_read_and_written() -> None:
    found = KafkaLogPosition.read(json.loads(OF_KAFKA))
    offsets = {("orders", 0): 23, ("orders", 1): 345}
    assert found == KafkaLogPosition(offsets, {"orders": "4KRDEyi7T2mAUeIiUSxdHg"})
    assert json.dumps(found.write()) == OF_KAFKA


@pytest.mark.parametrize("text", [OF_STORES, OF_CLUSTER, OF_KAFKA])
def test_checkpoints_of_other_sources_are_refused(text: str) -> None:
    from mqlake.errors import StoreError

    with pytest.raises(StoreError, match="not one of this source"):
        StorePosition.read(json.loads(text))
