"""A master that returns adopts what its slaves know better."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.acting import returning
from mqlake.broker.acting.returning import (
    OwnLog,
    SlaveDelays,
    SlaveOffsets,
    adopt_consumer_offsets,
    adopt_delay_offsets,
)
from mqlake.broker.settings import BrokerSettings
from mqlake.formats.config import DataVersion
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.programs.ports import free_port
from mqlake.remoting.slices import Slices, run_at_once
from mqlake.replication.master_tables import MasterClient
from mqlake.store import MessageStore
from tests import simulated
from tests.broker.acting.groups import group
from tests.broker.running import Running, running, to
from tests.until import until

GROUP_KEY = ("g", "Orders", 0)
DELAYED = "DELAY\x011\x02UNIQ_KEY\x01A\x02"
LATER = DataVersion(9, 0, 5)


async def adopted(broker: Running, *found: SlaveOffsets) -> dict[str, object]:
    """Return a master's offsets after those of slaves were adopted."""
    known = broker.state.store.config.consumer_offsets
    known.commit("g", "T", 0, 10)
    known.commit("g", "T", 1, 10)
    own = OwnLog(10, {("T", 0): 20, ("T", 1): 20, ("U", 0): 2, ("U", 1): 2}, {"static"})
    run_at_once(adopt_consumer_offsets(list(found), known, own))
    return {key: dict(queues) for key, queues in known.committed()}


def test_larger_consumer_offsets_are_adopted(tmp_path: Path) -> None:
    """None is after the end of its queue: messages that come there would be skipped.

    No offset is created for a queue that does not exist.
    """
    table = {
        "T@g": {0: 7, 1: 15, 2: 1},
        "U@h": {0: 1 << 62, 1: 2},
        "static@h": {0: 1 << 40},
        "T@CID_RMQ_SYS_TRANS": {0: 3},
        "no": {0: 1},
    }

    async def run() -> None:
        async with running(tmp_path) as broker:
            version = broker.state.store.config.consumer_offsets.version
            one = SlaveOffsets("one", 10, table, LATER)
            other = SlaveOffsets("other", 9, {"T@g": {0: 12, 1: 14}}, version)
            assert await adopted(broker, one, other) == {
                "T@g": {0: 12, 1: 15},
                "U@h": {1: 2},
                "static@h": {0: 1 << 40},
            }
            assert broker.state.store.config.consumer_offsets.version == LATER

    simulated.run(run())


def test_nothing_is_adopted_from_a_slave_that_has_more_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After a power loss, new messages would get the offsets of those that are lost."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            ahead = SlaveOffsets("one", 11, {"T@g": {0: 15}}, LATER)
            assert await adopted(broker, ahead) == {"T@g": {0: 10, 1: 10}}
            delays = broker.state.store.config.delay_offsets
            own = OwnLog(10, {(SCHEDULE_TOPIC, each): 6 for each in range(3)}, ())
            adopt_delay_offsets([SlaveDelays("one", 11, {1: 5})], delays, own)
            assert delays.items() == []
            adopt_delay_offsets([SlaveDelays("one", 10, {1: 5, 2: 0})], delays, own)
            adopt_delay_offsets([SlaveDelays("two", 10, {1: 4, 3: 7, 4: 1})], delays, own)
            assert delays.items() == [(1, 5)]

    simulated.run(run())
    assert "the log of slave one ends at 11, and this one at 10" in caplog.text


@pytest.mark.parametrize("is_skipped", [False, True])
def test_what_was_delivered_elsewhere_is_not_delivered_again(
    tmp_path: Path, *, is_skipped: bool
) -> None:
    """RocketMQ's slaves may deliver to another master meanwhile, with `enableRemoteEscape`."""

    async def run() -> None:
        async with running(tmp_path / "master", messageDelayLevel="1h") as broker:
            await broker.send(to("Orders", properties=DELAYED), b"before")
        for name in ("commitlog", "config"):
            shutil.copytree(tmp_path / "master" / name, tmp_path / "slave1" / name)
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            slave.state.store.config.delay_offsets.set(1, 1)
            async with brokers.master(messageDelayLevel="1s", skipPreOnline=is_skipped) as master:
                await master.send(to("Orders", properties=DELAYED), b"after")
                wanted = [b"before", b"after"] if is_skipped else [b"after"]
                await until(lambda: bool(master.records("Orders")[len(wanted) - 1 :]))
                assert [each.body for each in master.records("Orders")] == wanted

    simulated.run(run())


