"""Brokers of one name as processes of their own, at one name server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.ha import HaRuntimeInfo
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from mqlake.replication.master_log import ask
from mqlake.store import StoreReader
from tests.programs.forked import ForkedBroker
from tests.programs.processes import BrokerProcess

PATIENCE = 120.0
"""Seconds: a busy machine has to start processes."""
FILES: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 18,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    "haSendHeartbeatInterval": 500,
}
MASTER: dict[str, object] = {**FILES, "brokerRole": "SYNC_MASTER", "brokerId": 0}
SLAVE: dict[str, object] = {**FILES, "brokerRole": "SLAVE", "brokerId": 1}


@asynccontextmanager
async def name_server() -> AsyncIterator[str]:
    server = NameServer(NamesrvSettings(bind_address="127.0.0.1", listen_port=0))
    address = f"127.0.0.1:{await server.start()}"
    try:
        yield address
    finally:
        await server.stop()


async def start(store: Path, names: str, role: Mapping[str, object]) -> BrokerProcess:
    """Start a broker on a store; its log is beside it."""
    log = store.with_suffix(".log")
    settings = {**role, "namesrvAddr": names}
    return await asyncio.to_thread(ForkedBroker, store, log, settings)


async def status(client: RemotingClient, address: str) -> HaRuntimeInfo | None:
    """Return what a broker says of its replication, None if it does not answer."""
    try:
        answer = await client.call(address, request(RequestCode.GET_BROKER_HA_STATUS))
    except MqlakeError:
        return None
    return decode_body(HaRuntimeInfo, answer.body)


async def caught_up(client: RemotingClient, master: str) -> None:
    """Return once a master has a slave that lacks nothing."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await status(client, master)
            slaves = found.ha_connection_info if found else []
            if any(each.in_sync and each.diff == 0 for each in slaves):
                return
            await asyncio.sleep(0.05)


async def followed(client: RemotingClient, master: str, slave: str) -> None:
    """Return once a slave of mqlake's has the whole log of a master of any release."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await status(client, slave)
            with suppress(MqlakeError):
                end = (await ask(client, master)).end
                if found and found.ha_client_runtime_info.max_offset == end:
                    return
            await asyncio.sleep(0.05)


def difference(one: Path, other: Path) -> str | None:
    """Return how two stores that were left differ in log, queues or keys; None if they do not.

    Beyond its last record a log may have more room, and a file that was made ahead.
    """
    with StoreReader.open(one) as ours, StoreReader.open(other) as theirs:
        if ours.max_offset != theirs.max_offset:
            return f"the logs end at {ours.max_offset} and {theirs.max_offset}"
        if (where := _log_difference(one, other, ours.max_offset)) is not None:
            return where
        if ours.topics() != theirs.topics():
            return f"topics {ours.topics()} and {theirs.topics()}"
        for topic in ours.topics():
            for queue_id in ours.queues(topic):
                ranges = [each.queue(topic, queue_id) for each in (ours, theirs)]
                if ranges[0] != ranges[1]:
                    return f"{topic} {queue_id}: {ranges}"
                if (found := _queue_difference(ours, theirs, topic, queue_id)) is not None:
                    return found
    return None


def _log_difference(one: Path, other: Path, end: int) -> str | None:
    for file in sorted((one / "commitlog").iterdir()):
        base = int(file.name)
        if base >= end:
            continue
        used = min(end - base, file.stat().st_size)
        pair = [(path / "commitlog" / file.name).read_bytes()[:used] for path in (one, other)]
        if pair[0] != pair[1]:
            at = next(n for n, (a, b) in enumerate(zip(*pair, strict=True)) if a != b)
            return f"the logs differ at {base + at}"
    return None


def _queue_difference(
    ours: StoreReader, theirs: StoreReader, topic: str, queue_id: int
) -> str | None:
    first, end = ours.queue(topic, queue_id)
    while first < end:
        pair = [each.get(topic, queue_id, first, 1000) for each in (ours, theirs)]
        if pair[0].records != pair[1].records:
            return f"{topic} {queue_id}: messages from {first} on differ"
        if not pair[0].records:
            return f"{topic} {queue_id}: no message at {first}"
        key = next((each.keys[0] for each in pair[0].records if each.keys), None)
        if key is not None and (
            ours.by_key(topic, key).records != theirs.by_key(topic, key).records
        ):
            return f"{topic}: other messages with key {key}"
        first = pair[0].next_offset
    return None
