"""A broker at name servers: told of every change, found again, gone when it stops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.state.registration import registration
from mqlake.broker.state.registration.registration import Registration
from mqlake.broker.state.registration.topic_registrations import LONGEST_PART
from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.groups import TopicConfigList
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs, body_crc
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.namesrv import (
    BrokerNameHeader,
    GetRouteInfoHeader,
    PutKVConfigHeader,
    RegisterBrokerHeader,
)
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectTimeoutError, RequestTimeoutError
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from tests import simulated
from tests.broker.admin.asking import done, wanted
from tests.broker.running import PATIENCE, next_port, running, to
from tests.until import until


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name servers answer, however late."""
    monkeypatch.setattr(registration, "_FIRST", PATIENCE)
    monkeypatch.setattr(registration, "_CHANGE", PATIENCE)
    monkeypatch.setattr(registration, "_LAST", PATIENCE)


@asynccontextmanager
async def name_server(port: int = 0) -> AsyncIterator[str]:
    server = NameServer(NamesrvSettings(bind_address="127.0.0.1", listen_port=port))
    try:
        yield f"127.0.0.1:{await server.start()}"
    finally:
        await server.stop()


async def route(address: str, topic: str) -> TopicRouteData | None:
    client = RemotingClient(connect_timeout=PATIENCE)
    header = GetRouteInfoHeader(topic=topic)
    command = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    answer = await client.request(address, command, PATIENCE)
    await client.close()
    return decode_body(TopicRouteData, answer.body) if answer.code == 0 else None


def test_what_a_producer_makes_is_told_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            name_server() as first,
            name_server() as second,
            running(tmp_path, namesrvAddr=f"{first};{second}") as broker,
        ):
            for address in (first, second):
                known = await route(address, "TBW102")
                assert known is not None
                assert known.broker_datas[0].broker_addrs == {0: broker.address}
            await broker.send(to("Orders"))
            for address in (first, second):

                async def has_topic(address: str = address) -> bool:
                    return await route(address, "Orders") is not None

                await until(has_topic)
            found = await route(first, "Orders")
            assert found is not None
            (queues,) = found.queue_datas
            assert (queues.broker_name, queues.read_queue_nums, queues.perm) == ("broker-a", 4, 6)

    simulated.run(run())


def test_a_topic_that_was_created_has_a_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(self: Registration, address: str) -> None:
        await asyncio.sleep(0.2)
        await whole(self, address)

    async def run() -> None:
        async with name_server() as address, running(tmp_path, namesrvAddr=address) as broker:
            monkeypatch.setattr(Registration, "_register", slowly)
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("One"))
            assert await route(address, "One") is not None
            topics = encode_body(TopicConfigList([Topic("Two", 1, 1), Topic("Three", 1, 1)]))
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=topics)
            assert await route(address, "Two") is not None
            assert await route(address, "Three") is not None

    whole = Registration._register  # pyright: ignore[reportPrivateUsage]
    simulated.run(run())


@pytest.mark.parametrize("failure", [ConnectTimeoutError, RequestTimeoutError])
def test_start_and_topic_creation_wait_for_a_slow_name_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    async def too_late(self: Registration, address: str) -> None:
        monkeypatch.setattr(Registration, "_register", whole)
        raise failure("too late")

    async def run() -> None:
        async with name_server() as address:
            monkeypatch.setattr(Registration, "_register", too_late)
            async with running(tmp_path, namesrvAddr=address) as broker:
                assert await route(address, "TBW102") is not None
                monkeypatch.setattr(Registration, "_register", too_late)
                await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Orders"))
                assert await route(address, "Orders") is not None

    monkeypatch.setattr(registration, "_AGAIN", 0.0)
    whole = Registration._register  # pyright: ignore[reportPrivateUsage]
    simulated.run(run())


