"""Spark's live source and sink over RocketMQ's own brokers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from mqlake.admin import Admin, groups
from mqlake.client import Message, MessageQueue
from mqlake.client.blocking import Producer
from mqlake.query.live.connection import close_connections
from mqlake.spark.live.send import send_rows
from mqlake.spark.live.sink_options import live_write_options
from tests.broker.running import PATIENCE
from tests.client.servers import create_topic, wait_for_dispatch
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER, Cluster
from tests.query.live.engine import LiveEngine, asked
from tests.query.live.rows import batch_rows
from tests.query.store import rows as of_directory

pytestmark = pytest.mark.peer

TOPIC, QUEUES, COUNT = "Orders", 3, 600


@pytest.fixture(params=[None, NEWEST_4_BROKER], ids=["newest", NEWEST_4_BROKER])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with small files, so that the log has several segments."""
    settings = {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 6000}
    made = Cluster(tmp_path, tmp_path / "store", settings, version=request.param)
    made.start()
    try:
        yield made
    finally:
        close_connections()
        made.kill()


def send(cluster: Cluster, first: int, count: int) -> None:
    with Producer(cluster.names, timeout=60) as producer:
        for number in range(first, first + count):
            body = f"order {number} ".encode() * (number % 40 + 1)
            message = Message(topic=TOPIC, body=body, keys=f"order-{number}", tags="ab"[number % 2])
            producer.send(message, queue=MessageQueue(TOPIC, "broker-a", number % QUEUES))


def test_rows_times_groups_and_writes(cluster: Cluster, tmp_path: Path) -> None:
    asyncio.run(create_topic(cluster.broker, TOPIC, QUEUES))
    query = LiveEngine(
        asked(cluster.names, subscribe=TOPIC, groupId="spark-orders", maxOffsetsPerTrigger=200)
    )
    query.trigger()
    send(cluster, 0, COUNT)
    each = COUNT // QUEUES
    # RocketMQ's broker dispatches what it has acknowledged a moment later.
    asyncio.run(wait_for_dispatch(cluster.broker, TOPIC, dict.fromkeys(range(QUEUES), each)))
    query.run_all()
    assert query.sorted_keys == sorted(f"order-{number}" for number in range(COUNT))

    # The rows are those of the store directory.
    found = batch_rows(cluster.names, subscribe=TOPIC)
    store = of_directory.batch_rows(tmp_path / "store", subscribe=TOPIC, brokerName="broker-a")
    assert found == store
    assert batch_rows(cluster.names, subscribePattern="Ord.*") == found
    assert batch_rows(cluster.names) == found
    assert batch_rows(cluster.names, subscribe=TOPIC, tags="b") == [
        row for row in found if row["tags"] == "b"
    ]

    # Brokers before 5.0 search for the nearest time.
    for row in found[:: COUNT // 11]:
        stored = row["storeTimestamp"]
        since = batch_rows(
            cluster.names,
            subscribe=TOPIC,
            startingTimestamp=stored,
            startingOffsetsByTimestampStrategy="latest",
        )
        assert since == [one for one in found if one["storeTimestamp"] >= stored]

    async def progress() -> dict[int, tuple[int, int]]:
        async with Admin(cluster.names) as admin:
            rows = await groups.progress(admin, "spark-orders", TOPIC)
        return {row.queue_id: (row.consumer_offset, row.lag) for row in rows}

    assert asyncio.run(progress()) == dict.fromkeys(range(QUEUES), (each, 0))

    # Write to another topic, which the broker creates.
    bodies = [f"copy {number}".encode() for number in range(500)]
    batch = pa.RecordBatch.from_pydict({"body": bodies, "tags": ["t"] * 500})
    options = live_write_options({"nameServer": cluster.names, "topic": "Copies"})
    assert send_rows([batch], options) == 500
    # A batch whose acknowledgement is late is sent again.
    copies = batch_rows(cluster.names, subscribe="Copies")
    until = time.monotonic() + PATIENCE
    while {row["body"] for row in copies} != {*bodies} and time.monotonic() < until:
        time.sleep(0.1)
        copies = batch_rows(cluster.names, subscribe="Copies")
    assert {row["body"] for row in copies} == {*bodies}
    assert {row["tags"] for row in copies} == {"t"}
