"""Proxies before the brokers of a cluster: several side by side, while servers leave and return."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from mqlake.client.cluster import Cluster
from mqlake.grpc.messages import (
    Code,
    EndTransactionRequest,
    MessageType,
    QueryRouteRequest,
    TransactionResolution,
    TransactionSource,
)
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.heartbeat import Heartbeat, ProducerData
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.proxy.brokers import cluster
from mqlake.proxy.brokers.cluster import ClusterBrokers
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.errors import StatusError
from mqlake.proxy.service import GrpcService
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.errors import RequestTimeoutError
from mqlake.storage.clock import SystemClock
from tests import simulated
from tests.broker.running import Running, next_port, running
from tests.proxy.clients.of_clients import known, producer
from tests.proxy.consuming.consumer import TOPIC, TestedConsumer, bodies
from tests.proxy.sending.messages import ID, message, send
from tests.proxy.serving import Calls, named
from tests.until import rounds

SETTINGS = ProxySettings(channel_expired_timeout=1 << 40)
READ_WRITE = 6


class ProxiedCluster:
    """A name server and a broker, which can be stopped and started."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self._path, self._settings = path, settings
        self._broker_port, self._names_port = next_port(), next_port()
        self.names = f"127.0.0.1:{self._names_port}"

    @asynccontextmanager
    async def name_server(self) -> AsyncGenerator[NameServer]:
        own = NamesrvSettings(bind_address="127.0.0.1", listen_port=self._names_port)
        async with NameServer(own) as server:
            yield server

    @asynccontextmanager
    async def broker(self) -> AsyncGenerator[Running]:
        more: dict[str, Any] = {"namesrvAddr": self.names, "listenPort": self._broker_port}
        async with running(self._path, **more, **self._settings) as broker:
            yield broker

    @asynccontextmanager
    async def proxy(self, broker: Running) -> AsyncGenerator[Calls]:
        async with ClusterBrokers(self.names) as brokers:
            service = GrpcService(brokers, SETTINGS, SystemClock())
            calls = Calls(broker, service)
            try:
                yield calls
            finally:
                for function in calls.on_end:
                    await function()
                await service.stop()

    async def create(self, broker: Running, topic: str, message_type: str = "") -> None:
        header = CreateTopicHeader(
            topic=topic,
            read_queue_nums=2,
            write_queue_nums=2,
            perm=READ_WRITE,
            topic_filter_type="SINGLE_TAG",
            attributes=f"+message.type={message_type}" if message_type else None,
        )
        async with Cluster("") as cluster:
            await cluster.ask(broker.address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def run(
    path: Path, test: Callable[[ProxiedCluster, Calls], Awaitable[None]], **settings: Any
) -> None:
    async def served() -> None:
        cluster = ProxiedCluster(path, **settings)
        async with cluster.name_server(), cluster.broker() as broker:
            await cluster.create(broker, TOPIC)
            async with cluster.proxy(broker) as calls:
                await test(cluster, calls)

    simulated.run(served())


async def sent(calls: Calls, *texts: str) -> None:
    for text in texts:
        found = await calls.ask("SendMessage", send(message(TOPIC, text.encode())))
        assert found.status.code == Code.OK, found.status.message


async def received(consumer: TestedConsumer, count: int) -> list[str]:
    """Receive and acknowledge until there are so many messages."""
    found: list[str] = []
    while len(found) < count:
        messages = await consumer.receive()
        assert (await consumer.acknowledge(*messages)).status.code == Code.OK
        found += bodies(messages)
    return sorted(found)


def test_messages_are_sent_received_and_acknowledged(tmp_path: Path) -> None:
    async def test(_cluster: ProxiedCluster, calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await sent(calls, "one", "two")
        assert await received(consumer, 2) == ["one", "two"]
        await asyncio.sleep(61)
        assert await consumer.receive() == []

    run(tmp_path, test)


def test_what_one_proxy_delivers_another_one_acknowledges(tmp_path: Path) -> None:
    async def test(cluster: ProxiedCluster, calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await sent(calls, "one")
        (found,) = await consumer.receive()
        async with cluster.proxy(calls.broker) as other:
            answer = await TestedConsumer(other).acknowledge(found)
            assert answer.status.code == Code.OK
        await asyncio.sleep(61)
        assert await consumer.receive() == []

    run(tmp_path, test)


def test_a_topic_that_no_name_server_knows_is_not_found(tmp_path: Path) -> None:
    async def test(_cluster: ProxiedCluster, calls: Calls) -> None:
        found = await calls.ask("QueryRoute", QueryRouteRequest(topic=named("Missing")))
        assert found.status.code == Code.TOPIC_NOT_FOUND

    run(tmp_path, test)


def test_a_new_topic_is_found_soon_after_it_was_missing(tmp_path: Path) -> None:
    async def test(cluster: ProxiedCluster, calls: Calls) -> None:
        request = QueryRouteRequest(topic=named("New"))
        found = await calls.ask("QueryRoute", request)
        assert found.status.code == Code.TOPIC_NOT_FOUND
        await cluster.create(calls.broker, "New", "FIFO")
        await asyncio.sleep(2)
        found = await calls.ask("QueryRoute", request)
        assert found.status.code == Code.OK
        assert {tuple(queue.accept_message_types) for queue in found.message_queues} == {
            (MessageType.FIFO,)
        }

    run(tmp_path, test)


def test_messages_that_arrive_for_a_cancelled_call_are_visible_after_a_second(
    tmp_path: Path,
) -> None:
    async def test(_cluster: ProxiedCluster, calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        waiting = asyncio.create_task(consumer.receive())
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await sent(calls, "one")
        # The broker has given it to the call that was cancelled.
        begin = asyncio.get_running_loop().time()
        assert bodies(await consumer.receive()) == ["one"]
        assert asyncio.get_running_loop().time() - begin < 5

    run(tmp_path, test)


@pytest.mark.parametrize("resolution", ["COMMIT", "ROLLBACK"])
def test_the_broker_asks_the_producer_about_a_transaction(tmp_path: Path, resolution: str) -> None:
    async def test(cluster: ProxiedCluster, calls: Calls) -> None:
        await cluster.create(calls.broker, "X", "TRANSACTION")
        await asyncio.sleep(1)
        stream = await known(calls, "client-1", producer("X"))
        half = message("X", b"half", message_type=MessageType.TRANSACTION)
        found = await calls.ask("SendMessage", send(half))
        assert found.status.code == Code.OK, found.status.message
        command = (await stream.next()).recover_orphaned_transaction_command
        assert (command.transaction_id, command.message.body) == (ID, b"half")
        request = EndTransactionRequest(
            topic=named("X"),
            message_id=ID,
            transaction_id=ID,
            resolution=TransactionResolution[resolution],
            source=TransactionSource.SOURCE_SERVER_CHECK,
        )
        assert (await calls.ask("EndTransaction", request)).status.code == Code.OK
        records = calls.broker.records("X", 0) + calls.broker.records("X", 1)
        assert [record.body for record in records] == [b"half"] * (resolution == "COMMIT")

    run(tmp_path, test, transactionTimeOut=2000, transactionCheckInterval=2000)


def test_routes_stay_known_while_no_name_server_answers(tmp_path: Path) -> None:
    async def served() -> None:
        cluster = ProxiedCluster(tmp_path)
        async with cluster.broker() as broker:
            async with cluster.name_server():
                await asyncio.sleep(31)  # Until the broker has registered.
                await cluster.create(broker, TOPIC)
                names = cluster.proxy(broker)
                calls = await names.__aenter__()
                consumer = TestedConsumer(calls)
                await consumer.begin()
            await asyncio.sleep(100)
            await sent(calls, "one")
            assert await received(consumer, 1) == ["one"]
            missing = await calls.ask("QueryRoute", QueryRouteRequest(topic=named("Missing")))
            assert missing.status.code == Code.INTERNAL_SERVER_ERROR
            await names.__aexit__(None, None, None)

    simulated.run(served())


def test_a_broker_that_leaves_and_returns_is_used_again(tmp_path: Path) -> None:
    async def served() -> None:
        cluster = ProxiedCluster(tmp_path)
        async with cluster.name_server():
            async with cluster.broker() as broker:
                await cluster.create(broker, TOPIC)
                proxy = cluster.proxy(broker)
                calls = await proxy.__aenter__()
                consumer = TestedConsumer(calls)
                await consumer.begin()
                await sent(calls, "before")
            status, _ = await consumer.responses()
            assert status.status.code in (Code.INTERNAL_SERVER_ERROR, Code.FORBIDDEN)
            async with cluster.broker():
                await asyncio.sleep(60)
                await sent(calls, "after")
                assert await received(consumer, 2) == ["after", "before"]
                await proxy.__aexit__(None, None, None)

    simulated.run(served())


def test_an_answer_that_comes_after_its_poll_gave_up_is_handed_over() -> None:
    async def test() -> None:
        found: list[Command] = []
        async with ClusterBrokers("127.0.0.1:1") as brokers:
            answer = Command(0)

            async def slow(*_arguments: object) -> Command:
                await asyncio.sleep(10)
                return answer

            with mock.patch.object(ClusterBrokers, "request", slow):
                caller = Caller("c", "127.0.0.1:5000")
                with pytest.raises(RequestTimeoutError):
                    await brokers.poll("b", Command(1), caller, 5, found.append)
                assert not found
                await asyncio.sleep(6)
                assert found == [answer]

    simulated.run(test())


def test_a_proxy_is_in_the_producer_groups_of_the_newest_settings_of_its_clients() -> None:
    async def test() -> None:
        async with ClusterBrokers("127.0.0.1:1") as brokers:
            for number in range(3):
                names = [f"T{number}", f"U{number}", "shared"]
                for client_id in ("one", "two"):
                    beat = Heartbeat(
                        client_id, producer_data_set=[ProducerData(name) for name in names]
                    )
                    await brokers.register(Caller(client_id, "127.0.0.1:5000"), beat)
            assert brokers.producer_groups == {"T2", "U2", "shared"}
            brokers.unregister(Caller("one", "127.0.0.1:5000"), beat)
            assert brokers.producer_groups == {"T2", "U2", "shared"}
            brokers.unregister(Caller("two", "127.0.0.1:5000"), beat)
            assert not brokers.producer_groups

    simulated.run(test())


def test_a_client_cannot_leave_any_number_of_polls_to_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker answers them later, although the calls of the client have ended."""
    monkeypatch.setattr(cluster, "_MOST_GIVEN_UP", 8)

    async def check() -> None:
        async with ClusterBrokers("127.0.0.1:1") as brokers:
            answers = asyncio.Event()

            async def answer(*_: Any) -> Command:
                await answers.wait()
                return Command(0)

            async def give_up(host: str) -> None:
                caller = Caller("c", f"{host}:1")
                poll = asyncio.create_task(brokers.poll("b", Command(1), caller, 5, late.append))
                await rounds(3)
                poll.cancel()
                await asyncio.wait([poll])
                if not poll.cancelled():
                    poll.result()

            late: list[Command] = []
            with mock.patch.object(brokers, "request", answer):
                for _ in range(4):
                    await give_up("10.0.0.1")
                with pytest.raises(StatusError, match="polls that were given up"):
                    await give_up("10.0.0.1")
                await give_up("10.0.0.2")
                answers.set()
                await rounds(5)
                assert len(late) == 5
                await give_up("10.0.0.1")

    simulated.run(check())