def test_a_stop_answers_whoever_waits_for_a_name_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(self: Registration, address: str) -> None:
        hangs.set()
        await asyncio.Event().wait()

    async def run() -> None:
        async with name_server() as address, running(tmp_path, namesrvAddr=address) as broker:
            monkeypatch.setattr(registration, "_CHANGE", 10 * PATIENCE)
            monkeypatch.setattr(Registration, "_register", hang)
            code = RequestCode.UPDATE_AND_CREATE_TOPIC
            created = asyncio.create_task(done(broker, code, wanted("Orders")))
            await hangs.wait()
            await broker.state.names.stop()
            await created

    hangs = asyncio.Event()
    simulated.run(run())


def test_a_topic_is_created_without_name_servers_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        nobody = f"127.0.0.1:{next_port()}"
        async with running(tmp_path, namesrvAddr=nobody) as broker:
            # A registration that fails is not waited for.
            monkeypatch.setattr(registration, "_CHANGE", 10 * PATIENCE)
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Orders"))

    simulated.run(run())


@asynccontextmanager
async def taken(port: int | None) -> AsyncIterator[None]:
    """Hold a port of the loopback."""
    if port is None:
        yield
        return
    holder = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
    try:
        yield
    finally:
        holder.close()


@pytest.mark.parametrize("listens", [True, False])
def test_slaves_are_told_where_the_log_is_sent(tmp_path: Path, listens: bool) -> None:
    """Or nothing at all: Java's slave takes an empty address for one that it cannot read."""

    async def run() -> None:
        port = next_port()
        async with (
            name_server() as address,
            taken(None if listens else port + 1),
            running(tmp_path, namesrvAddr=address, listenPort=port) as broker,
        ):
            body = RegisterBody(TopicConfigs({}, DataVersion(1, 0, 1))).encode()
            header = RegisterBrokerHeader(
                broker_name="broker-a",
                broker_addr="127.0.0.1:1",
                cluster_name="DefaultCluster",
                broker_id=1,
                ha_server_addr="127.0.0.1:2",
                body_crc32=body_crc(body),
            )
            asked = request(RequestCode.REGISTER_BROKER, header, body)
            answer = await broker.client.call(address, asked, PATIENCE)
            told = {"haServerAddr": f"127.0.0.1:{port + 1}"} if listens else {}
            assert answer.fields == {"masterAddr": broker.address, **told}

    simulated.run(run())


def test_a_broker_that_stops_is_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with name_server() as address:
            async with running(tmp_path, namesrvAddr=address):
                assert await route(address, "TBW102") is not None
            assert await route(address, "TBW102") is None

    simulated.run(run())


def test_a_name_server_that_comes_later_or_again_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        port = next_port()
        address = f"127.0.0.1:{port}"

        async def is_known() -> bool:
            return await route(address, "TBW102") is not None

        async with running(tmp_path, namesrvAddr=address) as broker:
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
            async with name_server(port):
                await until(is_known)
            # It knows nothing when it comes again, and the broker sees that it was gone.
            async with name_server(port):
                await until(is_known)

    simulated.run(run())


def test_clients_see_no_more_than_the_broker_allows(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            name_server() as address,
            running(tmp_path, namesrvAddr=address, brokerPermission=PERM_READ),
        ):
            known = await route(address, "BenchmarkTest")
            assert known is not None
            assert known.queue_datas[0].perm == PERM_READ

    simulated.run(run())


def test_topics_that_a_name_server_calls_ordered_are(tmp_path: Path) -> None:
    async def run() -> None:
        async with name_server() as address:
            client = RemotingClient(connect_timeout=PATIENCE)
            header = PutKVConfigHeader(
                namespace="ORDER_TOPIC_CONFIG", key="Ordered", value="broker-a:4"
            )
            await client.call(address, request(RequestCode.PUT_KV_CONFIG, header), PATIENCE)
            async with running(tmp_path, namesrvAddr=address) as broker:
                topics = broker.state.topics
                topics.put(Topic("Ordered", 4, 4))
                topics.put(Topic("Other", 4, 4, order=True))

                async def is_taken_over() -> bool:
                    ordered, other = topics.get("Ordered"), topics.get("Other")
                    assert ordered is not None
                    assert other is not None
                    return ordered.order and not other.order

                await until(is_taken_over)
                topic = topics.get("Ordered")
                assert topic is not None
                assert msgspec.structs.replace(topic, order=False) == Topic("Ordered", 4, 4)
            await client.close()

    simulated.run(run())


