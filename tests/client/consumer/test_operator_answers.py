"""What operators learn of Python consumers, by way of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from mqlake.client import Cluster, ConsumedMessage, Consumer, Message, Producer
from mqlake.client.consumer.statistics import Statistics
from mqlake.protocol.bodies.connections import ConsumerConnections
from mqlake.protocol.bodies.queue_tables import read_object, read_queue_table
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    ConsumerConnectionsHeader,
    ConsumerHeader,
    ConsumerStatusHeader,
)
from mqlake.testing import RunningBroker, broker
from tests.broker.running import PATIENCE
from tests.client.behaviour.cases import FIRST
from tests.until import until


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


async def client_id_of(group: str, cluster: Cluster, address: str) -> str:
    header = ConsumerConnectionsHeader(consumer_group=group)
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                answer = await cluster.ask(
                    address, RequestCode.GET_CONSUMER_CONNECTION_LIST, header
                )
            except RemotingError:
                await asyncio.sleep(0.02)  # the first heartbeat is on its way
            else:
                break
    (connection,) = decode_answer(ConsumerConnections, answer.body).connection_set
    return connection.client_id


def test_a_broker_passes_on_what_operators_ask(running: RunningBroker) -> None:
    names, group, handled = running.name_server, "asked", list[bytes]()

    async def handle(message: ConsumedMessage) -> None:
        handled.append(message.body)
        if len(handled) == 5:
            raise ValueError("not this one")

    async def run() -> None:
        async with (
            Producer(names) as producer,
            Consumer(names, group, "Asked", settings=FIRST, instance="asked") as consumer,
            Cluster(names) as cluster,
        ):
            sent = [await producer.send(Message(topic="Asked", body=b"%d" % n)) for n in range(4)]
            working = asyncio.create_task(consumer.run(handle, concurrency=3))
            consumer.rebalance_soon()
            await until(lambda: len(handled) == 4)
            client_id = await client_id_of(group, cluster, running.address)
            header = ConsumerHeader(consumer_group=group, client_id=client_id, jstack_enable=True)
            answer = await cluster.ask(
                running.address, RequestCode.GET_CONSUMER_RUNNING_INFO, header
            )
            info = read_object(answer.body)
            properties = info["properties"]
            assert isinstance(properties, dict)
            assert properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
            assert properties["PROP_THREADPOOL_CORE_SIZE"] == "3"
            queues = read_queue_table(info["mqTable"], dict)
            mine = {queue: each for queue, each in queues.items() if queue.topic == "Asked"}
            assert sum(each["commitOffset"] for each in mine.values()) == 4
            status = info["statusTable"]
            assert isinstance(status, dict)
            assert status["Asked"]["consumeOKTPS"] > 0
            assert "test_operator_answers.py" in str(info["jstack"])
            answer = await cluster.ask(
                running.address,
                RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
                ConsumerStatusHeader(topic="Asked", group=group),
            )
            (table,) = dict(read_object(answer.body)["consumerTable"]).values()  # type: ignore[call-overload]
            assert sum(read_queue_table(table, int).values()) == 4
            # A message that is consumed whatever the group has consumed; the fifth one fails.
            for result, wanted in ((sent[0], "CR_THROW_EXCEPTION"), (sent[1], "CR_SUCCESS")):
                header = ConsumerHeader(
                    consumer_group=group, client_id=client_id, msg_id=result.offset_message_id
                )
                answer = await cluster.ask(
                    running.address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header
                )
                assert read_object(answer.body)["consumeResult"] == wanted
            assert handled[4:] == [b"0", b"1"]
        await working

    asyncio.run(run())


def test_a_consumer_that_is_iterated_has_no_handler_to_call(running: RunningBroker) -> None:
    names = running.name_server

    async def run() -> None:
        async with Producer(names) as producer, Consumer(names, "iterates", "Iterated"):
            sent = await producer.send(Message(topic="Iterated", body=b"x"))
            async with Cluster(names) as cluster:
                client_id = await client_id_of("iterates", cluster, running.address)
                header = ConsumerHeader(
                    consumer_group="iterates", client_id=client_id, msg_id=sent.offset_message_id
                )
                with pytest.raises(RemotingError, match="no handler") as caught:
                    await cluster.ask(running.address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
                assert caught.value.code == ResponseCode.SYSTEM_ERROR

    asyncio.run(run())


def test_rates_are_those_of_the_last_minutes() -> None:
    now = 0.0
    statistics = Statistics(lambda: now)
    for minute in range(100):
        now = minute * 60.0
        statistics.sample()
        statistics.pulled("t", 120, 0.5)
        statistics.finished("t", 0.25)
        statistics.failed("t")
    now += 30
    status = statistics.status("t")
    assert (status.pull_tps, status.consume_ok_tps) == (240 / 90, 2 / 90)
    assert (status.pull_rt, status.consume_rt) == (500, 250)
    assert status.consume_failed_msgs == 61
    assert statistics.status("other").pull_tps == 0
