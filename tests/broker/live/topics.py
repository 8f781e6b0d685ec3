"""Topics and groups that a broker creates, and what it allows with them."""

from __future__ import annotations

from typing import Any

import msgspec

from mqlake.formats.topic_names import TRACE_TOPIC
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import TopicNameHeader
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.live.observing import change, observes
from tests.broker.pull.pulls import fill, pull
from tests.broker.running import Running, to

CREATE = RequestCode.UPDATE_AND_CREATE_TOPIC


def topic(broker: Running, name: str) -> Any:
    found = broker.state.topics.get(name)
    assert found is not None, name
    return found


@observes("brokerPermission")
async def broker_permission(broker: Running) -> None:
    await fill(broker, 1)
    assert (await pull(broker)).bodies == [b"0"]
    await change(broker, brokerPermission=2)
    assert (await pull(broker)).code == ResponseCode.NO_PERMISSION


@observes("defaultTopicQueueNums")
async def default_topic_queue_nums(broker: Running) -> None:
    for name, queues in (("Before", 8), ("After", 3)):
        await broker.send(to(name, default_topic_queue_nums=16))
        assert topic(broker, name).write_queue_nums == queues
        default = topic(broker, "TBW102")
        broker.state.topics.put(msgspec.structs.replace(default, order=True))
        await change(broker, defaultTopicQueueNums=3)
        assert topic(broker, "TBW102").order, "what was changed of it by hand stays"


@observes("autoCreateTopicEnable", autoCreateTopicEnable=False)
async def auto_create_topic(broker: Running) -> None:
    assert (await broker.send(to("New"))).code == ResponseCode.TOPIC_NOT_EXIST
    await change(broker, autoCreateTopicEnable="true")
    assert (await broker.send(to("New"))).code == ResponseCode.SUCCESS
    await change(broker, autoCreateTopicEnable="false")
    assert (await broker.send(to("Newer"))).code == ResponseCode.TOPIC_NOT_EXIST


@observes("clusterTopicEnable")
async def cluster_topic(broker: Running) -> None:
    assert topic(broker, "DefaultCluster").perm & 6 == 6
    await change(broker, clusterTopicEnable="false")
    assert topic(broker, "DefaultCluster").perm & 6 == 0


@observes("brokerTopicEnable")
async def broker_topic(broker: Running) -> None:
    assert topic(broker, "broker-a").perm & 6 == 6
    await change(broker, brokerTopicEnable="false")
    assert topic(broker, "broker-a").perm & 6 == 0


@observes("traceTopicEnable")
async def trace_topic(broker: Running) -> None:
    assert TRACE_TOPIC not in broker.state.topics
    await change(broker, traceTopicEnable="true")
    assert TRACE_TOPIC in broker.state.topics


@observes("validateSystemTopicWhenUpdateTopic")
async def validate_system_topic(broker: Running) -> None:
    await refused(broker, CREATE, wanted("SELF_TEST_TOPIC"), match="system topic")
    await change(broker, validateSystemTopicWhenUpdateTopic="false")
    await done(broker, CREATE, wanted("SELF_TEST_TOPIC"))


@observes("clearRetryTopicWhenDeleteTopic")
async def clear_retry_topic(broker: Running) -> None:
    for name, is_kept in (("One", False), ("Two", True)):
        broker.state.topics.make(name, 1)
        broker.state.topics.make(f"%RETRY%g_{name}", 1)
        broker.state.store.core.config.consumer_offsets.commit("g", name, 0, 0)
        delete = RequestCode.DELETE_TOPIC_IN_BROKER
        await done(broker, delete, TopicNameHeader(topic=name))
        assert (f"%RETRY%g_{name}" in broker.state.topics) is is_kept
        await change(broker, clearRetryTopicWhenDeleteTopic="false")


@observes("autoCreateSubscriptionGroup")
async def auto_create_group(broker: Running) -> None:
    await fill(broker, 1)
    assert (await pull(broker, consumer_group="one")).code == ResponseCode.SUCCESS
    await change(broker, autoCreateSubscriptionGroup="false")
    found = await pull(broker, consumer_group="two")
    assert found.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@observes("enableCreateSysGroup", autoCreateSubscriptionGroup=False)
async def create_system_group(broker: Running) -> None:
    await fill(broker, 1)
    assert (await pull(broker, consumer_group="CID_RMQ_SYS_1")).code == ResponseCode.SUCCESS
    await change(broker, enableCreateSysGroup="false")
    found = await pull(broker, consumer_group="CID_RMQ_SYS_2")
    assert found.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