def test_what_closes_every_connection_is_not_asked_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "_AGAIN", PATIENCE)
    asked = 0

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read(1)
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, running(tmp_path, namesrvAddr=address) as broker:
            for _ in range(100):
                await broker.send(to("Orders"))

    asyncio.run(run())
    assert 1 <= asked <= 10


def test_whatever_fails_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = RemotingClient.connect

    async def fail_once(client: RemotingClient, address: str) -> Peer:
        monkeypatch.setattr(RemotingClient, "connect", whole)
        raise UnicodeError("label too long")

    async def run() -> None:
        async with name_server() as address:
            monkeypatch.setattr(RemotingClient, "connect", fail_once)
            async with running(tmp_path, namesrvAddr=address):

                async def is_known() -> bool:
                    return await route(address, "TBW102") is not None

                await until(is_known)

    simulated.run(run())
    assert "not registered: UnicodeError: label too long" in caplog.text


MANY = 12_000
"""Topics of a broker whose registration has several parts."""


def fill(store: Path, count: int) -> None:
    """Write a table of topics with long names, as a store has them."""
    names = [f"{'n' * 121}{number:06}" for number in range(count)]
    table = {name: {"topicName": name, "readQueueNums": 4, "writeQueueNums": 4} for name in names}
    (store / "config").mkdir(parents=True)
    version = {"stateVersion": 0, "timestamp": 1, "counter": count}
    content = {"topicConfigTable": table, "dataVersion": version}
    (store / "config/topics.json").write_text(json.dumps(content))


class Seen(NameServer):
    """A name server that notes each registration: its code, its part, and its size in bytes.

    Args:
        without: request codes that it does not serve.
    """

    def __init__(self, *without: RequestCode, **settings: Any) -> None:
        super().__init__({"bind_address": "127.0.0.1", "listen_port": 0, **settings})
        self.seen: list[tuple[int, str, int]] = []
        routes = [route for route in self.routes if route.code not in without]
        self._server = RemotingServer(routes, checks=(self._note,))

    def _note(self, _peer: Peer, command: Command, route: Route) -> None:
        if route.code in (RequestCode.REGISTER_BROKER, RequestCode.REGISTER_TOPIC_IN_NAMESRV):
            part = command.fields.get("registrationPart", "")
            self.seen.append((command.code, part, len(command.body)))

    @property
    def topics(self) -> set[str]:
        return set(self._state.routes.topics.queues)


@pytest.mark.parametrize("settings", [{}, {"delete_topic_with_broker_registration": True}])
def test_many_topics_are_registered_in_parts(tmp_path: Path, settings: dict[str, Any]) -> None:
    async def run() -> None:
        fill(tmp_path / "store", MANY)
        async with (
            Seen(**settings) as names,
            running(tmp_path / "store", namesrvAddr=f"127.0.0.1:{names.port}") as broker,
        ):
            topics = broker.state.topics
            assert names.topics == set(topics)
            parts = [part for _, part, _ in names.seen]
            assert len(parts) > 1
            assert parts == ["first", *["next"] * (len(parts) - 2), "last"]
            longest = max(size for _, _, size in names.seen)
            assert longest < LONGEST_PART * 1.01

            # A topic that changes is registered alone, and the others stay.
            names.seen.clear()
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("New"))
            ((code, _, size),) = names.seen
            assert code == RequestCode.REGISTER_TOPIC_IN_NAMESRV
            assert size < 1000
            assert names.topics == set(topics)
            names.seen.clear()
            await done(
                broker,
                RequestCode.UPDATE_BROKER_CONFIG,
                body=b"enableSingleTopicRegister=false\n",
            )
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Newer"))
            assert [(code, part) for code, part, _ in names.seen] == [
                (RequestCode.REGISTER_BROKER, "changes")
            ]
            assert names.topics == set(topics)

            # A name server that removes topics does so when all have been registered.
            topics.remove("New")
            broker.state.names.changed()
            await broker.state.names.told()
            assert ("New" in names.topics) != bool(settings)
            assert names.topics - {"New"} == set(topics)

    simulated.run(run())


