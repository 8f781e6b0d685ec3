"""Nothing in a broker's memory has the name of what was deleted, except what this file explains."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, Subscription
from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import RequestMode
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from mqlake.protocol.headers.pop import NotificationHeader
from mqlake.remoting.client import RemotingClient
from tests.auth.requests import EXAMPLES
from tests.broker.admin.asking import done
from tests.broker.endings.memory import mentions
from tests.broker.endings.world import World
from tests.broker.pop.popping import header, until_waiting
from tests.broker.running import PATIENCE

TOPIC, GROUP = "TopicThatEnds", "GroupThatEnds"
CLIENT, PRODUCERS = "ClientThatEnds", "ProducersThatEnd"

_NAMES = {"t": TOPIC, "g": GROUP, "%RETRY%g": f"%RETRY%{GROUP}", "c": CLIENT, "p": PRODUCERS}
_LEFT_OUT = frozenset(
    (
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.DELETE_TOPIC_IN_BROKER_LIST,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST,
        RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
    )
)
"""Codes of which no request is sent before the deletion."""

EXPLAINED = {
    r"Clients\.|ConsumerGroup\.|Client\.|Members\.": "clients that are connected; their "
    "subscriptions end with the last connection",
    r"QueueLocks\.": "a client may still process messages of a queue; its lock expires in a minute",
    r"Arrivals\._listeners{}": "nobody listens; dropped with the next message of that name",
    r"WaitingPops\._to_wake": "a timer that wakes nobody, for some minutes at most",
    r"Stats\._measured": "until the next sample, seconds later",
    rf"TopicTable\..*%RETRY%{GROUP}(?!_)": "the retry topic of pulled messages, as in RocketMQ",
    r"InFlight\._by_time": "pops that are forgotten, until they would be due",
    r"Incarnations\.": "the table that says that the topic or the group was deleted",
    r"ColdDataAdmin\._thresholds": "they limit nothing; at most as many as there may be groups",
    r"_RouteCache\._known": "the route of a topic, as a name server answered seconds ago",
    r"ConsumerOffsetTable\._restarts": "running consumers begin the topic anew",
    r"Log\b|Segment|Copies|CopiedAhead|Buffer": "records of the log",
}
"""Paths of names that remain, and the reason."""


async def _use(world: World) -> None:
    """Let everything that a broker knows of topics and groups have the two names."""
    await world.create(TOPIC, GROUP)
    for queue_id in range(2):
        await world.send(TOPIC, "a", "b", "c", "d", queue_id=queue_id)
    first, second = await world.pop(TOPIC, GROUP, queue_id=0, max_msg_nums=2)
    await world.acknowledge(TOPIC, GROUP, first)
    await world.change(TOPIC, GROUP, second, 3_600_000)
    await world.pop(TOPIC, GROUP, queue_id=0, max_msg_nums=1, invisible_time=1)
    await world.pop(TOPIC, GROUP, queue_id=1, max_msg_nums=2, order=True)
    await world.later(5)
    await world.pop(TOPIC, GROUP, queue_id=0, max_msg_nums=1)
    mode = RequestMode(TOPIC, GROUP, "POP", 0)
    await done(world.broker, RequestCode.SET_MESSAGE_REQUEST_MODE, None, encode_body(mode))
    locked = LockQueues(GROUP, "client", mq_set=[MessageQueue(TOPIC, "broker-a", 0)])
    await done(world.broker, RequestCode.LOCK_BATCH_MQ, None, encode_body(locked))
    consumer = ConsumerData(GROUP, subscription_data_set=[Subscription(TOPIC, "*")])
    beat = Heartbeat("client", consumer_data_set=[consumer])
    await done(world.broker, RequestCode.HEART_BEAT, None, encode_body(beat))
    offset = UpdateConsumerOffsetHeader(
        consumer_group=GROUP, topic=TOPIC, queue_id=1, commit_offset=1
    )
    await done(world.broker, RequestCode.UPDATE_CONSUMER_OFFSET, offset)
    await _ask_everything(world, world.client)
    await world.broker.runtime.slices.finish(world.broker.state.stats.look())


async def _ask_everything(world: World, client: RemotingClient) -> None:
    """Send one request of each code that names the two, whether it succeeds or not."""
    # Clients that have left are known again: the last request is a heartbeat.
    for code in (*(code for code in EXAMPLES if code not in _LEFT_OUT), RequestCode.HEART_BEAT):
        example = EXAMPLES[code]
        asked = request(code, _named(dict(example.fields)))
        asked.body = b"" if example.body is None else json.dumps(_named(example.body)).encode()
        await client.request(world.address, asked, PATIENCE)
    thresholds = f"{GROUP}=5\n".encode()
    await done(world.broker, RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, None, thresholds)


def _named(value: Any) -> Any:
    """Return an example with the names of this test."""
    if isinstance(value, dict):
        return {key: _named(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_named(each) for each in cast("list[Any]", value)]
    return _NAMES.get(value, value) if isinstance(value, str) else value


async def _wait(world: World, client: RemotingClient, code: int, asked: Header) -> None:
    """Let a request wait, which the broker answers when the topic or the group ends."""
    answer = await client.request(world.broker.address, request(code, asked), PATIENCE)
    assert answer.code >= 0


def _of_world(world: World) -> dict[str, object]:
    handlers = [route.handler for route in world.broker.broker.routes]
    return {"": (world.broker.state, handlers)}


def _unexplained(world: World, name: str) -> list[str]:
    found = mentions(_of_world(world), name)
    return sorted(
        {path for path in found if not any(re.search(each, path, re.DOTALL) for each in EXPLAINED)}
    )


@pytest.mark.parametrize("name", [TOPIC, GROUP])
def test_nothing_has_the_name_of_what_was_deleted(tmp_path: Path, name: str) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            await _use(world)
            waiting, client = list[asyncio.Task[None]](), RemotingClient(connect_timeout=PATIENCE)
            notification = NotificationHeader(
                consumer_group=GROUP,
                topic=TOPIC,
                queue_id=1,
                poll_time=200_000,
                born_time=0,
                order=True,
            )
            pop = header(
                consumer_group=GROUP, topic=TOPIC, queue_id=1, order=True, poll_time=200_000
            )
            for code, asked in (
                (RequestCode.NOTIFICATION, notification),
                (RequestCode.POP_MESSAGE, pop),
            ):
                waiting.append(asyncio.create_task(_wait(world, client, code, asked)))
            await until_waiting(world.broker, 2, consumer_group=GROUP, topic=TOPIC, queue_id=1)
            before = _unexplained(world, name)
            for part in ("InFlight", "Ordered", "WaitingPops", "Stats", "AssignmentRequests"):
                assert any(f" {part}." in path for path in before), f"{part} knows no {name}"
            if name == TOPIC:
                await world.delete_topic(TOPIC)
            else:
                await world.delete_group(GROUP, clean_offset=True)
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*waiting)
            await client.close()
            await world.settle()
            left = _unexplained(world, name)
            assert not left, "\n".join(left)

    asyncio.run(test())


def test_nothing_has_the_name_of_a_client_that_has_left(tmp_path: Path) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            await world.create(TOPIC, GROUP)
            client = RemotingClient(connect_timeout=PATIENCE)
            await _ask_everything(world, client)
            (peer,) = (
                each.peer
                for group in world.broker.state.clients.consumers.values()
                for each in group
                if each.client_id == CLIENT
            )
            names = CLIENT, PRODUCERS, peer.address
            for name in names:
                assert mentions(_of_world(world), name), f"nothing knows {name}"
            await client.close()
            await world.later(120)
            await world.settle()
            for name in names:
                left = mentions(_of_world(world), name)
                assert not left, "\n".join(left)

    asyncio.run(test())
