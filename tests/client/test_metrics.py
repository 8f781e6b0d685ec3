"""What producers and consumers tell monitoring systems."""

from __future__ import annotations

import asyncio
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqlake.client import Message, NoRouteError
from mqlake.client.consumer import statistics as consuming
from mqlake.client.metrics import ClientMetrics
from mqlake.client.producer import statistics as sending
from mqlake.client.producer.producer import Producer
from mqlake.metrics.metric import Metric
from mqlake.testing import broker
from tests.until import PATIENCE


def values(text: bytes) -> dict[tuple[str, str | None], float]:
    families = text_string_to_metric_families(text.decode())
    return {
        (each.name, each.labels.get("topic")): each.value
        for family in families
        for each in family.samples
    }


def all_of(module: object) -> set[str]:
    return {each.prometheus_name for each in vars(module).values() if isinstance(each, Metric)}


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
        assert found["mqlake_client_sent_bytes_total", "t"] >= 35
        assert found["mqlake_client_send_time_seconds_count", "t"] == 1
        assert found["mqlake_client_sends_in_flight", None] == 0
        assert found["mqlake_client_received_messages_total", "t"] == 7
        assert found["mqlake_client_acknowledged_messages_total", "t"] == 6
        assert found["mqlake_client_failed_messages_total", "t"] == 1
        names = {name.removesuffix("_count") for name, _ in found}
        assert all_of(consuming) <= names
        assert b'app="demo"' in metrics.text()
    assert values(metrics.text())["mqlake_client_sent_messages_total", "t"] == 7


def test_failures_and_retries_are_counted() -> None:
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
    statistics = sending.SendStatistics()
    statistics.retried("t", 2)
    assert sending.RETRIES in {each.metric for each in statistics.samples("g", 0)}


def test_nothing_is_counted_before_the_start() -> None:
    producer = Producer("127.0.0.1:1")
    assert values(ClientMetrics(producer).text()) == {("mqlake_client_sends_in_flight", None): 0}
