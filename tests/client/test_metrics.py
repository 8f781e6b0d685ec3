"""What producers and consumers tell monitoring systems."""

from __future__ import annotations

import asyncio
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqlake.broker.state.topics import READ_WRITE
from mqlake.client import ConsumerSettings, Message, NoRouteError, PullConsumer, SimpleConsumer
from mqlake.client.consumer import statistics as consuming
from mqlake.client.consumer.simple_consumer import PoppedMessage
from mqlake.client.metrics import ClientMetrics
from mqlake.client.producer.producer import Producer
from mqlake.metrics.metric import MetricFamily
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.send import SendMessageHeaderV2, SendMessageResponseHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Handler
from mqlake.testing import broker
from tests.remoting.serving import Served, serving
from tests.until import PATIENCE

FIRST = ConsumerSettings(consume_from="first")


def values(text: bytes) -> dict[tuple[str, str | None], float]:
    families = text_string_to_metric_families(text.decode())
    return {
        (each.name, each.labels.get("topic")): each.value
        for family in families
        for each in family.samples
    }


def all_of(module: object) -> set[str]:
    return {
        each.prometheus_name for each in vars(module).values() if isinstance(each, MetricFamily)
    }


def test_sent_and_received_messages_are_counted() -> None:
    with (
        broker(autoCreateTopicEnable="true") as running,
        running.producer() as producer,
        running.consumer("g", "t") as consumer,
    ):
        metrics = ClientMetrics(producer, consumer, labels={"app": "demo"})
        producer.send_many([Message(topic="t", body=b"hello") for _ in range(7)])
        for number in range(7):
            message = consumer.receive(PATIENCE)
            assert message is not None
            if number:
                assert consumer.ack(message)
            else:
                assert consumer.retry_later(message, 1)
        found = values(metrics.text())
        assert found["mqlake_client_sent_messages_total", "t"] == 7
        assert found["mqlake_client_send_time_seconds_count", "t"] == 1
        assert found["mqlake_client_sends_in_flight", None] == 0
        assert found["mqlake_client_received_messages_total", "t"] == 7
        assert found["mqlake_client_acknowledged_messages_total", "t"] == 6
        assert found["mqlake_client_failed_messages_total", "t"] == 1
        names = {name.removesuffix("_count") for name, _ in found}
        assert all_of(consuming) <= names
        assert b'app="demo"' in metrics.text()
    assert values(metrics.text())["mqlake_client_sent_messages_total", "t"] == 7


def test_retries_and_bytes_are_counted() -> None:
    received: list[Command] = []

    def send(_peer: Peer, asked: Command) -> Command:
        received.append(asked)
        if len(received) == 1:
            return response(asked, ResponseCode.SYSTEM_BUSY)
        return response(asked, header=SendMessageResponseHeader("id", 0, len(received)))

    def route(_peer: Peer, asked: Command) -> Command:
        queues = QueueData("b", 1, 1, READ_WRITE)
        brokers = BrokerData("c", "b", {0: served.address})
        return response(asked, body=encode_body(TopicRouteData([queues], [brokers])))

    def heartbeat(_peer: Peer, asked: Command) -> Command:
        return response(asked)

    handlers: dict[int, Handler] = {
        RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
        RequestCode.SEND_MESSAGE_V2: send,
        RequestCode.SEND_BATCH_MESSAGE: send,
        RequestCode.HEART_BEAT: heartbeat,
    }

    async def run() -> dict[tuple[str, str | None], float]:
        nonlocal served
        async with (
            serving(handlers) as served,
            Producer(served.address, timeout=PATIENCE) as producer,
        ):
            await producer.send(Message(topic="t", body=b"refused once", keys=["k"]))
            await producer.send_many([Message(topic="t", body=b"in a batch")] * 3)
            return values(ClientMetrics(producer).text())

    served: Served
    found = asyncio.run(run())
    _, single, batch = received
    sizes = [
        len(each.body) + len(each.header(SendMessageHeaderV2).properties or "")
        for each in (single, batch)
    ]
    assert found["mqlake_client_sent_bytes_total", "t"] == sum(sizes)
    assert found["mqlake_client_sent_messages_total", "t"] == 4
    assert found["mqlake_client_send_retries_total", "t"] == 1
    assert ("mqlake_client_send_errors_total", "t") not in found


def test_failures_are_counted() -> None:
    async def run() -> bytes:
        async with Producer("127.0.0.1:1", timeout=0.2) as producer:
            with pytest.raises(NoRouteError):
                await producer.send(Message(topic="t", body=b"x"))
            async with ClientMetrics(producer).serve(0) as port:
                url = f"http://127.0.0.1:{port}/metrics"
                return await asyncio.to_thread(lambda: urlopen(url, timeout=200).read())

    text = asyncio.run(run())
    found = values(text)
    assert found["mqlake_client_send_errors_total", "t"] == 1
    assert b'error="NoRouteError"' in text


def test_what_simple_and_pull_consumers_receive_is_counted() -> None:
    async def run(names: str) -> dict[tuple[str, str | None], float]:
        async with (
            Producer(names) as producer,
            SimpleConsumer(names, "popping", "t", is_from_first=True) as popping,
            PullConsumer(names, settings=FIRST) as reading,
        ):
            for number in range(5):
                await producer.send(Message(topic="t", body=b"%d" % number))
            popped = list[PoppedMessage]()
            while len(popped) < 5:
                popped += await popping.receive()
            for message in popped[1:]:
                await popping.ack(message)
            reading.assign(await reading.queues_of("t"))
            read = 0
            while read < 5:
                read += len(await reading.poll())
            text = ClientMetrics(reading).text()
            assert b'consumer_group="TOOLS_CONSUMER"' in text
            assert values(text)["mqlake_client_received_messages_total", "t"] == 5
            assert ("mqlake_client_acknowledged_messages_total", "t") not in values(text)
            return values(ClientMetrics(popping).text())

    with broker(autoCreateTopicEnable="true") as running:
        found = asyncio.run(run(running.name_server))
    assert found["mqlake_client_received_messages_total", "t"] == 5
    assert found["mqlake_client_acknowledged_messages_total", "t"] == 4
    assert found["mqlake_client_handling_seconds_total", "t"] >= 0
    assert 1 <= found["mqlake_client_pulls_total", "t"] <= 5
    assert ("mqlake_client_failed_messages_total", "t") not in found


def test_producers_of_one_group_are_counted_together() -> None:
    with (
        broker(autoCreateTopicEnable="true") as running,
        running.producer() as one,
        running.producer() as other,
    ):
        for producer, count in ((one, 3), (other, 4)):
            producer.send_many([Message(topic="t", body=b"hello") for _ in range(count)])
        text = ClientMetrics(one, other).text()
    found = values(text)
    assert found["mqlake_client_sent_messages_total", "t"] == 7
    assert found["mqlake_client_send_time_seconds_count", "t"] == 2
    lines = [line.rpartition(b" ")[0] for line in text.splitlines() if line[:1] != b"#"]
    assert len(lines) == len(set(lines))


def test_nothing_is_counted_before_the_start() -> None:
    producer = Producer("127.0.0.1:1")
    assert values(ClientMetrics(producer).text()) == {("mqlake_client_sends_in_flight", None): 0}
