"""Brokers whose roles a controller decides."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import MqlakeError, StoreError
from mqlake.programs.ports import free_port
from mqlake.protocol.bodies.controller import EpochEntryCache
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.controller import ExchangeHaInfoHeader
from mqlake.replication.auto_switch.server import AutoSwitchServer
from mqlake.replication.ha_server import HaServer
from mqlake.replication.replication import Replication
from mqlake.replication.slave_log import SlaveLog
from tests import simulated
from tests.broker.controller.fake import FakeController, controller
from tests.broker.live.observing import change
from tests.broker.running import Running, running, to
from tests.broker.slave.pairs import name_server
from tests.replication.slaves import FILES, end, log_of, server
from tests.until import until

BODY = b"x" * 500


def member(
    path: Path, fake: FakeController, names: str = "", **settings: object
) -> AbstractAsyncContextManager[Running]:
    return running(
        path,
        **FILES,
        enableControllerMode=True,
        controllerAddr=fake.address,
        namesrvAddr=names,
        syncBrokerMetadataPeriod=100,
        checkSyncStateSetPeriod=100,
        brokerHeartbeatInterval=100,
        **settings,
    )


def is_master(broker: Running) -> bool:
    return not broker.runtime.settings.is_slave


async def send(broker: Running, count: int = 20) -> None:
    for _ in range(count):
        answer = await broker.send(to("Orders"), BODY)
        assert answer.code == ResponseCode.SUCCESS, answer.remark


async def same(one: Running, other: Running) -> None:
    await until(lambda: end(one) == end(other))
    for each in (one, other):
        await until(lambda store=each.state.store: store.watermarks.dispatched == end(one))


async def epochs(broker: Running) -> list[tuple[int, int]]:
    answer = await broker.ask(RequestCode.GET_BROKER_EPOCH_CACHE)
    found = decode_body(EpochEntryCache, answer.body).epoch_list
    return [(each.epoch, each.start_offset) for each in found]


def test_a_group_forms_and_its_brokers_change_places(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            controller() as fake,
            name_server() as names,
            member(tmp_path / "one", fake, names) as one,
        ):
            await until(lambda: is_master(one))
            await send(one)  # nobody else may be elected
            async with member(tmp_path / "two", fake, names) as two:
                await until(lambda: fake.members == {1, 2})
                await send(one)
                assert end(two) == end(one)  # it was acknowledged
                await same(one, two)
                known = two.state.replicas
                assert known.master_address == one.address
                await until(lambda: 2 in fake.heartbeats and fake.heartbeats[2].max_offset > 0)
                begin = end(one)
                fake.elect(2)
                await two.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED)
                await until(lambda: is_master(two) and not is_master(one))
                assert (await one.send(to("Orders"), BODY)).code != ResponseCode.SUCCESS
                await until(lambda: fake.members == {1, 2})
                await send(two)
                await same(two, one)
                assert await epochs(one) == await epochs(two) == [(1, 0), (2, begin)]
                assert two.state.topics.version.state_version == 2
                assert two.runtime.settings.broker_id == 0
                assert one.runtime.settings.broker_id == 1

    simulated.run(run())
    assert log_of(tmp_path / "one") == log_of(tmp_path / "two")
    assert (tmp_path / "two" / "brokerIdentity").read_text() == "DefaultCluster#broker-a#2"


def test_what_was_never_confirmed_is_not_shown_and_is_cut_off(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake, member(tmp_path / "one", fake) as one:
            await until(lambda: is_master(one))
            async with member(tmp_path / "two", fake):
                await until(lambda: fake.members == {1, 2})
                await send(one)
                fake.refuses = True  # two stays one that may be elected
            confirmed = end(one)
            await change(one, slaveTimeout=100)
            answer = await one.send(to("Orders"), BODY)
            assert answer.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
            assert one.state.store.reads.queue("Orders", 0) == (0, 20)
            assert end(one) > confirmed
            fake.elect(2)
            fake.refuses = False
            async with member(tmp_path / "two", fake) as two:
                await until(lambda: is_master(two))
                await send(two)
                await until(lambda: fake.members == {1, 2})
                await same(two, one)
                assert one.state.store.reads.queue("Orders", 0) == (0, 40)

    simulated.run(run())
    assert log_of(tmp_path / "one") == log_of(tmp_path / "two")
    assert list((tmp_path / "one" / "commitlog-cut").iterdir())


def test_a_demotion_that_fails_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the broker is the master of the old term, which acknowledges nothing."""
    servers: list[HaServer | None] = []
    keep = Replication._keep

    async def fail(_: SlaveLog) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(Replication, "_keep", note)
        raise StoreError("no")

    async def note(one: Replication, old: BrokerSettings, reason: MqlakeError) -> None:
        try:
            await keep(one, old, reason)
        finally:
            servers.append(one.server)

    async def run() -> None:
        async with (
            controller() as fake,
            member(tmp_path / "one", fake) as one,
            member(tmp_path / "two", fake) as two,
        ):
            await until(lambda: fake.master and fake.members == {1, 2})
            old, new = (one, two) if is_master(one) else (two, one)
            monkeypatch.setattr(SlaveLog, "start", fail)
            monkeypatch.setattr(Replication, "_keep", note)
            fake.elect(new.state.replication.group.broker_id)  # type: ignore[union-attr]
            await until(lambda: is_master(new) and not is_master(old))
            await until(lambda: fake.members == {1, 2})
            assert [type(each) for each in servers] == [AutoSwitchServer]
            await send(new, 1)

    simulated.run(run())


