"""`mqlake.testing`: a broker for tests of other projects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from mqlake.broker.broker import Broker
from mqlake.client import Message, SimpleConsumer
from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.remoting.client import RemotingClient
from mqlake.testing import RunningBroker, running_broker
from mqlake.testing import broker as run_broker
from mqlake.testing.fixtures import broker  # noqa: F401 (a fixture)
from tests.broker.running import PATIENCE, to


def ask(address: str, command: Command) -> Command:
    async def run() -> Command:
        client = RemotingClient(connect_timeout=PATIENCE)
        try:
            return await client.call(address, command, PATIENCE)
        finally:
            await client.close()

    return asyncio.run(run())


async def count(found: Broker) -> int:
    found.state.store.core.tick()
    return found.state.store.queue("Orders", 0).max_offset


def test_the_fixture_serves_clients(broker: RunningBroker) -> None:  # noqa: F811
    ask(broker.address, request(RequestCode.SEND_MESSAGE_V2, to("Orders"), b"x"))

    # What a producer has made is told to the name server soon.
    header = GetRouteInfoHeader(topic="Orders")
    asked = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            route = ask(broker.name_server, asked)
            break
        except RemotingError:
            assert time.monotonic() < deadline
    assert broker.address.encode() in bytes(route.body)
    assert broker.call(count) == 1
    assert (broker.store / "commitlog").is_dir()


def test_several_at_once_and_one_after_the_other(tmp_path: Path) -> None:
    with run_broker(tmp_path) as first, run_broker() as second:
        assert first.address != second.address
        ask(first.address, request(RequestCode.SEND_MESSAGE_V2, to("Orders"), b"x"))
    assert not second.store.exists()
    with run_broker(tmp_path, brokerName="again") as third:
        assert third.call(count) == 1


def test_wrong_settings_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="brokerId"), run_broker(tmp_path, brokerId=1):
        pass


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with run_broker() as first:
        port = int(first.address.partition(":")[2])
        with (
            pytest.raises(MqlakeError, match="cannot listen"),
            run_broker(tmp_path, listenPort=port),
        ):
            pass
    # What was begun was undone: the store is free.
    with run_broker(tmp_path):
        pass


def test_an_interrupted_start_stops_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(Future[RunningBroker]):
        is_first = True

        def result(self, timeout: float | None = None) -> RunningBroker:
            if self.is_first:
                self.is_first = False
                raise KeyboardInterrupt
            return super().result(timeout)

    with monkeypatch.context() as patch:
        patch.setattr(running_broker, "Future", Interrupted)
        with pytest.raises(KeyboardInterrupt), run_broker(tmp_path):
            pass
    with run_broker(tmp_path):  # The store is free.
        pass


def test_time_can_be_put_forward() -> None:
    with run_broker() as running, running.producer() as producer:
        producer.send(Message(topic="Late", body=b"an hour", delay=3_600_000))
        producer.send(Message(topic="Late", body=b"two hours", delay_level=18))
        with running.consumer("late", "Late") as consumer:
            assert consumer.receive(1) is None
            running.advance(3600)
            message = consumer.receive(PATIENCE)
            assert message is not None
            assert message.body == b"an hour"
            consumer.ack(message)
            running.advance(3600)
            message = consumer.receive(PATIENCE)
            assert message is not None
            assert message.body == b"two hours"
            with pytest.raises(ValueError, match="cannot go back"):
                running.advance(-1)


def test_what_failed_comes_again_as_soon_as_time_is_put_forward() -> None:
    with run_broker() as running, running.producer() as producer:
        producer.send(Message(topic="Orders", body=b"one"))
        with running.consumer("billing", "Orders") as consumer:
            message = consumer.receive(PATIENCE)
            assert message is not None
            consumer.retry_later(message, 18)  # in two hours
            assert consumer.receive(1) is None
            running.advance(7200)
            message = consumer.receive(PATIENCE)
            assert message is not None
            assert message.reconsume_times == 1


def test_popped_messages_come_again_as_soon_as_time_is_put_forward() -> None:
    async def pop(names: str, advance: Callable[[float], None]) -> None:
        async with SimpleConsumer(names, "g", "Orders", is_from_first=True, invisible=60) as pops:
            (first,) = await pops.receive(1, wait=PATIENCE)
            advance(61)
            (again,) = await pops.receive(1, wait=PATIENCE)
            assert (again.body, again.reconsume_times) == (first.body, 1)
            await pops.ack(again)

    with run_broker() as running, running.producer() as producer:
        producer.send(Message(topic="Orders", body=b"one"))
        asyncio.run(pop(running.name_server, running.advance))
