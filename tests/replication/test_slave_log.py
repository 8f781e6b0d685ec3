"""A slave follows its master, and says why if it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.formats import record
from mqlake.protocol.bodies.ha import HaRuntimeInfo
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.replication.frames import encode_head
from mqlake.replication.comparison import first_record_size
from mqlake.store.owned_store import OwnedStore
from tests import simulated
from tests.broker.running import Running, running, to
from tests.replication.slaves import (
    FILES,
    SLAVE,
    Master,
    end,
    follower,
    log_of,
    master,
    pair,
    server,
    slave_of,
)
from tests.store.replication.test_received_log import SIZE, filled, stream
from tests.until import until

BODY = b"x" * 1000
SMALL_FILES: dict[str, object] = {"mappedFileSizeCommitLog": SIZE}


async def fill(broker: Running, count: int, **fields: object) -> None:
    for number in range(count):
        answer = await broker.send(to("Orders", queue_id=number % 4, **fields), BODY)
        assert answer.code == ResponseCode.SUCCESS


async def same(one: Running, other: Running) -> None:
    """Wait until a slave has all of its master, dispatched."""
    await until(lambda: end(one) == end(other))
    for each in (one, other):
        await until(lambda store=each.state.store: store.watermarks.dispatched == end(one))
    # The slave may have been restarted: the connection before may still be there.
    await until(lambda: [each.acknowledged for each in server(one).connections] == [end(one)])
    for queue_id in range(4):
        reads = [each.state.store.reads for each in (one, other)]
        ranges = {each.queue("Orders", queue_id) for each in reads}
        assert len(ranges) == 1
        first, last = ranges.pop()
        entries = [each.entries("Orders", queue_id, first, last - first) for each in reads]
        assert entries[0] == entries[1]


def is_same_log(path: Path) -> bool:
    ours, theirs = log_of(path / "master"), log_of(path / "slave")
    return ours == theirs


# With a master of mqlake's


def test_a_slave_has_its_masters_log_from_the_first_file_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 200)
            async with slave_of(one, tmp_path / "slave") as other:
                await same(one, other)
                await fill(one, 100, properties="KEYS\x01order\x02")
                await same(one, other)
                found = other.state.store.reads.by_key("Orders", "order", max=200)
                assert len(found.records) == 100
                assert follower(other).problem is None

    simulated.run(run())
    assert len(log_of(tmp_path / "master")) > 4
    assert is_same_log(tmp_path)


def test_a_slave_whose_masters_address_is_not_known_has_everything_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 200)
            settings = SLAVE | {"haMasterAddress": server(one).address}
            async with running(tmp_path / "slave", **settings) as other:
                await same(one, other)

    simulated.run(run())
    assert is_same_log(tmp_path)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_masters_first_files_may_be_gone(tmp_path: Path, is_known: bool) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 300)
            for _ in range(2):
                one.state.store.core.log.remove_first()
            start = one.state.store.watermarks.min_offset
            async with slave_of(one, tmp_path / "slave") as other:
                if not is_known:
                    follower(other).master_address = None
                await until(lambda: end(other) == end(one))
                first = other.state.store.watermarks.min_offset
                # Without the master's address only the start of its last file can be found out.
                assert first == start if is_known else first >= start
                await fill(one, 10)
                await until(lambda: end(other) == end(one))
            async with slave_of(one, tmp_path / "slave") as other:
                assert other.state.store.watermarks.min_offset == first
                await fill(one, 10)
                await until(lambda: end(other) == end(one))

    simulated.run(run())
    ours, theirs = log_of(tmp_path / "master"), log_of(tmp_path / "slave")
    assert ours.items() >= theirs.items()


def test_a_slave_continues_after_a_restart_of_either_side(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 80)
            for _ in range(3):
                async with slave_of(one, tmp_path / "slave") as other:
                    await same(one, other)
                await fill(one, 80)
            address, port = server(one).address, one.broker.settings.listen_port
        again = FILES | {"listenPort": port, "haListenPort": int(address.rpartition(":")[2])}
        async with running(tmp_path / "slave", **(SLAVE | {"haMasterAddress": address})) as other:
            await until(lambda: follower(other).problem is not None)
            async with running(tmp_path / "master", **again) as one:
                await same(one, other)
                await fill(one, 20)
                await same(one, other)

    simulated.run(run())
    assert is_same_log(tmp_path)


def test_a_sync_master_with_a_slave(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path, brokerRole="SYNC_MASTER") as (one, other):
            await until(lambda: server(one).in_sync)
            await fill(one, 50)
            # What was acknowledged is there.
            assert end(other) == end(one)
            answers = await asyncio.gather(*(one.send(to("Orders"), BODY) for _ in range(500)))
            assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
            assert end(other) == end(one)

    simulated.run(run())
    assert is_same_log(tmp_path)


def test_a_slave_that_syncs_acknowledges_what_is_on_its_disk(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES, brokerRole="SYNC_MASTER") as one:  # noqa: SIM117
            async with slave_of(one, tmp_path / "slave", flushDiskType="SYNC_FLUSH") as other:
                await until(lambda: server(one).in_sync)
                for _ in range(20):
                    await fill(one, 1)
                    assert other.state.store.watermarks.flushed == end(one)

    simulated.run(run())


def test_the_status_of_a_slave(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (one, other):
            await fill(one, 5)
            await same(one, other)
            answer = await other.ask(RequestCode.GET_BROKER_HA_STATUS)
            found = decode_body(HaRuntimeInfo, answer.body)
            assert not found.master
            client = found.ha_client_runtime_info
            assert client.master_addr == server(one).address
            assert client.max_offset == client.master_flush_offset == end(one)
            assert client.last_read_timestamp > 0 < client.last_write_timestamp
            assert client.problem == ""
        async with running(tmp_path / "slave", **SLAVE) as other:
            answer = await other.ask(RequestCode.GET_BROKER_HA_STATUS)
            found = decode_body(HaRuntimeInfo, answer.body)
            assert "not known" in found.ha_client_runtime_info.problem

    simulated.run(run())


# With logs that cannot be one


async def problem(slave: Running, words: str) -> None:
    await until(lambda: words in (follower(slave).problem or ""))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_slave_ahead_of_its_master(tmp_path: Path, is_known: bool) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (one, other):
            await fill(one, 90)
            await same(one, other)
        async with running(tmp_path / "slave", **FILES) as promoted:
            await fill(promoted, 10)
        before = log_of(tmp_path / "slave")
        async with running(tmp_path / "master", **FILES) as one:  # noqa: SIM117
            async with slave_of(one, tmp_path / "slave") as other:
                if not is_known:
                    follower(other).master_address = None
                await problem(other, "ahead" if is_known else "nothing from")
        assert log_of(tmp_path / "slave") == before

    simulated.run(run())


def test_logs_that_have_gone_different_ways(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (one, other):
            await fill(one, 90)
            await same(one, other)
        async with running(tmp_path / "slave", **FILES) as promoted:
            await fill(promoted, 10)
        before = log_of(tmp_path / "slave")
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 30)
            async with slave_of(one, tmp_path / "slave") as other:
                await problem(other, "differ at physical offset")
                at = end(other)
                await fill(one, 5)
                await asyncio.sleep(0.3)
                assert end(other) == at
                assert server(one).in_sync == 0
        assert log_of(tmp_path / "slave") == before

    simulated.run(run())


@pytest.mark.parametrize("is_known", [True, False])
def test_what_a_master_has_removed_cannot_be_copied(tmp_path: Path, is_known: bool) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (one, other):
            await fill(one, 20)
            await same(one, other)
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 200)
            one.state.store.core.tick()  # What was removed cannot be dispatched any more.
            one.state.store.core.log.remove_first()
            async with slave_of(one, tmp_path / "slave") as other:
                if not is_known:
                    follower(other).master_address = None
                await problem(other, "is gone" if is_known else "nothing from")

    simulated.run(run())


def test_a_master_with_files_of_another_size(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 200)
            async with slave_of(one, tmp_path / "slave", mappedFileSizeCommitLog=1 << 15) as other:
                await problem(other, "mappedFileSizeCommitLog")

    simulated.run(run())


# With masters that a test leads

Lead = Callable[[Master, OwnedStore], Awaitable[None]]
Test = Callable[[Running], Awaitable[None]]


def with_a_master(path: Path, lead: Lead, test: Test, **settings: object) -> None:
    async def run() -> None:
        log = filled()

        async def serve(_: int, one: Master) -> None:
            await lead(one, log)

        async with master(serve) as address:
            given = SLAVE | SMALL_FILES | {"haMasterAddress": address} | settings
            async with running(path, **given) as slave:
                await test(slave)

    asyncio.run(run())


@pytest.mark.parametrize("most", [1, 33, 1 << 20])
def test_frames_may_be_cut_anywhere(tmp_path: Path, most: int) -> None:
    async def lead(one: Master, log: OwnedStore) -> None:
        data, at = stream(log.log), await one.report()
        one.send(at, data[at:], most)
        await one.gone()

    async def test(slave: Running) -> None:
        expected = filled().log
        await until(lambda: end(slave) == expected.end)
        assert stream(slave.state.store.core.log) == stream(expected)

    with_a_master(tmp_path, lead, test)


def test_a_connection_that_ends_in_a_record_is_made_again(tmp_path: Path) -> None:
    async def lead(one: Master, log: OwnedStore) -> None:
        data, at = stream(log.log), await one.report()
        one.send(at, data[at : at + 3333], 100)
        await one.writer.drain()
        if at + 3333 >= len(data):
            await one.gone()

    async def test(slave: Running) -> None:
        expected = filled().log
        await until(lambda: end(slave) == expected.end)
        assert stream(slave.state.store.core.log) == stream(expected)

    # Of its overlap little is left in so small a log; what is compared is not appended again.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mqlake.replication.comparison.OVERLAP", 100)
        patch.setattr("mqlake.replication.slave_log._FIRST_PAUSE", 0.01)
        with_a_master(tmp_path, lead, test)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (encode_head(-5, 10), "not the header"),
        (encode_head(0, -10), "not the header"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (encode_head(0, 100) + b"\0" * 100, "nothing was written here"),
        (encode_head(0, 100) + b"\xff" * 100, "master's log at physical offset 0"),
        (encode_head(0, (1 << 31) - 1) + b"abcd" * 100, "master's log at physical offset 0"),
    ],
)
def test_a_hostile_master(tmp_path: Path, data: bytes, words: str) -> None:
    async def lead(one: Master, _: OwnedStore) -> None:
        await one.report()
        one.writer.write(data)
        await one.gone()

    async def test(slave: Running) -> None:
        await until(lambda: "master" in (follower(slave).problem or "") or words)
        if words:
            await problem(slave, words)
        assert end(slave) == 0

    with_a_master(tmp_path, lead, test)


def test_a_first_record_that_does_not_end_is_not_held(tmp_path: Path) -> None:
    """Nothing says how long it is before its body has come."""
    head = stream(filled(1).log)[4:]
    body_at = record.HEAD_SIZES[0] - 8  # without the size, which comes before it
    endless = head[:body_at] + (1 << 30).to_bytes(4, "big") + bytes(2 * SIZE)

    async def lead(one: Master, _: OwnedStore) -> None:
        if await one.report() == 0:
            one.send(SIZE, b"x")  # so that the first byte is asked for
        else:
            one.send(4, endless)
        await one.gone()

    async def test(slave: Running) -> None:
        await problem(slave, "begins with no record: it has no end")
        assert end(slave) == 0

    with_a_master(tmp_path, lead, test)


def test_others_are_served_while_many_short_frames_are_taken(tmp_path: Path) -> None:
    beats, turns = 500, 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def lead(one: Master, _: OwnedStore) -> None:
        await one.report()
        one.writer.write(encode_head(0, 0) * beats + b"\xff" * 12)
        await one.gone()

    async def test(slave: Running) -> None:
        turning = asyncio.create_task(turn())
        await problem(slave, "not the header")
        turning.cancel()
        assert turns > beats

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mqlake.replication.reception._TURN", 0)
        with_a_master(tmp_path, lead, test)


def test_a_master_that_skips_bytes(tmp_path: Path) -> None:
    async def lead(one: Master, log: OwnedStore) -> None:
        data = stream(log.log)
        await one.report()
        one.send(0, data[:1000])
        one.send(1001, data[1001:2000])
        await one.gone()

    async def test(slave: Running) -> None:
        await problem(slave, "sends physical offset 1001 instead of 1000")
        assert end(slave) <= 1000

    with_a_master(tmp_path, lead, test)


def test_a_master_that_says_nothing_is_left(tmp_path: Path) -> None:
    async def lead(one: Master, _: OwnedStore) -> None:
        await one.gone()

    async def test(slave: Running) -> None:
        await problem(slave, "nothing came for 0.3 s")

    with_a_master(tmp_path, lead, test, haHousekeepingInterval=300)


def test_a_slave_reports_when_it_has_nothing_new(tmp_path: Path) -> None:
    async def lead(one: Master, log: OwnedStore) -> None:
        await one.report()
        one.send(0, stream(log.log))
        while (await one.report()) != log.log.end:
            pass
        for _ in range(3):
            assert await one.report() == log.log.end
        one.writer.write(encode_head(log.log.end, 0))
        await one.gone()

    async def test(slave: Running) -> None:
        await until(lambda: end(slave) > 0)
        data = follower(slave)
        await until(lambda: data.reception.is_activated)

    with_a_master(tmp_path, lead, test)


def test_another_address_is_another_master(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            running(tmp_path / "one", **FILES) as one,
            running(tmp_path / "slave", **SLAVE) as slave,
        ):
            await fill(one, 5)
            follower(slave).follow(None, server(one).address)
            await until(lambda: end(slave) == end(one))
            async with running(tmp_path / "two", **FILES) as two:
                follower(slave).follow(None, server(two).address)
                await problem(slave, "nothing from")  # it is empty

    simulated.run(run())


def test_the_size_of_a_first_record_follows_from_it() -> None:
    data = stream(filled(1).log)
    for length in range(len(data) - 4):
        found = first_record_size(data[4 : 4 + length])
        assert found in (None, len(data))
    assert first_record_size(data[4:]) == len(data)
    with pytest.raises(StoreError, match="no record"):
        first_record_size(b"\0" * 200)
