"""A replica has its master's log, says why if it cannot, and is counted only if it is asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.replication.frames import NOT_COUNTED, encode_head
from mqlake.replica import replica as module
from mqlake.store import StoreReader
from mqlake.store.message_store import MessageStore
from tests.broker.running import Running, running, to
from tests.replica.copies import BODY, asked, copying, failure, fill, has_all, problem
from tests.replication.slaves import FILES, SIZE, Master, log_of, master, only, server
from tests.store.replication.test_received_log import SIZE as FILLED_SIZE
from tests.store.replication.test_received_log import filled, stream
from tests.until import until

Test = Callable[[Running], Awaitable[None]]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL", 0.05)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(module, "_LATE", 0.1)


def on_a_master(path: Path, test: Test, **settings: object) -> None:
    async def run() -> None:
        async with running(path / "master", **(FILES | settings)) as one:
            await test(one)

    asyncio.run(run())


# What it has


def test_a_copy_has_the_masters_log_and_is_a_store(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        await fill(one, 200)
        async with copying(asked(one, tmp_path / "copy")) as replica:
            await has_all(replica, one)
            await fill(one, 50)
            await has_all(replica, one)
            await until(replica.caught_up.is_set)
            found = replica.status()
            assert found.problem is None
            assert found.lag_bytes == 0
            assert found.min_offset == 0
            assert found.master == "broker-a"
            assert found.address == one.address
            with StoreReader.open(tmp_path / "copy") as store:  # while it grows
                assert store.queue("Orders", 0)[0] == 0
        assert len(log_of(tmp_path / "copy")) > 4

    on_a_master(tmp_path, test)
    assert log_of(tmp_path / "master") == log_of(tmp_path / "copy")
    assert "brokerName=broker-a" in (tmp_path / "copy/config/broker.properties").read_text()
    with StoreReader.open(tmp_path / "copy") as store:
        ends = [store.queue("Orders", queue_id)[1] for queue_id in range(4)]
        assert sum(ends) == 250
        assert len(store.by_key("Orders", "k3").records) == 25
    assert "Orders" in (tmp_path / "copy/config/topics.json").read_text()


def test_a_copy_is_resumed(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        for _ in range(3):
            await fill(one, 60)
            async with copying(asked(one, tmp_path / "copy", is_patient=False)) as replica:
                await has_all(replica, one)

    on_a_master(tmp_path, test)
    assert log_of(tmp_path / "master") == log_of(tmp_path / "copy")


def test_an_empty_master_is_copied_at_once(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        async with copying(asked(one, tmp_path / "copy")) as replica:
            await until(lambda: replica.caught_up.is_set() or replica.failed.done())
            assert not replica.failed.done()
            await fill(one, 10)
            await has_all(replica, one)

    on_a_master(tmp_path, test)


def test_retention_of_its_own(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        await fill(one, 400)
        held = SIZE
        options = asked(one, tmp_path / "copy", keep_bytes=3 * SIZE)
        async with copying(options, lambda: held) as replica:
            await until(replica.caught_up.is_set)
        # What somebody still needs stays, however much there is.
        assert min(map(int, log_of(tmp_path / "copy"))) == 0
        async with copying(options, lambda: 1 << 62) as replica:
            await fill(one, 5)
            await has_all(replica, one)
        kept = log_of(tmp_path / "copy")
        assert 0 < sum(map(len, kept.values())) <= 3 * SIZE
        assert log_of(tmp_path / "master").items() >= kept.items()
        async with copying(options) as replica:
            await fill(one, 5)
            await has_all(replica, one)

    on_a_master(tmp_path, test)
    assert min(map(int, log_of(tmp_path / "master"))) == 0
    with StoreReader.open(tmp_path / "copy") as store:
        assert store.queue("Orders", 0)[0] > 0


# Who counts on it


def test_no_put_waits_for_a_copy(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        await one.send(to("Orders"), BODY)
        async with copying(asked(one, tmp_path / "copy")) as replica:
            await has_all(replica, one)
            await until(lambda: not only(one).is_in_sync)
            for _ in range(3):
                answer = await one.send(to("Orders"), BODY)
                assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE
                await has_all(replica, one)  # it has it all the same
            assert server(one).in_sync == 0

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER", slaveTimeout=200)


def test_a_copy_that_counts(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        async with copying(asked(one, tmp_path / "copy", is_counted=True)) as replica:
            await until(lambda: server(one).in_sync)
            await fill(one, 20)
            await has_all(replica, one)

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER", slaveTimeout=30_000)


def test_a_request_comes_when_no_put_waits_for_it(tmp_path: Path) -> None:
    """Of a SYNC_MASTER whose puts wait for 300 ms: a request acknowledges what is before it."""
    log, times = filled(), list[float]()

    async def lead(number: int, one: Master) -> None:
        at = await one.report()
        times.append(asyncio.get_running_loop().time())
        one.send(at, stream(log.log)[at:])
        assert int.from_bytes((await one.reader.readexactly(8)), "big", signed=True) == NOT_COUNTED
        if number == 0:
            return
        await one.gone()

    async def test(broker: Running) -> None:
        async with (
            master(lead) as address,
            copying(asked(broker, tmp_path / "copy", ha_address=address)),
        ):
            await until(lambda: len(times) > 1)
            assert times[1] - times[0] >= 0.3

    settings = {
        "brokerRole": "SYNC_MASTER",
        "slaveTimeout": 300,
        "mappedFileSizeCommitLog": FILLED_SIZE,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Replica, "_ask", _unknown)
        on_a_master(tmp_path, test, **settings)


async def _unknown(*_: object) -> None:
    return None


# With logs that cannot be one


def test_what_it_needs_may_be_gone(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        await fill(one, 20)
        async with copying(asked(one, tmp_path / "copy")) as replica:
            await has_all(replica, one)
        await fill(one, 200)
        one.state.store.core.log.remove_first()
        before = log_of(tmp_path / "copy")
        async with copying(asked(one, tmp_path / "copy")) as replica:
            assert "what is between is gone; give an empty --store" in str(await failure(replica))
        assert log_of(tmp_path / "copy") == before

    on_a_master(tmp_path, test)


def test_retention_of_the_master_overtakes_it(tmp_path: Path) -> None:
    log = filled()

    async def lead(_: int, one: Master) -> None:
        at = await one.report()
        one.send(at, stream(log.log)[at : at + 5000])
        await one.gone()

    async def test(broker: Running) -> None:
        await fill(broker, 200)
        options = asked(broker, tmp_path / "copy", ha_address=address)
        async with copying(options) as replica:
            await until(lambda: replica.status().max_offset)
            broker.state.store.core.log.remove_first()
            assert "is gone" in str(await failure(replica))

    async def run() -> None:
        nonlocal address
        async with master(lead) as address, running(tmp_path / "master", **FILES) as one:
            await test(one)

    address = ""
    asyncio.run(run())


@pytest.mark.parametrize("is_longer", [False, True])
def test_another_master_of_the_same_name(tmp_path: Path, is_longer: bool) -> None:
    async def first(one: Running) -> None:
        await fill(one, 90)
        async with copying(asked(one, tmp_path / "copy")) as replica:
            await has_all(replica, one)

    async def second(one: Running) -> None:
        await fill(one, 200 if is_longer else 20)
        await one.send(to("Others"), BODY)
        before, topics = log_of(tmp_path / "copy"), tmp_path / "copy/config/topics.json"
        async with copying(asked(one, tmp_path / "copy")) as replica:
            words = "differ at physical offset" if is_longer else "it is ahead"
            assert words in str(await failure(replica))
        assert log_of(tmp_path / "copy") == before
        assert "Orders" in topics.read_text()
        assert "Others" not in topics.read_text()

    on_a_master(tmp_path / "one", first)
    on_a_master(tmp_path / "two", second)


def test_a_store_of_another_broker(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        async with copying(asked(one, tmp_path / "copy")) as replica:
            await until(replica.caught_up.is_set)
        settings = tmp_path / "copy/config/broker.properties"
        settings.write_text("brokerName=broker-b\n")
        async with copying(asked(one, tmp_path / "copy")) as replica:
            assert "the store of broker-b, not of broker-a" in str(await failure(replica))

    on_a_master(tmp_path, test)


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    async def test(one: Running) -> None:
        async with (
            MessageStore.open(tmp_path / "copy"),
            copying(asked(one, tmp_path / "copy")) as replica,
        ):
            assert isinstance(await failure(replica), StoreError)

    on_a_master(tmp_path, test)


# With masters that a test leads


@pytest.mark.parametrize("is_patient", [True, False])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (encode_head(-5, 10), "not the head"),
        (encode_head(0, -10), "not the head"),
        (encode_head(0, 100) + b"\xff" * 100, "at physical offset 0"),
        (encode_head(0, (1 << 31) - 1) + b"abcd" * 100, "at physical offset 0"),
        (encode_head(70, 10) + b"x" * 10, "sends physical offset 70"),
        (b"", "closed the connection"),
    ],
)
def test_a_hostile_master(tmp_path: Path, data: bytes, words: str, is_patient: bool) -> None:
    async def lead(_: int, one: Master) -> None:
        await one.report()
        one.writer.write(data)
        if data:
            await one.gone()

    async def test(broker: Running) -> None:
        async with (
            master(lead) as address,
            copying(
                asked(broker, tmp_path / "copy", ha_address=address, is_patient=is_patient)
            ) as replica,
        ):
            if is_patient:
                await problem(replica, words)
                assert not replica.failed.done()
            else:
                assert words in str(await failure(replica))
            assert replica.status().max_offset == 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Replica, "_ask", _known)
        on_a_master(tmp_path, test)


async def _known(*_: object) -> module.MasterLog:
    return module.MasterLog(0, 1 << 20)


def test_a_connection_cut_in_a_record_is_made_again(tmp_path: Path) -> None:
    log = filled()

    async def lead(_: int, one: Master) -> None:
        data, at = stream(log.log), await one.report()
        one.send(at, data[at : at + 3333], 100)
        await one.writer.drain()
        if at + 3333 >= len(data):
            await one.gone()

    async def test(broker: Running) -> None:
        async with (
            master(lead) as address,
            copying(asked(broker, tmp_path / "copy", ha_address=address)) as replica,
        ):
            await until(lambda: replica.status().max_offset == log.log.end)
        kept = b"".join(log_of(tmp_path / "copy").values())[: log.log.end]
        assert kept == stream(log.log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mqlake.replication.comparison.OVERLAP", 100)
        patch.setattr(module.Replica, "_ask", _unknown)
        on_a_master(tmp_path, test, mappedFileSizeCommitLog=FILLED_SIZE)
