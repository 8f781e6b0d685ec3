"""The tables of a slave: RocketMQ's slave of mqlake's master, and mqlake's slave of RocketMQ's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.errors import FormatError
from mqlake.formats.config import (
    Config,
    ConsumerOffsets,
    DelayOffsets,
    MessageRequestModes,
    SubscriptionGroups,
    Topics,
    load,
)
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.bodies.pop import RequestMode
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from mqlake.remoting.client import RemotingClient
from tests.broker.admin.asking import wanted
from tests.broker.running import running
from tests.broker.slave.pairs import SLAVE, name_server
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_broker import Broker
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER, Cluster

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

PATIENCE = 120.0
"""Seconds: a master of RocketMQ's has offsets in its file after 5."""
KINDS: tuple[tuple[type[Config], str], ...] = (
    (Topics, "topic_config_table"),
    (SubscriptionGroups, "subscription_group_table"),
    (ConsumerOffsets, "offset_table"),
    (DelayOffsets, "offset_table"),
    (MessageRequestModes, "message_request_mode_map"),
)


def tables(store: Path) -> dict[str, Any]:
    """Return the tables in a store's configuration files."""

    def read(name: str) -> bytes | None:
        try:
            return (store / "config" / name).read_bytes()
        except FileNotFoundError:
            return None

    found: dict[str, Any] = {}
    for kind, table in KINDS:
        loaded = load(read, kind)
        values = getattr(loaded, table, None)
        found[kind.file_name] = known = msgspec.to_builtins(values) if values else None
        if kind is SubscriptionGroups:
            for group in (known or {}).values():
                group.pop("createdByAdmin", None)  # RocketMQ does not keep it.
    return found


async def fill(address: str) -> None:
    """Put something into every table of a master."""
    client = RemotingClient()

    async def tell(code: RequestCode, header: Header | None = None, body: bytes = b"") -> None:
        answer = await client.request(address, request(code, header, body), PATIENCE)
        # A broker of 4.9 knows no request modes.
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)

    for name in ("Orders", "Others"):
        await tell(RequestCode.UPDATE_AND_CREATE_TOPIC, wanted(name))
    group = SubscriptionGroup("readers", retry_max_times=3, consume_broadcast_enable=False)
    await tell(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(group))
    for queue_id in range(2):
        header = UpdateConsumerOffsetHeader(
            consumer_group="readers", topic="Orders", queue_id=queue_id, commit_offset=0
        )
        await tell(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    mode = RequestMode("Orders", "readers", "POP", 2)
    await tell(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))
    await client.close()


async def same(
    master: Path, slave: Path, names: tuple[str, ...], copy: Callable[[], object] = lambda: None
) -> None:
    """Return once both have the same tables on the disk, which are those that were filled."""
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(FormatError):  # RocketMQ writes in place
                    ours, theirs = tables(master), tables(slave)
                    known = ours["topics.json"] or {}
                    if "Orders" in known and all(ours[name] == theirs[name] for name in names):
                        return
                copy()
                await asyncio.sleep(0.5)
    except TimeoutError:
        for name in names:
            assert theirs[name] == ours[name], name
        raise


def test_rocketmqs_slave_has_the_tables_of_mqlakes_master(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            name_server() as names,
            running(tmp_path / "master", namesrvAddr=names, flushConsumerOffsetInterval=50) as up,
        ):
            await fill(up.address)
            for level in range(1, 4):
                up.state.store.config.delay_offsets.set(level, 7 * level)
            settings = {
                "brokerName": "broker-a",
                "brokerRole": "SLAVE",
                "brokerId": 1,
                "namesrvAddr": names,
            }
            (tmp_path / "java").mkdir()
            try:
                slave = Broker(tmp_path / "slave", tmp_path / "java", settings)
            except JavaMissingError as reason:
                pytest.skip(f"without the real RocketMQ: {reason}")
            files = tuple(kind.file_name for kind, _ in KINDS)
            with slave:
                await same(tmp_path / "master", tmp_path / "slave", files, slave.copy_tables)
                slave.check()
                slave.kill()

    asyncio.run(run())


@pytest.mark.parametrize(
    "version", [None, pytest.param(NEWEST_4_BROKER, marks=pytest.mark.nightly)]
)
def test_mqlakes_slave_has_the_tables_of_rocketmqs_master(
    version: str | None, tmp_path: Path
) -> None:
    place = tmp_path / "java"
    place.mkdir()
    try:
        cluster = Cluster(place, tmp_path / "master", {}, version=version)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    cluster.start()

    async def run() -> None:
        await fill(cluster.broker)
        async with running(
            tmp_path / "slave", namesrvAddr=cluster.names, brokerName="broker-a", **SLAVE
        ) as slave:
            assert slave.state.replicas.master_address == cluster.broker
            # An address that says where the master sends its log.
            assert slave.state.replicas.master_ha_address.startswith("127.0.0.1:")
            files = ["topics.json", "subscriptionGroup.json", "consumerOffset.json"]
            if version is None:
                files.append("messageRequestMode.json")
            await same(tmp_path / "master", tmp_path / "slave", tuple(files))

    try:
        asyncio.run(run())
    finally:
        cluster.kill()
