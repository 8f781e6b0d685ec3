"""Name servers and brokers that cannot be reached: every client says which, and why."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.admin import Admin, messages
from mqlake.cli.app import run as program
from mqlake.client import (
    Consumer,
    Credentials,
    Message,
    NoRouteError,
    Producer,
    PullConsumer,
    SimpleConsumer,
)
from mqlake.errors import MqlakeError
from mqlake.formats.host import encode_host
from mqlake.formats.message_id import encode_message_id
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import make_namesrv_settings
from mqlake.query.live.connection import close_connections
from mqlake.query.live.options import live_options
from mqlake.query.live.plan import plan_batch
from mqlake.testing import broker
from tests.auth.closed import CLOSED
from tests.remoting.serving import serving


@pytest.fixture
def closed() -> Iterator[str]:
    """Return an address at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def refused(address: str, topic: str = "t") -> str:
    return f"topic {topic}: no name server answers: {address}: Connection refused"


def test_each_client_names_the_name_server_that_does_not_answer(
    closed: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with Producer(closed) as producer:
            for send in (producer.send, producer.send_oneway):
                with pytest.raises(NoRouteError) as sent:
                    await send(Message(topic="t", body=b"x"))
                assert str(sent.value) == refused(closed)
        async with PullConsumer(closed, "g") as puller:
            with pytest.raises(NoRouteError) as asked:
                await puller.queues_of("t")
            assert str(asked.value) == refused(closed)
        async with SimpleConsumer(closed, "g", "t") as popper:
            with pytest.raises(NoRouteError) as popped:
                await popper.receive(wait=0.1)
            assert str(popped.value) == refused(closed)
        with caplog.at_level(logging.WARNING):
            async with Consumer(closed, "g", "t") as consumer:
                assert await consumer.receive(0.1) is None
        assert f"group g: {refused(closed)}; it is read as soon as there is a route" in caplog.text
        async with Admin(closed) as admin:
            with pytest.raises(MqlakeError, match=f"{closed}: Connection refused"):
                await admin.cluster_info()

    asyncio.run(run())


def test_a_name_server_that_does_not_know_the_topic_is_told_from_one_that_is_silent(
    closed: str,
) -> None:
    with broker() as running:

        async def run() -> str:
            async with PullConsumer(f"{closed};{running.name_server}", "g") as puller:
                with pytest.raises(NoRouteError) as asked:
                    await puller.queues_of("nowhere")
                return str(asked.value)

        assert asyncio.run(run()) == (
            f"topic nowhere: no name server of {running.name_server} knows the topic "
            f"({closed}: Connection refused)"
        )


def test_a_server_that_is_no_name_server_is_told_from_one() -> None:
    """A broker of RocketMQ knows no requests for routes; one of mqlake knows some."""

    async def run() -> None:
        async with serving({}) as served:
            why = (
                f"{served.address}: this is not a name server, but perhaps a broker: give the "
                "address of a name server, whose port is 9876 by default"
            )
            async with Producer(served.address) as producer:
                with pytest.raises(NoRouteError) as sent:
                    await producer.send(Message(topic="t", body=b"x"))
            assert str(sent.value) == f"topic t: no name server answers: {why}"
            async with Admin(served.address) as admin:
                with pytest.raises(MqlakeError) as asked:
                    await admin.cluster_info()
            assert str(asked.value) == why
            query = live_options({"nameServer": served.address}, streaming=False)
            with pytest.raises(MqlakeError) as planned:
                await asyncio.to_thread(plan_batch, query, ())
            close_connections()
            assert str(planned.value) == f"the list of topics: {why}"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (None, "refuses a request without a signature: username cannot be null."),
        (Credentials("someone", "someones-key"), "refuses: User:someone is not found."),
    ],
    ids=["unsigned", "unknown"],
)
def test_a_name_server_that_refuses_is_named_with_its_reason(
    tmp_path: Path, closed: str, user: Credentials | None, reason: str
) -> None:
    async def run() -> str:
        settings = {"listenPort": 0, "authConfigPath": str(tmp_path / "names"), **CLOSED}
        del settings["brokerClusterName"]
        async with NameServer(make_namesrv_settings(settings)) as server:
            address = f"127.0.0.1:{server.port}"
            async with Producer(f"{closed};{address}", credentials=user) as producer:
                with pytest.raises(NoRouteError) as sent:
                    await producer.send(Message(topic="t", body=b"x"))
                return str(sent.value).replace(address, "ADDRESS")

    assert asyncio.run(run()) == (
        f"topic t: no name server returns its route: {closed}: Connection refused; ADDRESS {reason}"
    )


def test_a_message_id_of_a_closed_broker_names_the_unique_key_as_the_way_to_ask(
    closed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host, port = closed.split(":")
    message_id = encode_message_id(encode_host(f"{host}:{port}"), 0)

    async def run() -> None:
        async with Admin(closed) as admin:
            with pytest.raises(MqlakeError, match=f"{closed}: Connection refused: message id"):
                await messages.by_id(admin, message_id)

    asyncio.run(run())
    assert program(["admin", "queryMsgById", "-n", closed, "-i", message_id]) == 2
    said = capsys.readouterr().err
    assert "Connection refused" in said
    assert "if it has moved, ask by the unique key" in said
