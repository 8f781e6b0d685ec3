"""A replica of RocketMQ's masters: the same log, and no put waits for it unless it counts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER
from tests.peer.test_replication import Sends, cluster, dispatched, sends
from tests.replica.processes import ReplicaProcess
from tests.replication.pairs import difference, status

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

NIGHTLY = pytest.mark.nightly
LONG = [
    pytest.param(None, 2, id="5.5.0-kills", marks=NIGHTLY),
    pytest.param(NEWEST_4_BROKER, 2, id="4.9.7-kills", marks=NIGHTLY),
]
"""The release, and how often each side is killed."""
SYNC: dict[str, object] = {
    "brokerRole": "SYNC_MASTER",
    "inSyncReplicas": 2,  # 4.9 has no such setting, and waits for one slave
    "slaveTimeout": 300,
    "syncFlushTimeout": 300,  # as 4.9 calls it
    "haHousekeepingInterval": 10_000,
}


LATE = b"slaveTimeout=20000\nsyncFlushTimeout=20000"


async def none_is_acknowledged(sending: Sends, address: str, count: int) -> None:
    assert await sending.send(address, count) == 0


@pytest.mark.parametrize(
    ("version", "kills"),
    [
        pytest.param(None, 0, id="5.5.0"),
        pytest.param(NEWEST_4_BROKER, 0, id="4.9.7", marks=NIGHTLY),
        *LONG,
    ],
)
def test_a_replica_of_rocketmqs_sync_master(
    tmp_path: Path, version: str | None, kills: int
) -> None:
    """With the replica alone nothing is acknowledged, until it counts; the log is the same."""

    async def run() -> None:
        java = cluster(tmp_path / "java", SYNC, "", version)
        await asyncio.to_thread(java.start)
        copy = ReplicaProcess("broker-a", tmp_path / "copy", java.names)
        try:
            async with sends(1) as (sending, client):
                await none_is_acknowledged(sending, java.broker, 100)  # its log has some files now
                copy.start()
                await asyncio.to_thread(copy.caught_up)
                await none_is_acknowledged(sending, java.broker, 100)
                await asyncio.to_thread(copy.caught_up)
                if version is None:
                    # Reports that acknowledge nothing keep the connection.
                    before = await status(client, java.broker)
                    await asyncio.sleep(11)
                    after = await status(client, java.broker)
                    assert before is not None
                    assert after is not None
                    (one,), (other,) = before.ha_connection_info, after.ha_connection_info
                    assert one.addr == other.addr
                    assert not other.in_sync
                for _ in range(kills):
                    going = asyncio.ensure_future(sending.send(java.broker, 300))
                    await asyncio.sleep(0.1)
                    await asyncio.to_thread(copy.kill)
                    copy.start()
                    assert await going == 0
                    await asyncio.to_thread(copy.caught_up)
                    going = asyncio.ensure_future(sending.send(java.broker, 300))
                    await asyncio.sleep(0.1)
                    await asyncio.to_thread(java.kill)
                    await going
                    await asyncio.to_thread(java.start)
                    await asyncio.to_thread(copy.caught_up)
                await asyncio.to_thread(copy.stop)
                copy.start("--count")
                await sending.until_acknowledged(java.broker)
                # Now a put has to be acknowledged, however slow the replica is.
                await client.call(
                    java.broker, request(RequestCode.UPDATE_BROKER_CONFIG, None, LATE)
                )
                assert await sending.send(java.broker, 50) == 50
                await asyncio.to_thread(copy.caught_up)
                await dispatched(client, java.broker)
        finally:
            await asyncio.to_thread(java.stop if kills else java.kill)  # a stop takes 15 s
            copy.kill()

    asyncio.run(run())
    assert difference(tmp_path / "java" / "store", tmp_path / "copy") is None
