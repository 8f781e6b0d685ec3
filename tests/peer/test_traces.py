"""The real mqadmin shows what this client notes of its messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.client import Consumer, ConsumerSettings, Message, Producer
from mqlake.testing import broker
from tests.client.behaviour.cases import collect
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import Clients

pytestmark = [pytest.mark.peer]


def test_mqadmin_shows_traces(tmp_path: Path) -> None:
    (directory := tmp_path / "clients").mkdir()
    try:
        clients = Clients(directory)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    try:
        with broker(tmp_path / "store") as running:
            message_id = asyncio.run(send_and_consume(running.name_server))
            (printed,) = clients.mqadmin(
                running.name_server, [["queryMsgTraceById", "-i", message_id]]
            )
    finally:
        clients.close()
    rows = [line.split() for line in printed.splitlines() if line and not line.startswith("#")]
    assert [(row[0], row[1], row[-1]) for row in rows if row[0] == "Pub"] == [
        ("Pub", "traced-producers", "success")
    ], printed
    assert [(row[0], row[1], row[-1]) for row in rows if row[0] == "Sub"] == [
        ("Sub", "traced-group", "success")
    ], printed


async def send_and_consume(names: str) -> str:
    async with Producer(names, group="traced-producers", trace=True, timeout=60) as producer:
        sent = await producer.send(Message(topic="traced", body=b"body", keys="k", tags="t"))
    settings = ConsumerSettings(consume_from="first", trace=True)
    async with Consumer(names, "traced-group", "traced", settings=settings) as consumer:
        await collect(consumer, 1)
    return sent.message_id
