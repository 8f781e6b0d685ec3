"""A slave acts for a master that is gone, and gives everything back."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mqlake.broker.acting import family
from mqlake.broker.slave import following
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.controller import ExchangeHaInfoHeader
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.acting.groups import Group, group
from tests.broker.locks.test_locks import lock
from tests.broker.pull.pulls import GROUP, fill, numbers, pull, start_pull
from tests.broker.running import Running, to
from tests.broker.slave.pairs import switch
from tests.until import until

pytestmark = pytest.mark.usefixtures("often")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slave look at its master again and again."""
    for name in ("TICK", "FULL", "_AGAIN"):
        monkeypatch.setattr(following, name, 0.05)


async def copied(master: Running, slave: Running) -> None:
    """Return once a slave has everything that its master has."""
    end = master.state.store.watermarks.end
    await until(lambda: slave.state.store.watermarks.dispatched == end)
    await until(lambda: slave.state.topics.version == master.state.topics.version)
    await until(lambda: slave.state.groups.version == master.state.groups.version)


def acts(slave: Running) -> bool:
    return slave.state.replicas.is_acting


async def commit(broker: Running, offset: int) -> None:
    header = UpdateConsumerOffsetHeader(
        consumer_group=GROUP, topic="Orders", queue_id=0, commit_offset=offset
    )
    answer = await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert answer.code == ResponseCode.SUCCESS


def committed(broker: Running) -> int | None:
    return broker.state.store.config.consumer_offsets.query(GROUP, "Orders", 0)


def test_a_slave_serves_while_its_master_is_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, AsyncExitStack() as first:
            master = await first.enter_async_context(brokers.master())
            async with brokers.slave() as slave:
                await fill(master, 5)
                master.state.groups.put(SubscriptionGroup(GROUP))
                await commit(master, 1)
                await copied(master, slave)
                await until(lambda: committed(slave) == 1)
                assert (await pull(slave)).code == ResponseCode.SYSTEM_BUSY
                assert await brokers.route("Orders") == ({0: master.address, 1: slave.address}, 6)

                await first.aclose()
                await until(lambda: acts(slave))
                assert await brokers.route("Orders") == ({0: slave.address}, PERM_READ)
                await serves(slave)
                await refuses_writes(slave)

                async with brokers.master() as again:
                    assert committed(again) == 4
                    await gives_back(slave, again)
                    assert await brokers.route("Orders") == (
                        {0: again.address, 1: slave.address},
                        6,
                    )

    simulated.run(run())


async def serves(slave: Running) -> None:
    found = await pull(slave)
    assert found.bodies == numbers(0, 5)
    assert found.offsets.suggest_which_broker_id == 0
    assert (await start_pull(slave, 5, 50)).code == ResponseCode.PULL_NOT_FOUND
    assert await lock(slave, "one", 0) == [0]
    assert await lock(slave, "two", 0) == []
    await commit(slave, 4)


async def gives_back(slave: Running, master: Running) -> None:
    await until(lambda: not acts(slave))
    await until(lambda: slave.state.replicas.master_address == master.address)
    await copied(master, slave)
    await until(lambda: slave.state.replicas.master_answers)
    assert committed(slave) == 4
    # Clients that still take the slave for the master get what is new there, too.
    waiting = start_pull(slave, 5, 3_600_000)
    await fill(master, 1, start=5)
    assert (await waiting).bodies == numbers(5, 6)


async def refuses_writes(slave: Running) -> None:
    """What an acting slave put would be in no other log."""
    end = slave.state.store.watermarks.end
    assert (await slave.send(to("Orders"))).code == ResponseCode.SERVICE_NOT_AVAILABLE
    for code in (RequestCode.POP_MESSAGE, RequestCode.END_TRANSACTION):
        assert (await slave.ask(code, None, b"{}")).code in (
            ResponseCode.SERVICE_NOT_AVAILABLE,
            ResponseCode.SLAVE_NOT_AVAILABLE,
        )
    assert slave.state.store.watermarks.end == end


def test_reads_are_given_back_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "GIVES_BACK", 0.0)

    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            await until(lambda: acts(slave))
            async with brokers.master() as master:
                await fill(master, 1)
                await copied(master, slave)
                await until(lambda: not acts(slave))
                await until(lambda: not slave.state.replicas.has_acted)
                assert (await pull(slave)).code == ResponseCode.SYSTEM_BUSY

    simulated.run(run())