def test_parts_are_registered_if_the_setting_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        settings = {"enableSplitRegistration": True, "splitRegistrationSize": 4}
        async with Seen() as names:
            address = f"127.0.0.1:{names.port}"
            async with running(tmp_path, namesrvAddr=address, **settings) as broker:
                count = len(broker.state.topics)
                assert len(names.seen) == -(-count // 4)
                assert names.topics == set(broker.state.topics)

    simulated.run(run())


@pytest.mark.parametrize("is_single", [True, False])
def test_topics_that_are_created_one_by_one_are_each_sent_once(
    tmp_path: Path, is_single: bool
) -> None:
    count = 60

    async def run() -> None:
        settings = {"splitRegistrationSize": 4, "enableSingleTopicRegister": is_single}
        async with Seen() as names:
            address = f"127.0.0.1:{names.port}"
            async with running(tmp_path, namesrvAddr=address, **settings) as broker:
                sizes: list[int] = []
                for number in range(count):
                    names.seen.clear()
                    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted(f"T{number:02}"))
                    sizes.append(sum(size for _, _, size in names.seen))
                # The last one costs what the first one did, whatever else exists.
                assert max(sizes) - min(sizes) < 50
                assert max(sizes) < 1000
                assert {f"T{number:02}" for number in range(count)} <= names.topics

    simulated.run(run())


def test_a_revoked_permission_stays_revoked_in_later_registrations(tmp_path: Path) -> None:
    async def run() -> None:
        settings = {"enableSplitRegistration": True, "splitRegistrationSize": 4}
        async with Seen() as names:
            address = f"127.0.0.1:{names.port}"
            async with running(tmp_path, namesrvAddr=address, **settings) as broker:
                header = BrokerNameHeader(broker_name="broker-a")
                wipe = request(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
                await broker.client.call(address, wipe, PATIENCE)
                names.seen.clear()
                for name_server in broker.state.names._name_servers.values():  # pyright: ignore[reportPrivateUsage]
                    name_server.whole_at = 0.0
                    name_server.stale.set()

                async def are_seen() -> bool:
                    return len(names.seen) >= len(broker.state.topics) // 4

                await until(are_seen)
                found = await route(address, "BenchmarkTest")
                assert found is not None
                assert found.queue_datas[0].perm == PERM_READ

    simulated.run(run())


def test_a_name_server_of_rocketmq_4_gets_changes_in_a_registration(tmp_path: Path) -> None:
    async def run() -> None:
        async with Seen(RequestCode.REGISTER_TOPIC_IN_NAMESRV) as names:
            address = f"127.0.0.1:{names.port}"
            async with running(tmp_path, namesrvAddr=address, splitRegistrationSize=4) as broker:
                names.seen.clear()
                for topic in ("One", "Two"):
                    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted(topic))
                    assert topic in names.topics
                assert [part for _, part, _ in names.seen] == ["changes"] * 2

    simulated.run(run())


def test_topics_created_one_by_one_cost_the_same_each(tmp_path: Path) -> None:
    async def run() -> None:
        async with Seen() as names:
            address = f"127.0.0.1:{names.port}"
            async with running(tmp_path, namesrvAddr=address, splitRegistrationSize=20) as broker:
                for number in range(100):
                    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted(f"T{number}"))
                assert {f"T{number}" for number in range(100)} <= names.topics
                late = names.seen[-80:]
                assert len(names.seen) <= 103
                assert {code for code, _, _ in late} == {RequestCode.REGISTER_TOPIC_IN_NAMESRV}
                assert max(size for _, _, size in late) < 1000

    simulated.run(run())
