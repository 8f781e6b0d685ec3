"""Slaves that act for a master that is gone, with RocketMQ as slave, as master, as name server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mqlake.broker.slave import following
from mqlake.broker.state.topics import READ_WRITE
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ
from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.bodies.route import BrokerMemberGroupBody, KVTable, TopicRouteData
from mqlake.protocol.body import decode_answer, decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.namesrv import GetBrokerMemberGroupHeader, GetRouteInfoHeader
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.remoting.client import RemotingClient
from tests.broker.acting.groups import ACTS
from tests.broker.admin.asking import wanted
from tests.broker.pull.pulls import GROUP, numbers, pull_header, pulled
from tests.broker.running import SMALL, Running, running, to
from tests.broker.slave.pairs import SLAVE
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_broker import Broker
from tests.peer.rocketmq_cluster import Cluster
from tests.until import until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

PATIENCE = 120.0
NAMES: dict[str, object] = {"supportActingMaster": True, "notifyMinBrokerIdChanged": True}
JAVA: dict[str, object] = {
    "brokerName": "broker-a",
    "mappedFileSizeCommitLog": SMALL["mappedFileSizeCommitLog"],
    "enableSlaveActingMaster": "true",
    "slaveReadEnable": "true",
    "haSendHeartbeatInterval": 500,
}


class Client:
    """Asks brokers and a name server, of either kind."""

    def __init__(self, names: str) -> None:
        self._names, self._client = names, RemotingClient()

    async def close(self) -> None:
        await self._client.close()

    async def tell(
        self, address: str, code: RequestCode, header: Header | None, body: bytes = b""
    ) -> None:
        answer = await self._client.call(address, request(code, header, body), PATIENCE)
        assert answer.code == ResponseCode.SUCCESS

    async def route(self) -> tuple[dict[int, str], int]:
        """Return the brokers of topic Orders by id, and its permission; nothing without it."""
        header = GetRouteInfoHeader(topic="Orders", accept_standard_json_only=True)
        asked = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        answer = await self._client.request(self._names, asked, PATIENCE)
        if answer.code != ResponseCode.SUCCESS:
            return {}, 0
        route = decode_answer(TopicRouteData, answer.body)
        return route.broker_datas[0].broker_addrs, route.queue_datas[0].perm

    async def address_of(self, broker_id: int) -> str:
        """Return a broker's address as routes have it, once they do."""
        async with asyncio.timeout(PATIENCE):
            while True:
                addresses, _ = await self.route()
                if broker_id in addresses:
                    return addresses[broker_id]
                await asyncio.sleep(0.05)

    async def is_writable(self) -> bool:
        """Return whether there is a master that is not a slave."""
        return (await self.route())[1] == READ_WRITE

    async def is_active(self, address: str) -> bool:
        """Return whether a broker of RocketMQ's delivers, or would do so."""
        return (await self._runtime(address)).get("brokerActive") == "true"

    async def end(self, address: str) -> int:
        """Return where a broker's log ends."""
        return int((await self._runtime(address)).get("commitLogMaxOffset", -1))

    async def _runtime(self, address: str) -> Mapping[str, str]:
        try:
            asked = request(RequestCode.GET_BROKER_RUNTIME_INFO)
            answer = await self._client.call(address, asked, PATIENCE)
        except MqlakeError:
            return {}
        return decode_body(KVTable, answer.body).table

    async def create(self, address: str) -> None:
        """Create topic and group."""
        await self.tell(address, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Orders"))
        code, readers = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup(GROUP)
        await self.tell(address, code, None, encode_body(readers))

    async def send(self, address: str, count: int) -> None:
        for number in range(count):
            await self.tell(address, RequestCode.SEND_MESSAGE_V2, to("Orders"), b"%d" % number)

    async def bodies(self, address: str) -> list[bytes]:
        asked = request(RequestCode.PULL_MESSAGE, pull_header())
        return pulled(await self._client.request(address, asked, PATIENCE)).bodies

    async def commit(self, address: str, offset: int) -> None:
        header = UpdateConsumerOffsetHeader(
            consumer_group=GROUP, topic="Orders", queue_id=0, commit_offset=offset
        )
        await self.tell(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def committed(self, address: str) -> int | None:
        header = QueryConsumerOffsetHeader(consumer_group=GROUP, topic="Orders", queue_id=0)
        asked = request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        answer = await self._client.request(address, asked, PATIENCE)
        return answer.header(OffsetHeader).offset if answer.code == 0 else None


@asynccontextmanager
async def client(names: str) -> AsyncIterator[Client]:
    asking = Client(names)
    try:
        yield asking
    finally:
        await asking.close()


def java(path: Path, store: Path, settings: Mapping[str, object]) -> Broker:
    path.mkdir(exist_ok=True)
    try:
        return Broker(store, path, JAVA | settings)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")


def test_rocketmqs_slave_acts_for_mqlakes_master(tmp_path: Path) -> None:
    async def run() -> None:
        server = NameServer({"listenPort": 0, **NAMES})
        async with server:
            names = f"127.0.0.1:{server.port}"
            slave = java(
                tmp_path / "java",
                tmp_path / "slave",
                {"brokerRole": "SLAVE", "brokerId": 1, "namesrvAddr": names},
            )
            known: dict[str, object] = {"namesrvAddr": names, **ACTS}
            async with client(names) as asking:
                with slave:
                    async with running(tmp_path / "master", **known) as master:
                        address = await _fill(asking, master.address)
                        await until(_same_log(asking, master.address, address))
                        await until(_copied(asking, slave, address))
                        assert not await asking.is_active(address)
                    await until(_equals(asking.route, ({0: address}, PERM_READ)))
                    await until(lambda: asking.is_active(address))
                    await until(_equals(lambda: asking.bodies(address), numbers(0, 3)))
                    await asking.commit(address, 2)
                    async with running(tmp_path / "master", **known) as master:
                        assert await asking.committed(master.address) == 2
                        await until(
                            _equals(asking.route, ({0: master.address, 1: address}, READ_WRITE))
                        )
                        await until(_equals(lambda: asking.is_active(address), False))
                        slave.check()
                        slave.kill()

    asyncio.run(run())


async def _fill(asking: Client, master: str) -> str:
    """Put three messages and an offset; return the slave's address once it is registered."""
    await asking.create(master)
    await asking.send(master, 3)
    await asking.commit(master, 1)
    return await asking.address_of(1)


def _same_log(asking: Client, one: str, other: str) -> Callable[[], Awaitable[bool]]:
    async def same() -> bool:
        return await asking.end(one) == await asking.end(other) != -1

    return same


def _copied(asking: Client, slave: Broker, address: str) -> Callable[[], Awaitable[bool]]:
    async def copied() -> bool:
        slave.copy_tables()  # it may not know its master yet
        return await asking.committed(address) == 1

    return copied


def _equals(
    ask: Callable[[], Awaitable[object]], expected: object
) -> Callable[[], Awaitable[bool]]:
    async def equals() -> bool:
        return await ask() == expected

    return equals


def test_mqlakes_slave_acts_for_rocketmqs_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocketMQ's master waits for its slave's connection, then adopts its offsets."""
    monkeypatch.setattr(following, "FULL", 1.0)  # The group is created after the first copy.

    async def run() -> None:
        server = NameServer({"listenPort": 0, **NAMES})
        async with server:
            names = f"127.0.0.1:{server.port}"
            settings: dict[str, object] = {
                "brokerRole": "ASYNC_MASTER",
                "brokerId": 0,
                "namesrvAddr": names,
                "totalReplicas": 2,
            }
            known: dict[str, object] = SLAVE | ACTS | {"namesrvAddr": names}
            async with running(tmp_path / "slave", **known) as slave, client(names) as asking:
                replicas = slave.state.replicas
                with java(tmp_path / "java", tmp_path / "master", settings) as master:
                    address = await master_of(server)
                    await _fill(asking, address)
                    await until(_same_log(asking, address, slave.address))
                    await until(_equals(lambda: asking.committed(slave.address), 1))
                    await until(_has_tables(slave))
                    await asyncio.to_thread(master.stop)
                await until(_equals(asking.route, ({0: slave.address}, PERM_READ)))
                await until(_equals(_of(lambda: replicas.is_acting), True))
                await until(_equals(lambda: asking.bodies(slave.address), numbers(0, 3)))
                await asking.commit(slave.address, 2)
                # On other ports: it says where it sends its log, and waits.
                with java(tmp_path / "java", tmp_path / "master", settings) as master:
                    await until(asking.is_writable)
                    address = await asking.address_of(0)
                    assert await asking.committed(address) == 2
                    await until(_equals(_of(lambda: replicas.is_acting), False))
                    await until(_equals(_of(lambda: replicas.master_address), address))
                    master.check()
                    master.kill()

    asyncio.run(run())


async def master_of(server: NameServer) -> str:
    """Return the address of a master once it is registered: it has no topic of a client yet."""
    client = RemotingClient()
    asked = request(
        RequestCode.GET_BROKER_MEMBER_GROUP,
        GetBrokerMemberGroupHeader(cluster_name="DefaultCluster", broker_name="broker-a"),
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await client.call(f"127.0.0.1:{server.port}", asked)
                members = decode_answer(BrokerMemberGroupBody, answer.body).broker_member_group
                if 0 in members.broker_addrs:
                    return members.broker_addrs[0]
                await asyncio.sleep(0.05)
    finally:
        await client.close()


def _of(value: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    async def ask() -> object:
        return value()

    return ask


def _has_tables(slave: Running) -> Callable[[], Awaitable[bool]]:
    async def has() -> bool:
        # Topics are copied before groups: one created in between is missing until the next copy.
        return "Orders" in slave.state.topics and slave.state.groups.get(GROUP) is not None

    return has


def test_mqlakes_slave_acts_under_rocketmqs_name_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FULL", 1.0)  # The group is created after the first copy.
    place = tmp_path / "java"
    place.mkdir()
    settings = {name: str(value).lower() for name, value in NAMES.items()}
    try:
        cluster = Cluster(place, tmp_path / "other", {"brokerName": "other"}, of_names=settings)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    cluster.start()

    async def run() -> None:
        known: dict[str, object] = {"namesrvAddr": cluster.names, **ACTS}
        async with (
            running(tmp_path / "slave", **(SLAVE | known)) as slave,
            client(cluster.names) as asking,
        ):
            replicas = slave.state.replicas
            for times in (1, 2):
                async with running(tmp_path / "master", **known) as master:
                    await _fill(asking, master.address)
                    expected = ({0: master.address, 1: slave.address}, READ_WRITE)
                    await until(_equals(asking.route, expected))
                    await until(_equals(_of(lambda: replicas.is_acting), False))
                    await until(_same_log(asking, master.address, slave.address))
                    await until(_equals(_of(lambda: replicas.master_answers), True))
                    await until(_has_tables(slave))
                await until(_equals(_of(lambda: replicas.is_acting), True))
                await until(_equals(asking.route, ({0: slave.address}, PERM_READ)))
                # It dispatches what it received a moment later.
                expected = numbers(0, 3) * times
                await until(_equals(lambda: asking.bodies(slave.address), expected))

    try:
        asyncio.run(run())
    finally:
        cluster.kill()
