"""What a slave does while it acts, and who decides that it acts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mqlake.broker.pull.reading import Found
from mqlake.broker.pull.which_broker import WhichBroker
from mqlake.broker.settings import make_broker_settings
from mqlake.broker.slave.following import TableSync
from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.controller import ExchangeHaInfoHeader
from mqlake.replication.comparison import DivergedError
from tests import simulated
from tests.broker.acting.groups import group
from tests.broker.acting.test_acting import acts, committed, often
from tests.broker.pull.pulls import GROUP
from tests.broker.running import Running, running
from tests.until import until

__all__ = ["often"]

pytestmark = pytest.mark.usefixtures("often")


def test_an_acting_slave_copies_nothing_from_its_master(tmp_path: Path) -> None:
    """The address of the master may still be known from a name server that is dead by now."""

    async def run() -> None:
        async with (
            group(tmp_path) as brokers,
            brokers.slave() as slave,
            running(tmp_path / "master") as master,
        ):
            await until(lambda: acts(slave))
            for broker, offset in ((master, 1), (slave, 4)):
                broker.state.store.config.consumer_offsets.commit(GROUP, "Orders", 0, offset)
            sync = TableSync(slave.state, slave.runtime)
            slave.state.replicas.found_master(master.address, "")
            await sync._copy()
            assert committed(slave) == 4

    simulated.run(run())


def test_a_master_that_only_a_dead_name_server_knew_is_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, group(tmp_path) as others:
            names = f"{others.names.address};{brokers.names.address}"
            async with (
                others.master() as master,
                brokers.slave(namesrvAddr=names) as slave,
            ):
                replicas = slave.state.replicas
                await until(lambda: replicas.master_address == master.address)
                await others.names.server.stop()
                await until(lambda: replicas.master_address == "")
                await until(lambda: acts(slave))

    simulated.run(run())


def test_an_acting_slave_notes_where_a_returning_master_is(tmp_path: Path) -> None:
    tells = ExchangeHaInfoHeader(master_ha_address="127.0.0.1:9", master_address="127.0.0.1:8")

    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            await until(lambda: acts(slave))
            log, replicas = slave.state.replication.slave, slave.state.replicas
            assert log is not None
            replicas.found_master("127.0.0.1:18", "127.0.0.1:19")
            await slave.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, tells)
            assert (log.master_ha_address, log.master_address) == ("127.0.0.1:9", "127.0.0.1:8")
            async with brokers.master() as master:
                await until(lambda: log.master_address == master.address)
                await until(lambda: log.master_ha_address == replicas.master_ha_address)

    simulated.run(run())


def test_a_master_that_any_name_server_knows_is_alive(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, group(tmp_path) as others:
            names = f"{brokers.names.address};{others.names.address}"
            async with others.master() as master, brokers.slave(namesrvAddr=names) as slave:
                known = {0: master.address, 1: slave.address}
                assert await slave.state.names.members() == known
                await brokers.names.server.stop()
                assert await slave.state.names.members() == known
                await others.names.server.stop()
                with pytest.raises(MqlakeError):
                    await slave.state.names.members()

    simulated.run(run())


def test_ids_below_zero_are_ignored(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            await brokers.names.register(
                broker_name="broker-a", broker_addr="h:1", cluster_name="DefaultCluster",
                broker_id=-1, enable_acting_master=True,
            )  # fmt: skip
            assert await slave.state.names.members() == {1: slave.address}

    simulated.run(run())


def test_consumers_are_not_redirected_by_a_slave_that_acts(tmp_path: Path) -> None:
    """It would be to itself, again and again: routes name it as the master."""

    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave(slaveReadEnable=True) as slave:
            which, replicas = WhichBroker(slave.state, slave.runtime), slave.state.replicas
            nothing = cast("Found", SimpleNamespace(pieces=()))
            # No await from here on: the slave looks for its master all the time.
            replicas.master_answers = True
            replicas.is_acting, replicas.has_acted = False, False
            assert which.is_redirected(nothing)
            replicas.is_acting = True
            assert not which.is_redirected(nothing)
            replicas.is_acting, replicas.has_acted = False, True
            assert not which.is_redirected(nothing)

    simulated.run(run())


def _members(slave: Running, monkeypatch: pytest.MonkeyPatch, found: dict[int, str]) -> None:
    """Let name servers know these brokers of a slave's name."""

    async def members() -> dict[int, str]:
        return found

    monkeypatch.setattr(slave.state.names, "members", members)


def test_a_slave_that_no_name_server_lists_gives_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            await until(lambda: acts(slave))
            _members(slave, monkeypatch, {0: "h:1"})
            await until(lambda: not acts(slave))

    simulated.run(run())


def test_a_slave_with_another_log_does_not_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise DivergedError("the bytes differ")

    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            await until(lambda: acts(slave))
            log = slave.state.replication.slave
            assert log is not None
            monkeypatch.setattr(log.reception, "follow", fail)
            log.follow(log.master_address, "127.0.0.1:9")
            await until(lambda: not acts(slave))
            log._activated()
            await until(lambda: acts(slave))

    simulated.run(run())


def test_another_host_is_no_returning_master(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            log = slave.state.replication.slave
            assert log is not None
            slave.state.replicas.found_master("127.0.0.1:18", "127.0.0.2:19")
            slave.state.replicas.found_master("", "")
            for address, ha_address in (("h:18", "127.0.0.2:9"), ("127.0.0.1:8", "h:19")):
                tells = ExchangeHaInfoHeader(master_ha_address=ha_address, master_address=address)
                await slave.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, tells)
                assert log.master_ha_address == "127.0.0.2:19"
            tells = ExchangeHaInfoHeader(
                master_ha_address="127.0.0.2:9", master_address="127.0.0.1:8"
            )
            await slave.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, tells)
            assert log.master_ha_address == "127.0.0.2:9"

    simulated.run(run())


def test_a_failure_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            tries: list[None] = []

            def fail() -> None:
                tries.append(None)
                raise MqlakeError("no")

            await until(lambda: acts(slave))
            monkeypatch.setattr(slave.state.names, "send_heartbeat", fail)
            await until(lambda: len(tries) >= 10)

    simulated.run(run())
    assert caplog.text.count("heartbeats are not sent: no") == 1


def test_heartbeats_must_be_more_frequent_than_the_timeout() -> None:
    settings = {"brokerHeartbeatInterval": 1000, "brokerNotActiveTimeoutMillis": 1000}
    make_broker_settings(settings)
    with pytest.raises(StoreError, match="brokerHeartbeatInterval: 1000 is not less than"):
        make_broker_settings(settings | {"enableSlaveActingMaster": True})
