"""Each limit that all clients share, filled by one client while another one works."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, Subscription
from mqlake.protocol.bodies.lite import LiteSubscriptionChange, LiteSubscriptionChanges
from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import DeleteGroupHeader
from mqlake.protocol.headers.clients import UnregisterClientHeader
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from mqlake.remoting.slices import run_at_once
from tests import simulated
from tests.broker.admin.asking import done, wanted
from tests.broker.pop import popping
from tests.broker.running import Running, running, to
from tests.broker.strangers import from_address
from tests.crash.clock import ManualClock
from tests.until import until

MOST = 40
"""The limits here: the table of a default broker is smaller than half of it."""

Add = Callable[[Running, int], Awaitable[str]]
"""Adds an entry of this number; returns the remark of the answer, "" if it was added."""


class Shared(NamedTuple):
    """A limit that all clients share.

    Attributes:
        add: adds an entry.
        used: returns the number of entries that count.
        settings: what the broker starts with.
        recovers: lets the entries of a client that is gone expire; None: they last.
    """

    add: Add
    used: Callable[[Running], int]
    settings: dict[str, object]
    recovers: Callable[[Running, ManualClock], Awaitable[None]] | None = None


async def add_topic(client: Running, number: int) -> str:
    return (await client.send(to(f"T{number}"))).remark or ""


def beat(number: int, *topics: str) -> bytes:
    data = [Subscription(topic) for topic in topics]
    consumer = ConsumerData(f"g{number}", subscription_data_set=data)
    return encode_body(Heartbeat("client", consumer_data_set=[consumer]))


async def add_group(client: Running, number: int) -> str:
    answer = await client.ask(RequestCode.HEART_BEAT, None, beat(number))
    if answer.code == ResponseCode.SUCCESS:
        leave = UnregisterClientHeader(client_id="client", consumer_group=f"g{number}")
        if number % 2:  # Some have a consumer, until the connection is closed.
            await done(client, RequestCode.UNREGISTER_CLIENT, leave)
    return answer.remark or ""


async def add_client(client: Running, number: int) -> str:
    return (await client.ask(RequestCode.HEART_BEAT, None, beat(number))).remark or ""


async def add_subscriptions(client: Running, number: int) -> str:
    body = beat(number, "x" * 200 + str(number))
    return (await client.ask(RequestCode.HEART_BEAT, None, body)).remark or ""


async def add_lock(client: Running, number: int) -> str:
    body = encode_body(LockQueues("g", "client", mq_set=[MessageQueue("T", "a", number)]))
    return (await client.ask(RequestCode.LOCK_BATCH_MQ, None, body)).remark or ""


async def add_offset(client: Running, number: int) -> str:
    host = "other" if number < 0 else "stranger"
    groups = client.state.groups
    groups.get_or_make(host, "127.0.0.2:1" if number < 0 else "127.0.0.1:1")
    header = UpdateConsumerOffsetHeader(
        consumer_group=host, topic="TBW102", queue_id=abs(number), commit_offset=0
    )
    return (await client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)).remark or ""


async def add_pop(client: Running, number: int) -> str:
    group = f"pops{number}"
    header = popping.header(consumer_group=group, topic="TBW102", poll_time=600_000)
    answer = asyncio.ensure_future(client.ask(RequestCode.POP_MESSAGE, header))
    await until(lambda: answer.done() or is_waiting(client, group))
    if not answer.done():
        answer.add_done_callback(lambda each: each.cancelled() or each.exception())
        return ""
    assert answer.result().code == ResponseCode.POLLING_FULL
    return "maxPopPollingSize"


def waiting_pops(broker: Running) -> Any:
    routes = {route.code: route for route in broker.broker.routes}
    handler: Any = routes[RequestCode.POP_MESSAGE].handler
    return handler.__self__._waiting


def count_pops(broker: Running) -> int:
    return len(waiting_pops(broker)._parking)


async def add_lite_topic(client: Running, number: int) -> str:
    header = to("Parents", properties=f"__LITE_TOPIC\x01lite-{number}\x02")
    return (await client.send(header)).remark or ""


async def add_lite_subscription(client: Running, number: int) -> str:
    group = SubscriptionGroup("lites", attributes={"lite.bind.topic": "TBW102"})
    client.state.groups.put(group)
    own = "other" if number < 0 else f"client-{number // 1000}"
    change = LiteSubscriptionChange("PARTIAL_ADD", own, "lites", "TBW102", [f"lite-{number}"])
    body = encode_body(LiteSubscriptionChanges([change]))
    return (await client.ask(RequestCode.LITE_SUBSCRIPTION_CTL, None, body)).remark or ""


async def expire_lite_subscriptions(broker: Running, clock: ManualClock) -> None:
    clock.forward(200_000)
    lite = broker.state.lite
    for client_id in run_at_once(lite.subscriptions.silent(clock.milliseconds())):
        lite.leave(client_id)


def is_waiting(broker: Running, group: str) -> bool:
    return any(turn[1] == group for turn in waiting_pops(broker)._queues)


async def expire_groups(broker: Running, clock: ManualClock) -> None:
    await broker.runtime.slices.finish(broker.state.empty_groups.expire())
    clock.forward(broker.runtime.settings.empty_group_expired_timeout)
    await broker.runtime.slices.finish(broker.state.empty_groups.expire())


async def expire_locks(broker: Running, clock: ManualClock) -> None:
    clock.forward(61_000)
    await broker.runtime.slices.finish(broker.state.locks.expire())


async def nothing(_broker: Running, _clock: ManualClock) -> None:
    """Return at once: entries go with their connection."""


SHARED = {
    "maxTopicNums": Shared(
        add_topic, lambda broker: len(broker.state.topics), {"maxTopicNums": MOST}
    ),
    "maxSubscriptionGroupNums": Shared(
        add_group,
        lambda broker: len(broker.state.groups),
        {"maxSubscriptionGroupNums": MOST},
        expire_groups,
    ),
    "maxClientNums": Shared(
        add_client,
        lambda broker: len(broker.state.clients.consumers),
        {"maxClientNums": MOST},
        nothing,
    ),
    "maxSubscriptionsSize": Shared(
        add_subscriptions,
        lambda broker: sum(each.size for each in broker.state.clients.consumers.values()),
        {"maxSubscriptionsSize": 65_536},
        nothing,
    ),
    "maxLockNums": Shared(
        add_lock, lambda broker: len(broker.state.locks), {"maxLockNums": MOST}, expire_locks
    ),
    "maxConsumerOffsetNums": Shared(
        add_offset,
        lambda broker: len(broker.state.store.config.consumer_offsets),
        {"maxConsumerOffsetNums": 1000},
    ),
    "maxLmqConsumeQueueNum": Shared(
        add_lite_topic,
        lambda broker: broker.state.lite.room.count(),
        {"maxLmqConsumeQueueNum": MOST, "enableLmq": True},
    ),
    "maxLiteSubscriptionCount": Shared(
        add_lite_subscription,
        lambda broker: broker.state.lite.subscriptions.count,
        {"maxLiteSubscriptionCount": MOST, "enableLmq": True},
        expire_lite_subscriptions,
    ),
    "maxPopPollingSize": Shared(add_pop, count_pops, {"maxPopPollingSize": MOST}, nothing),
}
ELSEWHERE = {
    "maxPullPollingSize": "the connection with the most pulls makes room: test_limits.py",
    "maxConnectionMemory": "the greediest connections are closed: tests/remoting",
    "longRequestQueueCapacity": "tests/remoting/test_slices.py",
    "sendThreadPoolQueueCapacity": "sends wait for the disk only, and a client cannot prolong that",
    "maxUserNums": "users that only super users create: tests/auth",
    "maxAnswerEntries": "entries that only administrators create: test_limits.py",
}
"""Limits that all share, and where they are tested."""
OF_ONE = {
    "maxTopicQueueNums",
    "maxGroupConfigSize",
    "maxHeartbeatSize",
    "maxGroupsPerHeartbeat",
    "maxSubscriptionsPerGroup",
    "maxLockBatchSize",
    "maxAdminBodySize",
    "maxFilterExpressionSize",
    "pullPollingSize",
    "popPollingSize",
    "maxQueryEntries",
    "maxQueryScanSize",
    "splitRegistrationSize",
    "maxAddressShare",
    "maxAclEntryNums",
    *(
        f"max{what}Per{whose}"
        for what in ("Connections", "RequestRate", "ByteRate", "InFlight", "Topics", "Groups")
        for whose in ("Address", "User")
    ),
}
"""Limits of one request, connection, group, address or user (test_quotas.py)."""


def test_each_limit_is_in_the_table() -> None:
    own = set(BrokerSettings.__annotations__)
    fields = msgspec.structs.fields(BrokerSettings)
    names = {field.encode_name for field in fields if field.name in own}
    limits = {name for name in names if re.search("^max[A-Z]|Capacity$|PollingSize$", name)}
    limits -= {"maxHaTransferByteInSecond"}
    assert limits <= SHARED.keys() | ELSEWHERE.keys() | OF_ONE


async def works(client: Running, name: str) -> None:
    """Send, and pull the message by a group that exists."""
    assert (await client.send(to("Known"), name.encode())).code == ResponseCode.SUCCESS
    assert client.records("Known")[-1].body == name.encode()


@pytest.mark.parametrize("name", SHARED)
def test_one_client_leaves_room_for_others(tmp_path: Path, name: str) -> None:
    shared = SHARED[name]

    async def main() -> None:
        clock, most = ManualClock(), int(str(shared.settings[name]))
        async with (
            running(tmp_path, clock=clock, **shared.settings) as broker,
            AsyncExitStack() as undo,
        ):
            other = await undo.enter_async_context(from_address(broker, "127.0.0.2"))
            await done(
                broker,
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
                body=encode_body(SubscriptionGroup(group_name="explicit")),
            )
            await works(other, "before")
            added, remark = 0, ""
            while not remark:
                remark = await shared.add(broker, added)
                added += not remark
            assert name in remark
            if name != "maxPopPollingSize":
                assert "maxAddressShare" in remark
            assert most // 3 < shared.used(broker) < most

            await works(other, "at the limit")
            assert not await shared.add(other, -1), "another client has its share"
            # With all of a limit in use, what exists is still served.
            number, remark = 1000, ""
            for host in range(3, 9):
                async with from_address(broker, f"127.0.0.{host}") as each:
                    while not remark and shared.used(broker) < most and number < 1200:
                        remark = await shared.add(each, number)
                        number += 1
                    remark = ""
            await works(other, "full")
            if shared.recovers is not None:
                await broker.client.close()
                await until(lambda: len(broker.broker.peers) <= 1)
                await shared.recovers(broker, clock)
                await until(lambda: shared.used(broker) <= most // 2)
                assert not await shared.add(other, 2000)
            assert "explicit" in broker.state.groups

        # A restart finds what was created, and serves it.
        async with running(tmp_path, clock=clock, **shared.settings) as broker:
            await works(broker, "again")
            assert "explicit" in broker.state.groups

    asyncio.run(main())


def test_a_send_to_a_retry_topic_of_a_refused_group_creates_no_topic(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, autoCreateSubscriptionGroup=False) as broker:
            before = len(broker.state.topics)
            for default in ("TBW102", "missing"):
                for name in ("%RETRY%unknown", "%RETRY%"):
                    answer = await broker.send(to(name, default_topic=default))
                    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            assert len(broker.state.topics) == before

    simulated.run(test())


def test_retry_topics_that_a_client_names_count_to_its_share(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, maxTopicNums=MOST) as broker:
            remark, number = "", 0
            while not remark:
                name = f"%RETRY%g{number}"
                remark = (await broker.send(to(name, default_topic="missing"))).remark or ""
                number += 1
            assert "maxTopicNums" in remark
            assert "maxAddressShare" in remark
            assert len(broker.state.topics) < MOST
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Orders"))

    simulated.run(test())


def test_offsets_of_deleted_groups_no_longer_count(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, maxConsumerOffsetNums=1000, maxAddressShare=1) as broker:
            for number in range(500):
                broker.state.store.config.consumer_offsets.commit("other", "TBW102", number, 0)
            delete = DeleteGroupHeader(group_name="stranger", clean_offset=True)
            for _ in range(30):  # Three shares.
                assert not await add_offset(broker, 1)
                await done(broker, RequestCode.DELETE_SUBSCRIPTIONGROUP, delete)

    simulated.run(test())