def test_too_few_in_sync(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake, member(tmp_path, fake, minInSyncReplicas=2) as one:
            await until(lambda: is_master(one))
            answer = await one.send(to("Orders"), BODY)
            assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE

    simulated.run(run())


def test_only_the_controller_decides(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake, member(tmp_path, fake) as one:
            await until(lambda: is_master(one))
            answer = await one.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerRole=SLAVE\n")
            assert answer.code == ResponseCode.NO_PERMISSION
            assert is_master(one)
            await one.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED)  # by whoever it is
            await send(one, 1)
            answer = await one.ask(RequestCode.EXCHANGE_BROKER_HA_INFO)
            found = answer.header(ExchangeHaInfoHeader)
            assert found.master_ha_address == server(one).address
            assert is_master(one)

    simulated.run(run())


def test_a_broker_without_a_controller_has_no_epochs(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as one:
            answer = await one.ask(RequestCode.GET_BROKER_EPOCH_CACHE)
            assert answer.code == ResponseCode.SYSTEM_ERROR

    simulated.run(run())


def test_a_master_asks_for_no_set_in_the_name_of_another_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake, member(tmp_path, fake) as one:
            await until(lambda: is_master(one))
            group = one.state.replication.group
            assert group is not None
            assert group.term is not None
            # As between the answer that another broker is the master and the demotion.
            group.term = group.term._replace(master_id=2)
            with pytest.raises(MqlakeError, match="another broker is the master"):
                await group.alter({1, 2}, fake.version)
            assert fake.members == {1}

    simulated.run(run())


def test_a_master_without_an_in_sync_set_is_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with controller() as fake:
            fake.master, fake.number, fake.version = 1, 1, 1
            async with member(tmp_path, fake) as one:
                await until(lambda: is_master(one) or "not in the in-sync set" in caplog.text)
                assert not is_master(one)
                fake.members = {1, 2}
                await until(lambda: is_master(one))

    simulated.run(run())


def test_a_master_may_send_its_log_elsewhere_than_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake, member(tmp_path / "one", fake) as one:
            await until(lambda: is_master(one) and server(one).address)
            address, server(one).address = server(one).address, f"127.0.0.1:{free_port()}"
            async with member(tmp_path / "two", fake) as two:
                await until(lambda: two.state.replicas.master_ha_address)
                server(one).address = address
                await until(lambda: fake.members == {1, 2})
                assert two.state.replicas.master_ha_address == address

    simulated.run(run())


def test_what_was_never_confirmed_may_be_all_of_a_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake, member(tmp_path / "one", fake) as one:
            await until(lambda: is_master(one))
            async with member(tmp_path / "two", fake) as two:
                await until(lambda: fake.members == {1, 2})
                group = two.state.replication.group
                assert group is not None
                await until(lambda: group.epochs.all)
                fake.refuses = True  # two stays one that may be elected
            assert end(one) == 0
            await change(one, slaveTimeout=100)
            answer = await one.send(to("Orders"), BODY)
            assert answer.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
            fake.elect(2)
            fake.refuses = False
            async with member(tmp_path / "two", fake) as two:
                await until(lambda: is_master(two))
                await send(two)
                await until(lambda: fake.members == {1, 2})
                await same(two, one)

    simulated.run(run())
    assert log_of(tmp_path / "one") == log_of(tmp_path / "two")


def test_an_election_may_be_answered_without_the_in_sync_set(tmp_path: Path) -> None:
    async def run() -> None:
        async with controller() as fake:
            fake.is_terse = True
            async with member(tmp_path, fake) as one:
                await until(lambda: is_master(one))
                in_sync_set = one.state.store.copies.in_sync_set
                assert in_sync_set is not None
                assert (in_sync_set.members, in_sync_set.version) == ({1}, 1)

    simulated.run(run())
