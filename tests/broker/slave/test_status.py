"""How far slaves are, and where they connect, as a broker says."""

from __future__ import annotations

from pathlib import Path

from mqlake.admin import Admin, brokers
from mqlake.broker.slave import following
from mqlake.replication.replicas import Replicas
from tests import simulated
from tests.broker.running import running
from tests.broker.slave.pairs import SLAVE, name_server, pair
from tests.until import until


def test_a_slave_is_told_where_its_master_sends_the_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            address = master.state.replicas.ha_address
            assert address
            assert slave.state.replicas.master_ha_address == address
            assert slave.state.replicas.ha_address == ""

    simulated.run(run())


def test_a_slave_that_starts_first_finds_its_master(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            name_server() as names,
            running(tmp_path / "slave", namesrvAddr=names, **SLAVE) as slave,
        ):
            assert slave.state.replicas.master_address == ""
            async with running(tmp_path / "master", namesrvAddr=names) as master:
                await until(lambda: slave.state.replicas.master_address == master.address)
                await until(lambda: slave.state.replicas.master_answers)
            slave.state.names.changed()
            await until(lambda: slave.state.replicas.master_address == "")

    simulated.run(run())


def test_the_log_of_one_master_is_not_taken_for_that_of_another() -> None:
    found = Replicas()
    found.found_master("one:1", "one:2")
    for address in ("", "one:1"):
        found.found_master(address, "")
        assert found.master_ha_address == "one:2"
    found.found_master("two:1", "")  # where nobody listens for slaves
    assert (found.master_address, found.master_ha_address) == ("two:1", "")


def test_the_status_of_both(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave), Admin("") as admin:
            await until(lambda: master.state.replication.status().in_sync_slave_nums == 1)
            found = await brokers.ha_status(admin, master.address)
            assert (found.master, found.in_sync_slave_nums) == (True, 1)
            found = await brokers.ha_status(admin, slave.address)
            assert not found.master
            address = found.ha_client_runtime_info.master_addr
            assert address == master.state.replicas.ha_address

    simulated.run(run())


def test_the_list_of_brokers_has_masters_and_slaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            async with Admin(master.runtime.settings.namesrv_addr) as admin:
                rows = await brokers.clusters(admin)
            assert [(row.broker_name, row.broker_id, row.address) for row in rows] == [
                ("broker-a", 0, master.address),
                ("broker-a", 1, slave.address),
            ]
            assert all(row.activated for row in rows)

    simulated.run(run())


def test_the_periods_are_those_that_the_documents_name() -> None:
    text = (Path(__file__).parents[3] / "docs" / "replication.md").read_text()
    assert f"every {following.TICK:g} seconds" in text
    assert f"every {following.FULL:g} seconds" in text
