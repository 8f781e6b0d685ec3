"""How far slaves are, and where they connect, as a broker says."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.admin import Admin, brokers
from mqlake.broker.slave import following
from mqlake.protocol.bodies.ha import HaClientInfo, HaConnectionInfo, HaRuntimeInfo
from tests.broker.running import running
from tests.broker.slave.pairs import SLAVE, name_server, pair, until


class Transfer:
    """What sends the log, as a test has it."""

    listens_at = "127.0.0.1:7"

    def status(self) -> HaRuntimeInfo:
        slave = HaConnectionInfo("127.0.0.1:8", 90, 10, True, 5, 95)
        return HaRuntimeInfo(True, 100, 1, [slave])


def test_a_slave_is_told_where_its_master_sends_the_log_if_somebody_listens(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path, registerNameServerPeriod=10_000) as (master, slave):
            assert slave.parts.replicas.master_ha_address == ""
            master.parts.replicas.transfer = Transfer()
            master.parts.names.changed()
            await master.parts.names.told()
            slave.parts.names.changed()
            await until(lambda: slave.parts.replicas.master_ha_address == Transfer.listens_at)

    asyncio.run(run())


def test_a_slave_that_starts_first_finds_its_master(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            name_server() as names,
            running(tmp_path / "slave", namesrvAddr=names, **SLAVE) as slave,
        ):
            assert slave.parts.replicas.master_address == ""
            async with running(tmp_path / "master", namesrvAddr=names) as master:
                await until(lambda: slave.parts.replicas.master_address == master.address)
                await until(lambda: slave.parts.replicas.master_answers)
            slave.parts.names.changed()
            await until(lambda: slave.parts.replicas.master_address == "")

    asyncio.run(run())


def test_the_status_of_both(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave), Admin("") as admin:
            assert await brokers.ha_status(admin, master.address) == HaRuntimeInfo(True, 0)
            assert await brokers.ha_status(admin, slave.address) == HaRuntimeInfo(
                False, ha_client_runtime_info=HaClientInfo(max_offset=0)
            )
            master.parts.replicas.transfer = Transfer()
            assert await brokers.ha_status(admin, master.address) == Transfer().status()

    asyncio.run(run())


def test_the_list_of_brokers_has_masters_and_slaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            async with Admin(master.parts.settings.namesrv_addr) as admin:
                rows = await brokers.clusters(admin)
            assert [(row.broker_name, row.broker_id, row.address) for row in rows] == [
                ("broker-a", 0, master.address),
                ("broker-a", 1, slave.address),
            ]
            assert all(row.activated for row in rows)

    asyncio.run(run())


def test_the_periods_are_those_that_the_documents_name() -> None:
    text = (Path(__file__).parents[3] / "docs" / "replication.md").read_text()
    assert f"every {following.TICK:g} seconds" in text
    assert f"every {following.FULL:g} seconds" in text
