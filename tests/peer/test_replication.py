"""Replication with RocketMQ on one side: the logs are the same byte for byte."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from tests.broker.running import to
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER, Cluster
from tests.programs.processes import BrokerProcess
from tests.replication.pairs import (
    FILES,
    MASTER,
    PATIENCE,
    SLAVE,
    caught_up,
    difference,
    followed,
    name_server,
    start,
    status,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

NIGHTLY = pytest.mark.nightly
LONG = [
    pytest.param(None, 3, 3, marks=NIGHTLY),
    pytest.param(NEWEST_4_BROKER, 3, 3, marks=NIGHTLY),
]
"""The release, 5.5.0 or the newest 4.9.x; how often the slave is killed, and how often the master.
"""
JAVA: dict[str, object] = {
    "brokerClusterName": "DefaultCluster",
    "mappedFileSizeCommitLog": FILES["mappedFileSizeCommitLog"],
    "mapedFileSizeCommitLog": FILES["mappedFileSizeCommitLog"],  # as 4.9 spells it
    "haSendHeartbeatInterval": 500,
    "maxHashSlotNum": FILES["maxHashSlotNum"],
    "maxIndexNum": FILES["maxIndexNum"],
}


def cluster(path: Path, settings: dict[str, object], also: str, version: str | None) -> Cluster:
    path.mkdir(exist_ok=True)
    try:
        return Cluster(path, path / "store", JAVA | settings, also=also, version=version)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")


async def dispatched(client: RemotingClient, address: str) -> None:
    """Return once a broker of RocketMQ's has dispatched its whole log: to its queues and keys."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(MqlakeError):
                answer = await client.call(address, request(RequestCode.GET_BROKER_RUNTIME_INFO))
                if decode_body(KVTable, answer.body).table["dispatchBehindBytes"] == "0":
                    return
            await asyncio.sleep(0.05)


class Sends:
    """Sends to a master, some of which may fail: it is killed now and then."""

    def __init__(self, seed: int) -> None:
        self._client, self._chance = RemotingClient(), random.Random(seed)
        self.count = 0

    async def send(self, address: str, count: int) -> int:
        """Send messages at the same time; return how many were acknowledged."""
        found = await asyncio.gather(*(self._one(address) for _ in range(count)))
        return sum(found)

    async def _one(self, address: str) -> bool:
        number, chance = self.count, self._chance
        self.count += 1
        tags = chance.choice(["a", "b"])
        properties = f"KEYS\x01k{number % 50}\x02TAGS\x01{tags}\x02"
        header = to("Orders", queue_id=number % 4, properties=properties)
        asked = request(
            RequestCode.SEND_MESSAGE_V2, header, chance.randbytes(chance.randrange(4000))
        )
        try:
            answer = await self._client.request(address, asked, 30)
        except MqlakeError:
            return False
        return answer.code == ResponseCode.SUCCESS

    async def until_acknowledged(self, address: str) -> None:
        """Return once a message is acknowledged."""
        async with asyncio.timeout(PATIENCE):
            while not await self.send(address, 1):  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0.1)

    async def close(self) -> None:
        await self._client.close()


@asynccontextmanager
async def sends(seed: int) -> AsyncIterator[tuple[Sends, RemotingClient]]:
    one, client = Sends(seed), RemotingClient()
    try:
        yield one, client
    finally:
        await one.close()
        await client.close()


@pytest.mark.parametrize(("version", "slaves", "masters"), [(None, 1, 0), *LONG])
def test_a_slave_of_rocketmqs_master(
    tmp_path: Path, version: str | None, slaves: int, masters: int
) -> None:
    """After kills of either side, over many files, from an empty slave on."""

    async def run() -> None:
        java = cluster(tmp_path / "java", {"brokerRole": "ASYNC_MASTER"}, "", version)
        ours: BrokerProcess | None = None
        await asyncio.to_thread(java.start)
        try:
            async with sends(1) as (sending, client):
                await sending.send(java.broker, 500)  # its log has several files by now
                ours = await start(tmp_path / "ours", java.names, SLAVE)
                await followed(client, java.broker, ours.address)
                for _ in range(slaves):
                    await sending.send(java.broker, 150)
                    going = asyncio.ensure_future(sending.send(java.broker, 300))
                    await asyncio.to_thread(ours.kill)
                    await going
                    await asyncio.to_thread(ours.start)
                    await followed(client, java.broker, ours.address)
                for _ in range(masters):
                    going = asyncio.ensure_future(sending.send(java.broker, 300))
                    await asyncio.sleep(0.1)
                    await asyncio.to_thread(java.kill)
                    await going
                    await asyncio.to_thread(java.start)
                    await sending.until_acknowledged(java.broker)
                    await followed(client, java.broker, ours.address)
                found = await status(client, ours.address)
                assert found is not None
                assert found.ha_client_runtime_info.problem == ""
                await dispatched(client, java.broker)
        finally:
            await asyncio.to_thread(java.stop if masters else java.kill)  # a stop takes 15 s
            if ours is not None:
                ours.stop()

    asyncio.run(run())
    assert difference(tmp_path / "java" / "store", tmp_path / "ours") is None


@pytest.mark.parametrize(("version", "slaves", "masters"), [(None, 0, 0), *LONG])
def test_a_master_of_rocketmqs_slave(
    tmp_path: Path, version: str | None, slaves: int, masters: int
) -> None:
    """As SYNC_MASTER, which acknowledges what RocketMQ's slave has."""

    async def run() -> None:
        async with name_server() as names, sends(2) as (sending, client):
            # A slave that is slow is waited for, unless it is killed.
            late: dict[str, object] = {} if slaves else {"slaveTimeout": 60_000}
            ours = await start(tmp_path / "ours", names, MASTER | late)
            role: dict[str, object] = {"brokerRole": "SLAVE", "brokerId": 1}
            java = cluster(tmp_path / "java", role, names, version)
            await asyncio.to_thread(java.start)
            try:
                await caught_up(client, ours.address)
                assert await sending.send(ours.address, 500) == 500
                for _ in range(slaves):
                    going = asyncio.ensure_future(sending.send(ours.address, 300))
                    await asyncio.sleep(0.05)
                    await asyncio.to_thread(java.kill)
                    await going
                    await asyncio.to_thread(java.start)
                    await sending.until_acknowledged(ours.address)
                for _ in range(masters):
                    going = asyncio.ensure_future(sending.send(ours.address, 300))
                    await asyncio.sleep(0.05)
                    await asyncio.to_thread(ours.kill)
                    await going
                    await asyncio.to_thread(ours.start)
                    await sending.until_acknowledged(ours.address)
                await caught_up(client, ours.address)
                await dispatched(client, java.broker)
            finally:
                await asyncio.to_thread(java.stop if masters else java.kill)  # a stop takes 15 s
                ours.stop()

    asyncio.run(run())
    assert difference(tmp_path / "ours", tmp_path / "java" / "store") is None
