"""A broker and its name server that accept only TLS: clients, and the broker itself, use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.admin import Admin
from mqlake.client import ClientError, ClientTls, Message, PullConsumer, SimpleConsumer
from mqlake.errors import MqlakeError
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.testing import RunningBroker, broker
from tests.tls.certificates import Authority


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ClientTls:
    files = authority.sign("client")
    return ClientTls(ca=authority.ca, cert=files.cert, key=files.key)


@pytest.fixture(scope="module")
def running(authority: Authority, tls: ClientTls) -> Iterator[RunningBroker]:
    with broker(**authority.settings(client_auth=True)) as running:
        yield running


def test_messages_arrive(running: RunningBroker, tls: ClientTls) -> None:
    with running.producer(tls=tls) as producer:
        producer.send_many([Message(topic="orders", body=b"%d" % n) for n in range(500)])
    with running.consumer("billing", "orders", tls=tls) as consumer:
        found = set[bytes]()
        while len(found) < 500:
            message = consumer.receive(200)
            assert message is not None
            found.add(message.body)
            consumer.ack(message)
    assert found == {b"%d" % n for n in range(500)}


def test_all_clients_take_the_option(running: RunningBroker, tls: ClientTls) -> None:
    async def run() -> None:
        async with Admin(running.name_server, tls=tls) as admin:
            (found,) = await admin.brokers()
            assert found.address == running.address
        with running.producer(tls=tls) as producer:
            producer.send(Message(topic="jobs", body=b"pop"))
        async with PullConsumer(running.name_server, tls=tls) as pulling:
            assert await pulling.queues_of("jobs")
        popping = SimpleConsumer(running.name_server, "pop", "jobs", is_from_first=True, tls=tls)
        async with popping as consumer:
            messages = []
            while not messages:
                messages = list(await consumer.receive())
            assert messages[0].body == b"pop"

    asyncio.run(run())


def test_clients_without_tls_or_a_certificate_reach_nothing(
    running: RunningBroker, authority: Authority
) -> None:
    for tls in (None, ClientTls(ca=authority.ca)):
        with running.producer(tls=tls, timeout=3.0) as producer, pytest.raises(ClientError):
            producer.send(Message(topic="orders", body=b"plain"))

        async def run(tls: ClientTls | None = tls) -> None:
            async with Admin(running.name_server, tls=tls) as admin:
                with pytest.raises(ConnectionFailedError):
                    await admin.brokers()

        asyncio.run(run())


def test_a_broker_whose_files_are_wrong_does_not_start(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    settings: dict[str, object] = {"tls.server.certPath": missing, "tls.server.keyPath": missing}
    with pytest.raises(MqlakeError, match=r"missing\.pem: No such file"), broker(**settings):
        pass
