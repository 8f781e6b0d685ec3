"""What a slave refuses, passes on, and serves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlake.broker.slave import following
from mqlake.broker.state.slave_refusals import REFUSED
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.send import SendBackHeader
from tests import simulated
from tests.broker.pull.pulls import fill, numbers, pull, start_pull
from tests.broker.running import running, to
from tests.broker.slave.pairs import SLAVE, name_server, pair
from tests.until import until


def copied(tmp_path: Path) -> None:
    """Give the slave the master's log."""
    for name in ("commitlog", "config"):
        shutil.copytree(tmp_path / "master" / name, tmp_path / "slave" / name)


async def prepare(path: Path, count: int = 5) -> None:
    """Make a master's store with messages, and the same one for its slave."""
    async with running(path / "master") as broker:
        await fill(broker, count)
    copied(path)


def test_a_slave_refuses_what_is_its_masters(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, slaveReadEnable=True, **SLAVE) as slave:
            end = slave.state.store.watermarks.end
            for code, refusal in REFUSED.items():
                answer = await slave.ask(code, None, b"{}")
                assert (answer.code, answer.remark) == refusal, code.name
            assert (await slave.send(to("Orders"))).code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert slave.state.store.watermarks.end == end
            codes = {route.code for route in slave.broker.routes}
            assert REFUSED.keys() <= codes

    simulated.run(run())


def test_a_slave_serves_pulls_only_if_it_is_told_to(tmp_path: Path) -> None:
    async def run() -> None:
        await prepare(tmp_path)
        async with running(tmp_path / "slave", **SLAVE) as slave:
            refused = await pull(slave)
            assert refused.code == ResponseCode.SYSTEM_BUSY
            assert "slaveReadEnable" in refused.remark
        async with running(tmp_path / "slave", slaveReadEnable=True, **SLAVE) as slave:
            assert (await pull(slave)).bodies == numbers(0, 5)

    simulated.run(run())


def test_a_consumer_that_lags_is_sent_to_the_slave_and_back(tmp_path: Path) -> None:
    async def run() -> None:
        await prepare(tmp_path)
        old: dict[str, object] = {"slaveReadEnable": True, "accessMessageInMemoryMaxRatio": 0}
        async with (
            name_server() as names,
            running(tmp_path / "master", namesrvAddr=names, **old) as master,
            running(tmp_path / "slave", namesrvAddr=names, **(SLAVE | old)) as slave,
        ):
            await until(lambda: slave.state.replicas.master_answers)
            assert (await pull(master, 0)).offsets.suggest_which_broker_id == 1
            assert (await pull(slave, 0)).offsets.suggest_which_broker_id == 1
            assert (await pull(master, 5)).offsets.suggest_which_broker_id == 0
            # At the end of the queue it waits at the master, where messages are first.
            at_end = await start_pull(slave, 5, 3_600_000)
            assert at_end.code == ResponseCode.PULL_RETRY_IMMEDIATELY
            assert at_end.offsets.suggest_which_broker_id == 0

    simulated.run(run())


def test_without_a_master_a_consumer_waits_at_the_slave(tmp_path: Path) -> None:
    async def run() -> None:
        await prepare(tmp_path)
        async with running(tmp_path / "slave", slaveReadEnable=True, **SLAVE) as slave:
            waiting = await start_pull(slave, 5, 50)
            assert waiting.code == ResponseCode.PULL_NOT_FOUND

    simulated.run(run())


@pytest.mark.parametrize(("reads", "suggested"), [(False, 0), (True, 1)])
def test_only_a_master_with_slaves_that_serve_reads_sends_consumers_there(
    reads: bool, suggested: int, tmp_path: Path
) -> None:
    async def run() -> None:
        settings: dict[str, object] = {"accessMessageInMemoryMaxRatio": 0}
        async with running(tmp_path, slaveReadEnable=reads, **settings) as broker:
            await fill(broker, 3)
            assert (await pull(broker)).offsets.suggest_which_broker_id == suggested

    simulated.run(run())


def test_what_is_given_back_to_a_slave_goes_on_to_its_master(tmp_path: Path) -> None:
    async def run() -> None:
        await prepare(tmp_path)
        async with pair(tmp_path, forwardTimeout=60_000) as (master, slave):
            record = master.records("Orders")[2]
            header = SendBackHeader(offset=record.physical_offset, group="readers", delay_level=3)
            answer = await slave.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            (again,) = master.records(SCHEDULE_TOPIC, 2)
            assert again.body == b"2"
            missing = SendBackHeader(offset=1 << 40, group="readers", delay_level=3)
            answer = await slave.ask(RequestCode.CONSUMER_SEND_MSG_BACK, missing)
            assert (answer.code, answer.remark) == (
                ResponseCode.SYSTEM_ERROR,
                f"look message by offset failed, {1 << 40}",
            )

    simulated.run(run())


def test_nothing_is_given_back_without_a_master(tmp_path: Path) -> None:
    async def run() -> None:
        async with name_server() as names, running(tmp_path, namesrvAddr=names, **SLAVE) as slave:
            header = SendBackHeader(offset=0, group="readers", delay_level=3)
            answer = await slave.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "cannot find addr for broker broker-a" in (answer.remark or "")

    simulated.run(run())


def test_a_slave_delivers_no_delayed_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its master delivers comes with the log."""
    monkeypatch.setattr(following, "TICK", 3600.0)

    async def run() -> None:
        async with running(tmp_path / "master", messageDelayLevel="1h") as broker:
            properties = "DELAY\x011\x02UNIQ_KEY\x01A\x02"
            await broker.send(to("Orders", properties=properties))
        copied(tmp_path)
        # Due at once: a level of other length is later than any message of it can be.
        async with running(tmp_path / "slave", messageDelayLevel="1s", **SLAVE) as slave:
            end = slave.state.store.watermarks.end
            services = {each.name: each for each in slave.state.store.health.services}
            service = services["delayedMessages"]
            before = service.last
            await until(lambda: service.last > before + 0.3)
            assert slave.state.store.watermarks.end == end
        async with running(tmp_path / "slave", messageDelayLevel="1s") as master:
            await until(lambda: len(master.records("Orders")) == 1)

    simulated.run(run())


def test_a_slave_that_lags_moves_no_consumer(tmp_path: Path) -> None:
    """Its master has what it lacks; without a master the consumer waits for it."""

    async def run() -> None:
        await prepare(tmp_path)
        reads: dict[str, object] = {"slaveReadEnable": True}
        async with pair(tmp_path, **reads) as (_, slave):
            await until(lambda: slave.state.replicas.master_answers)
            for offset in (6, 9):
                found = await pull(slave, offset)
                assert found.code == ResponseCode.PULL_RETRY_IMMEDIATELY
                assert found.offsets.next_begin_offset == offset
                assert found.offsets.suggest_which_broker_id == 0
        async with running(tmp_path / "slave", **(SLAVE | reads)) as slave:
            found = await start_pull(slave, 9, 50)
            assert found.code == ResponseCode.PULL_NOT_FOUND
            assert found.offsets.next_begin_offset == 9
            found = await start_pull(slave, 2, 50, queue_id=1)
            assert (found.code, found.offsets.next_begin_offset) == (ResponseCode.PULL_NOT_FOUND, 2)
        async with running(tmp_path / "slave") as promoted:
            found = await pull(promoted, 9)
            assert found.code == ResponseCode.PULL_OFFSET_MOVED
            assert found.offsets.next_begin_offset == 0

    simulated.run(run())
