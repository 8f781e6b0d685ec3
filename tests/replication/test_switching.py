"""A broker is promoted or demoted while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.replication.ha_server import HaServer
from mqlake.replication.slave_log import SlaveLog
from mqlake.store.live_settings import LiveSettings
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.live.observing import change
from tests.broker.running import Running, running, to
from tests.broker.slave.pairs import name_server
from tests.replication.slaves import FILES, SLAVE, Slave, close_all, end, follower, log_of, server
from tests.until import until

BODY = b"x" * 500


async def send(broker: Running, count: int = 1) -> int:
    """Send messages; return the queue offset of the last."""
    for _ in range(count):
        answer = await broker.send(to("Orders"), BODY)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    return int(answer.fields["queueOffset"])


def test_a_master_and_its_slave_change_places(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            name_server() as names,
            running(tmp_path / "one", **FILES, namesrvAddr=names) as one,
            running(tmp_path / "two", **SLAVE, namesrvAddr=names) as two,
        ):
            for count, (master, slave) in enumerate([(one, two), (two, one), (one, two)], 1):
                assert await send(master, 50) == count * 100 - 51
                refused_send = await slave.send(to("Orders"), BODY)
                assert refused_send.code == ResponseCode.SERVICE_NOT_AVAILABLE
                await until(lambda: server(master).connections)  # noqa: B023
                await send(master, 50)
                await change(master, brokerRole="SLAVE")
                assert end(slave) == end(master)  # a demotion waits for that
                await change(slave, brokerRole="ASYNC_MASTER")
                assert slave.runtime.settings.broker_id == 0
                assert master.runtime.settings.broker_id == 1
                assert slave.state.replicas.ha_address
                assert not master.state.replicas.ha_address
            assert await send(two, 10) == 309
            await until(lambda: end(one) == end(two))

    simulated.run(run())
    assert log_of(tmp_path / "one") == log_of(tmp_path / "two")


def test_the_role_holds_after_a_restart(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("# ours\nbrokerRole=SLAVE\nbrokerId=1\n")

    async def run() -> None:
        async with running(tmp_path / "store", conf, **SLAVE) as broker:
            await change(broker, brokerRole="SYNC_MASTER")

    simulated.run(run())
    assert conf.read_text() == "# ours\nbrokerRole=SYNC_MASTER\nbrokerId=0\n"


def test_a_promoted_sync_master_waits_for_slaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, **SLAVE) as broker:
            await change(broker, brokerRole="SYNC_MASTER")
            for _ in range(3):
                answer = await broker.send(to("Orders"), BODY)
                assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE
            await change(broker, brokerRole="ASYNC_MASTER")
            assert await send(broker) == 3

    simulated.run(run())


def test_a_send_that_waits_for_slaves_is_not_acknowledged_by_a_demotion(tmp_path: Path) -> None:
    settings = FILES | {"brokerRole": "SYNC_MASTER", "slaveTimeout": 2000}

    async def run() -> None:
        async with running(tmp_path, **settings) as broker:
            try:
                slave = await Slave.connect(server(broker).address)
                slave.report(0)
                await until(lambda: server(broker).in_sync)
                sent = asyncio.ensure_future(broker.send(to("Orders"), BODY))
                await slave.data()
                await change(broker, brokerRole="SLAVE")
                assert (await sent).code == ResponseCode.FLUSH_SLAVE_TIMEOUT
            finally:
                await close_all()

    asyncio.run(run())


@pytest.mark.parametrize("values", [{"brokerRole": "KING"}, {"brokerId": 3}])
def test_an_invalid_role_changes_nothing(tmp_path: Path, values: dict[str, object]) -> None:
    async def run() -> None:
        async with running(tmp_path, **FILES) as broker:
            body = "".join(f"{name}={value}\n" for name, value in values.items()).encode()
            answer = await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert broker.runtime.settings.broker_role is BrokerRole.ASYNC_MASTER
            assert await send(broker) == 0

    simulated.run(run())


def test_a_broker_that_cannot_listen_for_slaves_stays_a_slave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees it as a master: the port is bound before the role changes."""
    roles: list[BrokerRole] = []
    switch = LiveSettings.switch

    def note(one: LiveSettings[BrokerSettings], settings: BrokerSettings) -> None:
        roles.append(settings.broker_role)
        switch(one, settings)

    monkeypatch.setattr(LiveSettings, "switch", note)

    async def run() -> None:
        async with running(tmp_path / "one", **FILES) as one:
            taken = int(server(one).address.rpartition(":")[2])
            given = SLAVE | {"haListenPort": taken, "haMasterAddress": server(one).address}
            async with running(tmp_path / "two", **given) as two:
                body = b"brokerRole=ASYNC_MASTER\n"
                answer = await two.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body)
                assert answer.code == ResponseCode.SYSTEM_ERROR
                assert "stays SLAVE" in (answer.remark or "")
                await send(one, 3)
                await until(lambda: end(two) == end(one))
                assert follower(two).problem is None

    simulated.run(run())
    assert {*roles} == {BrokerRole.SLAVE}


def test_the_settings_file_keeps_the_old_role_if_nothing_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerRole=SLAVE\nbrokerId=1\n")

    async def refuse(*_: object) -> None:
        raise MqlakeError("nothing listens")

    async def run() -> None:
        async with running(tmp_path / "store", conf, **SLAVE) as broker:
            monkeypatch.setattr(HaServer, "start", refuse)
            monkeypatch.setattr(SlaveLog, "start", refuse)
            answer = await broker.ask(
                RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerRole=ASYNC_MASTER\n"
            )
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "not copied until a restart" in (answer.remark or "")
            assert broker.runtime.settings.is_slave

    simulated.run(run())
    assert conf.read_text() == "brokerRole=SLAVE\nbrokerId=1\n"


def test_a_promotion_dispatches_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are served while a slave that has received much becomes the master."""

    async def run() -> None:
        async with running(tmp_path / "one", **FILES) as one:
            given = SLAVE | {"haMasterAddress": server(one).address}
            async with running(tmp_path / "two", **given) as two:
                store = two.state.store
                monkeypatch.setattr(Dispatching, "soon", lambda _: None)
                monkeypatch.setattr(Dispatching, "now", lambda _: None)
                await send(one, 200)
                await until(lambda: end(two) == end(one))
                monkeypatch.setattr("mqlake.store.core.role.LONGEST_TURN", 0)
                turns = 0

                async def count() -> None:
                    nonlocal turns
                    while store.watermarks.dispatched < end(two):
                        await asyncio.sleep(0)
                        turns += 1

                begin = store.watermarks.dispatched
                counting = asyncio.create_task(count())
                await store.copying.lead()
                await counting
                assert store.watermarks.dispatched == end(two) > begin
                assert turns > 1

    asyncio.run(run())
