"""mqlake's producers and consumers with the real brokers, the newest one and that of 4.9."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest

from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    PullConsumer,
    SendResult,
)
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from mqlake.testing import RunningBroker, broker
from tests.client.behaviour.cases import CASES, POP_CASES, Case, Outcomes, run
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import NEWEST, NEWEST_4, Clients
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER, Cluster
from tests.until import PATIENCE, until

pytestmark = [pytest.mark.peer]

FIRST = ConsumerSettings(consume_from="first")


@pytest.fixture(
    scope="module",
    params=["5.5.0", pytest.param(NEWEST_4_BROKER, marks=pytest.mark.nightly)],
)
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    place = tmp_path_factory.mktemp("cluster")
    version = None if request.param == "5.5.0" else request.param
    settings = {
        "mappedFileSizeCommitLog": 1 << 25,
        "maxIndexNum": 100_000,
        "maxHashSlotNum": 25_000,
    }
    try:
        cluster = Cluster(place, place / "store", settings, version=version)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    cluster.start()
    cases = CASES if version == NEWEST_4_BROKER else [*CASES, *POP_CASES]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(place / "home"))
            yield run(cases, cluster.names)
    finally:
        cluster.kill()


@pytest.mark.parametrize("case", [*CASES, *POP_CASES], ids=lambda case: case.__name__)
def test_behaviour(case: Case, outcomes: Outcomes, request: pytest.FixtureRequest) -> None:
    if case in POP_CASES and NEWEST_4_BROKER in request.node.name:
        pytest.skip("brokers of 4.9 do not pop for clients like this one")
    if (failure := outcomes.failures.get(case)) is not None:
        raise failure


def test_no_task_is_left_behind(outcomes: Outcomes) -> None:
    assert not outcomes.tasks_left


@pytest.fixture(scope="module", params=[NEWEST, pytest.param(NEWEST_4, marks=pytest.mark.nightly)])
def java(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clients]:
    try:
        clients = Clients(tmp_path_factory.mktemp("clients"), request.param)
    except JavaMissingError as reason:
        pytest.skip(f"without stock clients: {reason}")
    yield clients
    clients.close()


def test_java_and_python_share_a_group(java: Clients) -> None:
    """A Python consumer joins a Java one, which has consumed ten messages of each queue."""
    topic, group = "mixed", "mixed-group"
    with broker() as running:
        words = ("updateTopic", "-t", topic, "-b", running.address, "-r", "4", "-w", "4")
        java.mqadmin(running.name_server, [words])
        held = java.hold(running.name_server, topic, group, "mixed-producers")
        asyncio.run(_join(running, topic, group, held["client"]))
        java.let_go(running.name_server)


async def _join(running: RunningBroker, topic: str, group: str, other: str) -> None:
    names = running.name_server
    got: list[ConsumedMessage] = []

    async def handle(message: ConsumedMessage) -> None:
        got.append(message)

    sent: list[SendResult] = []
    async with Producer(names, timeout=60) as producer:
        async with Consumer(names, group, topic, settings=FIRST) as consumer:
            task = asyncio.create_task(consumer.run(handle))
            await until(lambda: sum(queue.topic == topic for queue in consumer.queues) == 2)
            # Java consumes these queues until it is told of the new member.
            async with asyncio.timeout(PATIENCE):
                while await _count_queues(running.address, topic, group, other) != 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            mine = {queue for queue in consumer.queues if queue.topic == topic}
            queues = await producer.queues(topic)
            for number in range(40):
                message = Message(topic=topic, body=b"%d" % number)
                sent.append(await producer.send(message, queue=queues[number % 4]))
            await until(lambda: len({message.message_id for message in got}) >= 20)
        await task
    assert {message.message_id for message in got} == {
        result.message_id for result in sent if result.queue in mine
    }
    async with PullConsumer(names, group) as reader:
        await reader.queues_of(topic)
        for queue in queues:
            # Java's half, and what Python had committed when it left.
            async with asyncio.timeout(PATIENCE):
                while await reader.committed(queue) != 20:  # noqa: ASYNC110 (Java's timer)
                    await asyncio.sleep(0.1)


async def _count_queues(address: str, topic: str, group: str, member: str) -> int:
    """Return how many queues of a topic a Java member of a group has."""
    client = RemotingClient()
    fields = {"consumerGroup": group, "clientId": member, "jstackEnable": "false"}
    try:
        asked = request(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        answer = await client.call(address, asked, 60)
    finally:
        await client.close()
    objects = re.findall(r"\{[^{}]*\}", bytes(answer.body).decode())
    return sum('"queueId"' in each and f'"topic":"{topic}"' in each for each in objects)
