"""`mqlake.admin` looks after the real name server and broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.admin import brokers, groups, messages, names, offsets, topics
from mqlake.admin.admin import Admin
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import Clients
from tests.peer.rocketmq_cluster import Cluster

pytestmark = [pytest.mark.peer, pytest.mark.nightly, pytest.mark.timeout(600)]

TOPIC, GROUP, PRODUCERS = "Looked", "G_Looked", "P_Looked"


async def look(admin: Admin, clients: Clients) -> None:
    topic = Topic(topic_name=TOPIC, read_queue_nums=4, write_queue_nums=4)
    (changed,) = await topics.update(admin, topic, "DefaultCluster", None)
    assert changed.broker_name == "broker-a"
    group = SubscriptionGroup(group_name=GROUP, retry_max_times=5)
    await groups.update(admin, group, None, "broker-a")
    held = await asyncio.to_thread(clients.hold, admin.name_servers[0], TOPIC, GROUP, PRODUCERS)
    assert TOPIC in await topics.names(admin)
    assert await topics.clusters(admin, TOPIC) == ["DefaultCluster"]
    queues = await topics.status(admin, TOPIC)
    assert [(each.queue_id, each.min_offset, each.max_offset) for each in queues] == [
        (queue_id, 0, 10) for queue_id in range(4)
    ]
    assert all(each.last_updated for each in queues)

    progress = await groups.progress(admin, GROUP, TOPIC)
    assert [(row.broker_offset, row.consumer_offset, row.lag) for row in progress] == [
        (10, 10, 0)
    ] * 4
    (whole,) = [row for row in await groups.all_progress(admin) if row.group == GROUP]
    assert (whole.consumers, whole.message_model, whole.lag) == (1, "CLUSTERING", 0)
    online = await groups.connections(admin, GROUP)
    assert [member.client_id for member in online.members] == [held["client"]]
    assert [each.topic for each in online.subscriptions] == [f"%RETRY%{GROUP}", TOPIC]
    (producer,) = await groups.producer_connections(admin, PRODUCERS, TOPIC)
    assert producer.language == "JAVA"
    assert PRODUCERS in {each.group for each in await groups.producers(admin, "broker-a")}
    assert (await groups.config(admin, GROUP))["broker-a"]["retryMaxTimes"] == 5
    rows = await brokers.consume_stats(admin, "broker-a")
    assert {row.lag for row in rows if row.group == GROUP and row.topic == TOPIC} == {0}

    unique = await messages.by_unique_key(admin, TOPIC, held["unique"])
    assert unique is not None
    assert unique == await messages.by_id(admin, held["offset"])
    assert (unique.queue_id, unique.queue_offset) == (3, 9)
    assert [m.keys for m in await messages.by_key(admin, TOPIC, "mk7")] == [["mk7"]]
    assert len(await messages.by_key(admin, TOPIC, "TagA", index_type="T")) == 40
    assert await messages.by_offset(admin, TOPIC, "broker-a", 3, 9) == unique
    assert len(await messages.of_queues(admin, TOPIC, None, None, 0, 100)) == 40
    put = await messages.send(admin, TOPIC, b"hello", keys="k", queue_id=2)
    assert (put.queue_id, put.queue_offset) == (2, 10)
    assert (await messages.by_id(admin, put.msg_id)).body == b"hello"

    reset = await offsets.reset(admin, GROUP, TOPIC, 1000)
    assert [row.offset for row in reset] == [0] * 4
    (row,) = await brokers.clusters(admin)
    assert (row.broker_name, row.version) == ("broker-a", "V5_5_0")
    await brokers.update_config(admin, "fileReservedTime", "11", None, "broker-a")
    assert (await brokers.config(admin, "broker-a"))["fileReservedTime"] == "11"
    await names.put(admin, "NS", "k", "v")
    assert await names.get(admin, "NS", "k") == "v"
    await names.delete(admin, "NS", "k")
    with pytest.raises(MqlakeError):
        await names.get(admin, "NS", "k")
    assert (await names.wipe_write_permission(admin, "broker-a"))[admin.name_servers[0]]
    assert (await names.add_write_permission(admin, "broker-a"))[admin.name_servers[0]]
    assert await topics.rates(admin, TOPIC)
    await topics.delete(admin, TOPIC, "DefaultCluster")
    with pytest.raises(RemotingError) as refused:
        await topics.status(admin, TOPIC)
    assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST


def test_the_real_servers_understand_and_are_understood(tmp_path: Path) -> None:
    for name in ("clients", "cluster"):
        (tmp_path / name).mkdir()
    try:
        clients = Clients(tmp_path / "clients")
        cluster = Cluster(tmp_path / "cluster", tmp_path / "store", {})
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")

    async def run() -> None:
        async with Admin(cluster.names) as admin:
            await look(admin, clients)

    cluster.start()
    try:
        asyncio.run(run())
    finally:
        clients.close()
        cluster.kill()