def test_a_slave_that_does_not_answer_keeps_no_master_from_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(returning, "PATIENCE", 0.0)

    async def run() -> None:
        async with group(tmp_path) as brokers:
            dead = f"127.0.0.1:{free_port()}"
            await brokers.names.register(
                broker_name="broker-a", broker_addr=dead, cluster_name="DefaultCluster",
                broker_id=1, enable_acting_master=True,
            )  # fmt: skip
            async with brokers.master() as master:
                assert (await master.send(to("Orders"))).code == 0
                addresses, _ = await brokers.route("Orders")
                assert addresses == {0: master.address, 1: dead}

    simulated.run(run())
    assert "this master serves without all slaves' positions" in caplog.text


def test_a_master_without_name_servers_starts(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, enableSlaveActingMaster=True) as master:
            assert (await master.send(to("Orders"))).code == 0

    simulated.run(run())


def _copy_store(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for name in ("commitlog", "config"):
        shutil.copytree(source / name, target / name)


def test_messages_that_become_due_do_not_hide_that_a_slave_has_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master has lost its last message, and delivers a larger one before it asks its slave.

    It asks before it serves anybody.
    """
    opened: list[MessageStore] = []
    open_store, ask_slaves = MessageStore.open, returning.consumer_offsets_of_slaves

    def noted(*args: Any, **options: Any) -> MessageStore:
        opened.append(open_store(*args, **options))
        return opened[-1]

    async def late(settings: BrokerSettings, slices: Slices) -> list[SlaveOffsets]:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", settings.listen_port)
        await until(lambda: bool(opened[-1].offsets.get(("Later", 0))))
        return await ask_slaves(settings, slices)

    async def run() -> None:
        master, lost = tmp_path / "master", tmp_path / "lost"
        async with running(master, messageDelayLevel="1h") as broker:
            await broker.send(to("Later", properties=DELAYED), b"." * 1000)
            await broker.send(to("Orders"), b"kept")
        _copy_store(master, lost)
        async with running(master, messageDelayLevel="1h") as broker:
            await broker.send(to("Orders"), b"lost")
        _copy_store(master, tmp_path / "slave1")
        _copy_store(lost, master)
        for name in ("consumequeue", "index", "checkpoint"):
            shutil.rmtree(master / name, ignore_errors=True)
        monkeypatch.setattr(MessageStore, "open", noted)
        monkeypatch.setattr(returning, "consumer_offsets_of_slaves", late)
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            slave.state.store.config.consumer_offsets.commit(*GROUP_KEY, 2)
            async with brokers.master(messageDelayLevel="1s") as again:
                assert again.state.store.config.consumer_offsets.query(*GROUP_KEY) is None

    simulated.run(run())


@pytest.mark.parametrize("error", [UnicodeError("label too long"), AssertionError("?")])
def test_no_error_of_a_slave_keeps_the_master_from_starting(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    async def fail(_client: MasterClient, _address: str) -> object:
        raise error

    monkeypatch.setattr(returning, "PATIENCE", 0.0)

    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave():
            monkeypatch.setattr(MasterClient, "delay_offsets", fail)
            async with brokers.master() as master:
                assert (await master.send(to("Orders"))).code == 0

    simulated.run(run())
    assert f"this master serves without all slaves' positions: {error!r}" in caplog.text


def test_an_invalid_registration_keeps_no_master_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returning, "PATIENCE", 0.0)

    async def run() -> None:
        async with group(tmp_path) as brokers:
            for broker_id, address in ((1, "a..b:10911"), (2, "h:" + "9" * 5000)):
                await brokers.names.register(
                    broker_name="broker-a", broker_addr=address, cluster_name="DefaultCluster",
                    broker_id=broker_id, enable_acting_master=True,
                )  # fmt: skip
            async with brokers.master() as master:
                assert (await master.send(to("Orders"))).code == 0

    simulated.run(run())


@pytest.mark.parametrize("is_removed", [False, True])
def test_an_old_table_undoes_no_reset_and_no_deletion(tmp_path: Path, *, is_removed: bool) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            known = broker.state.store.config.consumer_offsets
            known.commit("g", "T", 0, 10)
            old = SlaveOffsets("one", 10, {"T@g": {0: 10}}, known.version)
            if is_removed:
                known.remove("g", "T")
            else:
                known.reset("g", "T", 0, 3)
            own = OwnLog(10, {("T", 0): 20}, ())
            run_at_once(adopt_consumer_offsets([old], known, own))
            assert known.query_topic("g", "T") == ({} if is_removed else {0: 3})

    simulated.run(run())


def test_the_table_of_an_acting_slave_is_later_than_its_masters(tmp_path: Path) -> None:
    """A master counts only every 500th commit, and may have counted one that was not copied."""

    async def run() -> None:
        async with group(tmp_path) as brokers, brokers.slave() as slave:
            offsets = slave.state.store.config.consumer_offsets
            await until(lambda: slave.state.replicas.is_acting)
            assert offsets.version.counter == 1

    simulated.run(run())