def test_only_the_slave_with_the_smallest_id_acts(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave(3) as last:
            await until(lambda: acts(last))
            async with brokers.slave(2) as first:
                await until(lambda: acts(first))
                await until(lambda: not acts(last))
                async with brokers.master() as master:
                    await fill(master, 1)
                    await copied(master, last)
                    await copied(master, first)
                    await until(lambda: not acts(first))
                await until(lambda: acts(first))
                assert not acts(last)
                addresses, _ = await brokers.route("Orders")
                assert addresses == {0: first.address, 3: last.address}
            await until(lambda: acts(last))
            assert await brokers.route("Orders") == ({0: last.address}, PERM_READ)

    simulated.run(run())


@pytest.mark.parametrize("notifies", [True, False])
def test_a_notice_makes_a_slave_ask(tmp_path: Path, *, notifies: bool) -> None:
    """What a notice says does not count: anyone could send it."""
    seldom: dict[str, object] = {"syncBrokerMemberGroupPeriod": 3_600_000}

    async def run() -> None:
        async with (
            group(tmp_path, notifyMinBrokerIdChanged=notifies) as brokers,
            brokers.master() as master,
            brokers.slave(**seldom) as slave,
        ):
            await until(lambda: bool(slave.state.replicas.master_address))
            await slave.ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE)
            await lock(slave, "one", 0)
            assert not acts(slave)
            await master.broker.state.names.stop()
            if not notifies:
                assert not acts(slave)
                await slave.ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE)
            await until(lambda: acts(slave))

    simulated.run(run())


def test_heartbeats_keep_brokers_registered(tmp_path: Path) -> None:
    """The name server's clock goes on by itself only in this test."""

    async def run() -> None:
        async with group(tmp_path, scanNotActiveBrokerInterval=10) as brokers:
            clock = brokers.names.clock
            live = brokers.names.server._state.routes.brokers.live
            async with brokers.master(brokerNotActiveTimeoutMillis=1000), brokers.slave() as slave:
                await until(lambda: len(live) == 2)
                assert sorted(each.timeout for each in live.values()) == [1000, 10_000]
                for _ in range(5):
                    clock.now += 900
                    await until(lambda: all(each.last_heard == clock.now for each in live.values()))
                assert len(live) == 2
                assert not acts(slave)

    simulated.run(run())


async def _lonely(brokers: Group, **settings: object) -> bool:
    """Return whether a slave without a master acts, once it has registered."""
    async with brokers.slave(**settings) as slave:
        await slave.state.names.told()
        await slave.ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE)
        if settings.get("enableSlaveActingMaster", True):
            await until(lambda: acts(slave))
        return acts(slave)


def test_slaves_act_only_if_they_are_told_to(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers:
            assert await _lonely(brokers)
            assert not await _lonely(brokers, enableSlaveActingMaster=False)

    simulated.run(run())


def test_a_slave_that_is_promoted_acts_no_more(tmp_path: Path) -> None:
    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            await until(lambda: acts(slave))
            switch(slave, BrokerRole.ASYNC_MASTER, 0)
            await until(lambda: not acts(slave))
            assert (await slave.send(to("Orders"))).code == ResponseCode.SUCCESS

    simulated.run(run())


def test_a_returning_master_says_where_it_sends_its_log(tmp_path: Path) -> None:
    """RocketMQ's waits for its slaves before it registers; only slaves without a master listen."""
    tells = ExchangeHaInfoHeader(master_ha_address="127.0.0.1:9", master_address="127.0.0.1:8")

    async def run() -> None:
        async with group(tmp_path) as brokers:
            async with brokers.slave() as slave:
                log = slave.state.replication.slave
                assert log is not None
                answer = await slave.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, tells)
                assert (answer.code, answer.fields) == (ResponseCode.SUCCESS, {})
                assert (log.master_ha_address, log.master_address) == ("127.0.0.1:9", "127.0.0.1:8")
                # Its tables are not copied before it has adopted the offsets of this slave.
                assert slave.state.replicas.master_address == ""
                async with brokers.master() as master:
                    await until(lambda: log.master_address == master.address)
                    known = log.master_ha_address
                    await slave.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, tells)
                    assert log.master_ha_address == known
            async with brokers.slave(enableSlaveActingMaster=False) as slave:
                await slave.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, tells)
                log = slave.state.replication.slave
                assert log is not None
                assert log.master_ha_address is None

    simulated.run(run())
