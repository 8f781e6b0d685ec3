"""Heartbeats, locks, replies, assignments, and what their limits are."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from mqlake.formats.config.subscription_group import SimpleSubscription, SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData, Subscription
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import ConsumeStatsHeader
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.asking import commit, lock
from tests.broker.clients_of import known_client
from tests.broker.consuming import Consumer, subscription
from tests.broker.live.observing import change, observes, soon, until
from tests.broker.pull.pulls import fill, pull
from tests.broker.running import Running, to

BEAT, CREATE = RequestCode.HEART_BEAT, RequestCode.UPDATE_AND_CREATE_TOPIC
GROUP = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP


def beat(client: str, producers: int = 0, *topics: Subscription, group: str = "g") -> bytes:
    groups = [ProducerData(f"p{number}") for number in range(producers)]
    consumers = [ConsumerData(group, subscription_data_set=list(topics))] if topics else []
    return encode_body(Heartbeat(client, groups, consumers))


@observes("channelExpiredTimeout")
async def channel_expired(broker: Running) -> None:
    async with known_client(broker, {}, "one"):
        await broker.runtime.slices.finish(broker.state.clients.expire())
        assert broker.state.clients.producers
        await change(broker, channelExpiredTimeout=1)

        async def is_expired() -> bool:
            await broker.runtime.slices.finish(broker.state.clients.expire())
            return not broker.state.clients.producers

        await until(is_expired)


@observes("notifyConsumerIdsChangedEnable", notifyConsumerIdsChangedEnable=False)
async def notify_consumers(broker: Running) -> None:
    one, two, three = (Consumer(broker, name) for name in ("one", "two", "three"))
    await one.beat("g", subscription("Orders"))
    await two.beat("g", subscription("Orders"))
    await change(broker, notifyConsumerIdsChangedEnable="true")
    assert one.notices == []
    await three.beat("g", subscription("Orders"))
    await soon(one.told(1))
    for each in (one, two, three):
        await each.close()


@observes("storeReplyMessageEnable")
async def store_reply(broker: Running) -> None:
    name = "DefaultCluster_REPLY_TOPIC"
    for _ in range(2):
        reply = to(name, properties="REPLY_TO_CLIENT\x01gone\x02")
        await broker.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply, b"yes")
        assert len(broker.records(name)) == 1
        await change(broker, storeReplyMessageEnable="false")


@observes("rejectPullConsumerEnable")
async def reject_pull_consumer(broker: Running) -> None:
    consumer = Consumer(broker)
    await consumer.beat("one", subscription("Orders"), consumeType="CONSUME_ACTIVELY")
    await change(broker, rejectPullConsumerEnable="true")
    await consumer.beat("two", subscription("Orders"), consumeType="CONSUME_ACTIVELY")
    assert set(broker.state.clients.consumers) == {"one"}
    await fill(broker, 1)
    for group, code in (
        ("one", ResponseCode.SUCCESS),
        ("two", ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ("TOOLS_CONSUMER", ResponseCode.SUCCESS),
    ):
        assert (await pull(consumer, consumer_group=group)).code == code
    await consumer.close()


@observes("maxTopicNums")
async def max_topics(broker: Running) -> None:
    await broker.send(to("One"))
    await change(broker, maxTopicNums=len(broker.state.topics))
    assert "maxTopicNums" in ((await broker.send(to("Two"))).remark or "")


@observes("maxTopicQueueNums")
async def max_queues(broker: Running) -> None:
    await done(broker, CREATE, wanted("One", read_queue_nums=9))
    await change(broker, maxTopicQueueNums=8)
    await refused(broker, CREATE, wanted("Two", read_queue_nums=9), match="maxTopicQueueNums")


@observes("maxAddressShare", maxAddressShare=100, maxLockNums=10)
async def address_share(broker: Running) -> None:
    assert not await lock(broker, 8)
    await change(broker, maxAddressShare=20)
    assert "maxAddressShare" in await lock(broker, 1, 8)


@observes("emptyGroupExpiredTimeout")
async def empty_group_expired(broker: Running) -> None:
    broker.state.groups.get_or_make("nobody")
    await broker.runtime.slices.finish(broker.state.empty_groups.expire())
    assert "nobody" in broker.state.groups
    await change(broker, emptyGroupExpiredTimeout=1)

    async def is_expired() -> bool:
        await broker.runtime.slices.finish(broker.state.empty_groups.expire())
        return "nobody" not in broker.state.groups

    await until(is_expired)


@observes("maxSubscriptionGroupNums")
async def max_groups(broker: Running) -> None:
    await done(broker, GROUP, body=encode_body(SubscriptionGroup(group_name="one")))
    await change(broker, maxSubscriptionGroupNums=len(broker.state.groups))
    two = encode_body(SubscriptionGroup(group_name="two"))
    await refused(broker, GROUP, body=two, match="maxSubscriptionGroupNums")


@observes("maxGroupConfigSize")
async def group_config_size(broker: Running) -> None:
    long = [SimpleSubscription("T", "TAG", "x" * 2000)]
    group = encode_body(SubscriptionGroup(group_name="g", subscription_data_set=long))
    await done(broker, GROUP, body=group)
    await change(broker, maxGroupConfigSize=1024)
    await refused(broker, GROUP, body=group, match="maxGroupConfigSize")


@observes("maxHeartbeatSize")
async def heartbeat_size(broker: Running) -> None:
    long = beat("c", 0, Subscription("T", "x" * 5000))
    await done(broker, BEAT, body=long)
    await change(broker, maxHeartbeatSize=4096)
    await refused(broker, BEAT, body=long, match="maxHeartbeatSize")


@observes("maxGroupsPerHeartbeat")
async def groups_of_a_heartbeat(broker: Running) -> None:
    await done(broker, BEAT, body=beat("c", 3))
    await change(broker, maxGroupsPerHeartbeat=2)
    await refused(broker, BEAT, body=beat("c", 3), match="maxGroupsPerHeartbeat")


@observes("maxSubscriptionsPerGroup")
async def subscriptions_of_a_group(broker: Running) -> None:
    many = beat("c", 0, *(Subscription(f"T{number}", "*") for number in range(3)))
    await done(broker, BEAT, body=many)
    await change(broker, maxSubscriptionsPerGroup=2)
    await refused(broker, BEAT, body=many, match="maxSubscriptionsPerGroup")


@observes("maxSubscriptionsSize")
async def subscriptions_size(broker: Running) -> None:
    long = Subscription("T", "x" * 40_000)
    await done(broker, BEAT, body=beat("c", 0, long))
    await change(broker, maxSubscriptionsSize=65_536)
    await refused(broker, BEAT, body=beat("c", 0, long, group="h"), match="maxSubscriptionsSize")


@observes("maxClientNums")
async def max_clients(broker: Running) -> None:
    await done(broker, BEAT, body=beat("c", 2))
    await change(broker, maxClientNums=2)
    await refused(broker, BEAT, body=beat("c", 3), match="maxClientNums")


@observes("maxLockBatchSize")
async def lock_batch(broker: Running) -> None:
    await done(broker, CREATE, wanted("T"))
    assert not await lock(broker, 3)
    await change(broker, maxLockBatchSize=2)
    assert "maxLockBatchSize" in await lock(broker, 3)


@observes("maxLockNums")
async def locks(broker: Running) -> None:
    await done(broker, CREATE, wanted("T"))
    assert not await lock(broker, 3)
    await change(broker, maxLockNums=3)
    assert "maxLockNums" in await lock(broker, 1, 3)


@observes("maxConsumerOffsetNums")
async def consumer_offsets(broker: Running) -> None:
    await done(broker, CREATE, wanted("T"))
    await done(broker, GROUP, body=encode_body(SubscriptionGroup(group_name="g")))
    for number in range(1000):
        broker.state.store.core.config.consumer_offsets.commit("g", "T", number, 0)
    assert not await commit(broker, 1000)
    await change(broker, maxConsumerOffsetNums=1000)
    assert "maxConsumerOffsetNums" in await commit(broker, 1001)


@observes("maxAnswerEntries", maxAnswerEntries=2000)
async def answer_entries(broker: Running) -> None:
    await done(broker, CREATE, wanted("T", read_queue_nums=1001))
    await done(broker, BEAT, body=beat("c", 0, Subscription("T", "*")))
    asked = ConsumeStatsHeader(consumer_group="g", topic="T")
    await done(broker, RequestCode.GET_CONSUME_STATS, asked)
    await change(broker, maxAnswerEntries=1000)
    await refused(broker, RequestCode.GET_CONSUME_STATS, asked, match="maxAnswerEntries")


@observes("maxAdminBodySize")
async def admin_body_size(broker: Running) -> None:
    topics = encode_body({"topicConfigList": [Topic(f"T{number}") for number in range(100)]})
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=topics)
    await change(broker, maxAdminBodySize=4096)
    code = RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
    await refused(broker, code, body=topics, match="maxAdminBodySize")


@observes("longRequestQueueCapacity")
async def long_requests(broker: Running) -> None:
    await change(broker, longRequestQueueCapacity=1)
    slices, peer = broker.runtime.slices, next(iter(broker.broker.peers))

    def job() -> Generator[None]:
        while not is_over:
            yield

    is_over = False
    serving = slices.serve(peer, job())
    assert asyncio.iscoroutine(serving)
    code = RequestCode.GET_ALL_TOPIC_CONFIG
    answer = asyncio.create_task(broker.ask(code))
    try:
        await soon(asyncio.wait([answer]))
        assert "longRequestQueueCapacity" in (answer.result().remark or "")
    finally:
        is_over = True
        await serving


@observes("maxConnectionMemory", maxConnectionMemory=256 << 20)
async def connection_memory(broker: Running) -> None:
    await change(broker, maxConnectionMemory=32 << 20)
    host, port = broker.address.split(":")
    before = len(broker.broker.peers)
    writers = [(await asyncio.open_connection(host, int(port)))[1] for _ in range(4)]
    try:
        await until(lambda: len(broker.broker.peers) == before + 4)
        for writer in writers:
            # A frame that never ends.
            writer.write((15 << 20).to_bytes(4) + bytes(12 << 20))
        await until(lambda: len(broker.broker.peers) < before + 4)
    finally:
        for writer in writers:
            writer.transport.abort()  # what was written is not read any more
