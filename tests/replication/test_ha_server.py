"""What a master sends its slaves, and what it believes of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.replication.frames import NOT_COUNTED
from mqlake.replication import ha_server
from mqlake.replication.ha_connection import HaConnection
from tests.broker.live.observing import change
from tests.broker.running import Running, next_port, running, to
from tests.remoting.serving import is_closed
from tests.replication.slaves import FILES, SIZE, Slave, close_all, end, only, server
from tests.store.replication.test_received_log import stream
from tests.until import until

BODY = b"x" * 1000
LARGE = b"x" * 100_000
"""A few of these are more than the system's buffers of a connection hold."""
Test = Callable[[Running], Awaitable[None]]


def on_a_master(path: Path, test: Test, **settings: object) -> None:
    async def run() -> None:
        async with running(path, **(FILES | settings)) as broker:
            try:
                await test(broker)
            finally:
                await close_all()

    asyncio.run(run())


async def fill(broker: Running, count: int, body: bytes = BODY) -> None:
    for number in range(count):
        answer = await broker.send(to("Orders", queue_id=number % 4), body)
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.SLAVE_NOT_AVAILABLE)


async def slave_of(broker: Running, buffer: int | None = None, host: str | None = None) -> Slave:
    return await Slave.connect(server(broker).address, buffer, host)


async def whole(slave: Slave, upto: int, start: int = 0) -> None:
    """Read frames until the log up to an offset has come, each where the last one ended."""
    at = start
    while at < upto:
        offset, body = await slave.data()
        assert offset == at
        assert offset // SIZE == (offset + len(body) - 1) // SIZE, "a frame over a file's end"
        at += len(body)


def test_a_slave_is_sent_the_log_from_where_it_asks_and_what_follows(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 150)
        slave = await slave_of(broker)
        slave.report(1)
        await whole(slave, end(broker), 1)
        before = end(broker)
        await fill(broker, 3)
        await whole(slave, end(broker), before)
        assert slave.received == stream(broker.state.store.core.log)[1:]
        assert await slave.frame() == (end(broker), b"")  # the heartbeat

    on_a_master(tmp_path, test)


def test_a_new_slave_that_asks_for_0_gets_the_last_file(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 150)
        slave = await slave_of(broker)
        slave.report(0)
        start = end(broker) - end(broker) % SIZE
        assert start > 0
        await whole(slave, end(broker), start)

    on_a_master(tmp_path, test)


def test_an_empty_log_is_waited_for(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        assert await slave.frame() == (0, b"")
        await fill(broker, 1)
        await whole(slave, end(broker))

    on_a_master(tmp_path, test)


def test_nothing_is_sent_before_it_is_on_the_masters_disk(tmp_path: Path) -> None:
    """Else a slave could be ahead of a master that lost its power."""

    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        await until(lambda: server(broker).connections)
        await until(lambda: only(broker).transferred_from == 0)
        await fill(broker, 5)
        await whole(slave, end(broker))
        # Nobody waits for it, so that nothing syncs it.
        broker.state.store.core.puts.put(_message())
        broker.state.store.copying.growth.tell()
        log = broker.state.store.watermarks
        assert broker.state.store.copying.end == log.flushed

    on_a_master(tmp_path, test, flushDiskType="SYNC_FLUSH")


def _message() -> object:
    from mqlake.store import Message

    return Message("Orders", b"body")


def test_a_slave_far_behind_is_sent_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.replication.ha_connection._FAR_BEHIND", 10_000)

    async def test(broker: Running) -> None:
        await fill(broker, 300)
        slave = await slave_of(broker)
        slave.report(1)
        await whole(slave, end(broker), 1)
        assert slave.received == stream(broker.state.store.core.log)[1:]

    on_a_master(tmp_path, test)


def test_each_of_many_slaves_gets_all(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slaves = [await slave_of(broker) for _ in range(10)]
        for slave in slaves:
            slave.report(0)
        await until(lambda: all(each.transferred_from == 0 for each in server(broker).connections))
        await fill(broker, 30)
        await asyncio.gather(*(whole(slave, end(broker)) for slave in slaves))
        for slave in slaves:
            slave.report(end(broker))
        await until(lambda: [each.lacks for each in server(broker).connections] == [0] * 10)
        for slave in slaves[:5]:
            slave.close()
        await until(lambda: len(server(broker).connections) == 5)

    on_a_master(tmp_path, test)


@pytest.mark.parametrize("data", [b"\xff" * 8, b"\x7f" + b"\xff" * 7])
def test_invalid_reports_end_the_connection(tmp_path: Path, data: bytes) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.writer.write(data)
        await slave.closed()
        await until(lambda: not server(broker).connections)

    on_a_master(tmp_path, test)


def test_another_protocol_is_sent_nothing_and_not_counted(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 3)
        slave = await slave_of(broker)
        await until(lambda: server(broker).connected)  # it ends as soon as these are read
        slave.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await slave.closed()  # what it says next is no acknowledgement of what it was sent
        assert server(broker).in_sync == 0

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER")


def test_a_forged_acknowledgement_is_not_believed(tmp_path: Path) -> None:
    """rocketmq#3015: eight bytes from anybody released the producers that waited."""

    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        await until(lambda: server(broker).in_sync == 1)
        slave.report(1 << 40)
        await slave.closed()
        answer = await broker.send(to("Orders"), BODY)
        assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER")


def test_a_first_report_beyond_the_log_counts_for_nothing(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(1 << 40)
        assert (await slave.frame())[1] == b""
        assert server(broker).in_sync == 0
        answer = await broker.send(to("Orders"), BODY)
        assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE
        assert (await slave.frame())[1] == b""  # it is sent nothing

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER")


def test_removed_parts_of_the_log_are_not_sent(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 150)
        broker.state.store.core.log.remove_first()
        slave = await slave_of(broker)
        slave.report(1)
        assert await slave.frame() == (1, b"")
        await fill(broker, 1)
        assert await slave.frame() == (1, b"")

    on_a_master(tmp_path, test)


def test_a_sync_master_waits_for_its_slave(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        await until(lambda: server(broker).in_sync == 1)
        sends = [asyncio.ensure_future(broker.send(to("Orders"), BODY)) for _ in range(20)]
        await until(lambda: len(broker.records("Orders")) == 20)
        await whole(slave, end(broker))
        assert not any(send.done() for send in sends)
        slave.report(end(broker))
        codes = {answer.code for answer in await asyncio.gather(*sends)}
        assert codes == {ResponseCode.SUCCESS}
        await change(broker, slaveTimeout=100)
        late = await broker.send(to("Orders"), BODY)
        assert late.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
        assert late.fields["queueOffset"] == "20"  # it is stored
        unwaited = await broker.send(to("Orders", properties="WAIT\x01false"), BODY)
        assert unwaited.code == ResponseCode.SUCCESS

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER", slaveTimeout=60_000)


def test_the_offset_that_a_slave_asks_for_acknowledges_nothing(tmp_path: Path) -> None:
    """Eight bytes from anybody, or a slave whose log is another one, release no producer."""

    async def test(broker: Running) -> None:
        one, other = await slave_of(broker), await slave_of(broker)
        one.report(0)
        await until(lambda: server(broker).in_sync == 1)
        send = asyncio.ensure_future(broker.send(to("Orders"), BODY))
        await one.data()
        other.report(end(broker))
        other.report(end(broker))
        assert await other.frame() == (end(broker), b"")
        assert server(broker).in_sync == 2
        assert not send.done()
        one.report(end(broker))
        assert (await send).code == ResponseCode.SUCCESS

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER", slaveTimeout=60_000)


def test_a_slave_that_is_ahead_is_sent_nothing_when_the_log_has_grown(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 3)
        slave, wanted = await slave_of(broker), end(broker) + 100
        slave.report(wanted)
        assert await slave.frame() == (wanted, b"")
        await fill(broker, 3)
        assert end(broker) > wanted
        for _ in range(3):
            assert await slave.frame() == (wanted, b"")

    on_a_master(tmp_path, test)


def test_a_replica_receives_the_log_and_is_not_counted(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 3)
        reader = await slave_of(broker)
        reader.report(1)
        await whole(reader, end(broker), 1)
        assert server(broker).in_sync == 1
        reader.report(NOT_COUNTED)
        await until(lambda: not server(broker).in_sync)
        for _ in range(3):  # its heartbeats keep the connection, and it is sent what comes
            at = end(broker)
            await fill(broker, 1)
            await whole(reader, end(broker), at)
            reader.report(NOT_COUNTED)
        first = await slave_of(broker)
        first.report(NOT_COUNTED)
        await first.closed()

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER", slaveTimeout=200)


def test_a_slave_that_asks_for_what_is_gone_is_not_in_sync(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 150)
        broker.state.store.core.log.remove_first()
        slave = await slave_of(broker)
        slave.report(1)
        assert await slave.frame() == (1, b"")
        assert server(broker).in_sync == 0

    on_a_master(tmp_path, test)


def test_a_slave_that_retention_has_overtaken_is_left(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 66, LARGE)
        slave = await slave_of(broker, 1 << 14)
        slave.report(1)
        await until(lambda: server(broker).connections and only(broker).transferred_from > 1)
        log = broker.state.store.core.log
        while log.remove_first():
            pass
        assert only(broker).transferred_from < log.min_offset
        await slave.closed()
        await until(lambda: not server(broker).connections)

    on_a_master(tmp_path, test, mappedFileSizeCommitLog=2 << 20)


def test_consumers_read_messages_that_no_slave_has_yet(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        await until(lambda: server(broker).in_sync == 1)
        assert (await broker.send(to("Orders"), BODY)).code == ResponseCode.FLUSH_SLAVE_TIMEOUT
        assert len(broker.records("Orders")) == 1

    on_a_master(tmp_path, test, brokerRole="SYNC_MASTER", slaveTimeout=50)


def test_few_frames_are_sent_in_one_step_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    frames, frame = HaConnection._put_frames, HaConnection._put_frame

    def put_frames(connection: HaConnection) -> None:
        steps.append(0)
        frames(connection)
        steps.append(0)  # What the task sends counts for no step.

    def put_frame(connection: HaConnection, data: memoryview) -> None:
        if steps:
            steps[-1] += 1
        frame(connection, data)

    monkeypatch.setattr(HaConnection, "_put_frames", put_frames)
    monkeypatch.setattr(HaConnection, "_put_frame", put_frame)

    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        await until(lambda: server(broker).connections)
        await until(lambda: only(broker).transferred_from == 0)
        await fill(broker, 1)
        await whole(slave, end(broker))
        assert max(steps[::2]) == 8

    on_a_master(tmp_path, test, haTransferBatchSize=1)


def test_a_frame_that_cannot_be_sent_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: HaConnection) -> None:
        connection._writer.write(b"half a head")
        raise RuntimeError

    async def test(broker: Running) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        slave = await slave_of(broker)
        slave.report(0)
        await until(lambda: server(broker).connections)
        await until(lambda: only(broker).transferred_from == 0)
        monkeypatch.setattr(HaConnection, "_put_frames", fail)
        await fill(broker, 1)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await whole(slave, end(broker))
        await until(lambda: not server(broker).connections)

    on_a_master(tmp_path, test, haHousekeepingInterval=3_600_000)


def test_a_slave_that_never_reads_holds_little(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker, 1 << 14)
        slave.report(1)
        await until(lambda: server(broker).connections)
        await fill(broker, 66, LARGE)
        buffered = only(broker)._writer.transport.get_write_buffer_size()  # pyright: ignore[reportPrivateUsage]
        assert buffered < 1 << 18
        assert only(broker).transferred_from < end(broker)
        slave.close()

    on_a_master(tmp_path, test, mappedFileSizeCommitLog=8 << 20, haHousekeepingInterval=3_600_000)


def test_a_silent_slave_is_disconnected(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        silent, other = await slave_of(broker), await slave_of(broker)
        other.report(0)
        await silent.closed()
        await other.closed()

    on_a_master(tmp_path, test, haHousekeepingInterval=300)


def test_connections_without_a_report_take_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ha_server, "_MOST", 8)

    async def test(broker: Running) -> None:
        silent = [await slave_of(broker) for _ in range(8)]
        await until(lambda: server(broker).connected == 8)
        await fill(broker, 3)
        for _ in range(4):
            slave = await slave_of(broker)
            slave.report(0)
            await slave.data()
            assert server(broker).connected == 8
        await silent[0].closed()
        # At most half of the places, or its share, are for one address.
        refused = await slave_of(broker)
        refused.report(0)
        await refused.closed()
        other = await slave_of(broker, host="127.0.0.2")
        other.report(0)
        await other.data()

    on_a_master(tmp_path, test, haHousekeepingInterval=3_600_000)


def test_a_slave_that_reads_nothing_is_closed_if_memory_is_short(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 66, LARGE)
        deaf = [await slave_of(broker, 1 << 14) for _ in range(3)]
        for slave in deaf:
            slave.report(1)
        budget = server(broker).budget
        assert budget is not None
        await until(lambda: budget.used >= 3 << 20)
        budget.set_limit(2 << 20)
        other = await slave_of(broker)
        other.report(1)
        at = 1
        while at < end(broker):
            at += len((await other.data())[1])
        await until(lambda: budget.used <= 2 << 20)
        assert [each.has_begun for each in server(broker).connections].count(True) < 4

    on_a_master(tmp_path, test, mappedFileSizeCommitLog=8 << 20, haHousekeepingInterval=3_600_000)


def test_slaves_from_other_addresses_are_refused(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        await slave.closed()
        assert not server(broker).connected

    on_a_master(tmp_path, test, haAllowedAddresses="10.0.0.0/8; 127.0.0.2")


def test_slaves_from_addresses_that_are_named_are_served(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        slave = await slave_of(broker)
        slave.report(0)
        assert (await slave.frame()) == (0, b"")

    on_a_master(tmp_path, test, haAllowedAddresses="127.0.0.0/24")


def test_flow_control_bounds_what_a_second_brings(tmp_path: Path) -> None:
    async def test(broker: Running) -> None:
        await fill(broker, 40)
        slave = await slave_of(broker)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        slave.report(1)
        await whole(slave, end(broker), 1)
        # Some 45 kB at 20 kB a second: the second after the next was waited for.
        assert loop.time() - begin > 1

    on_a_master(
        tmp_path,
        test,
        haFlowControlEnable=True,
        maxHaTransferByteInSecond=20_000,
        haTransferBatchSize=5000,
    )


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "one") as one:
            taken = int(server(one).address.rpartition(":")[2])
            with pytest.raises(MqlakeError, match=f"port {taken} for slaves.*haListenPort"):
                async with running(tmp_path / "two", haListenPort=taken):
                    pass

    asyncio.run(run())


def test_a_port_that_nobody_asked_for_may_be_taken(tmp_path: Path) -> None:
    async def run() -> None:
        port = next_port()
        holder = await asyncio.start_server(lambda *_: None, "127.0.0.1", port + 1)
        try:
            async with running(tmp_path, listenPort=port) as broker:
                assert broker.state.replicas.ha_address == ""
        finally:
            holder.close()

    asyncio.run(run())


@pytest.mark.parametrize("rounds", range(8))
def test_a_stop_closes_a_slave_that_is_just_accepted(tmp_path: Path, rounds: int) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            host, _, port = broker.state.replicas.ha_address.rpartition(":")
            with socket.create_connection((host, int(port))) as slave:
                for _ in range(rounds):
                    await asyncio.sleep(0)
                await server(broker).stop()
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    if "HaServer" in repr(task):
                        task.cancel()  # as `asyncio.run` does with what is left
                assert await asyncio.to_thread(is_closed, slave)

    asyncio.run(run())


def test_the_status_names_the_slaves(tmp_path: Path) -> None:
    from mqlake.protocol.bodies.ha import HaRuntimeInfo
    from mqlake.protocol.body import decode_body

    async def test(broker: Running) -> None:
        await fill(broker, 5)
        slave = await slave_of(broker)
        slave.report(1)
        await whole(slave, end(broker), 1)
        slave.report(end(broker) - 7)
        await until(lambda: only(broker).lacks == 7)
        answer = await broker.ask(RequestCode.GET_BROKER_HA_STATUS)
        found = decode_body(HaRuntimeInfo, answer.body)
        assert (found.master, found.master_commit_log_max_offset) == (True, end(broker))
        assert found.in_sync_slave_nums == 1
        (one,) = found.ha_connection_info
        assert (one.slave_ack_offset, one.diff, one.in_sync) == (end(broker) - 7, 7, True)
        assert one.transfer_from_where == end(broker)
        await change(broker, haMaxGapNotInSync=6)
        answer = await broker.ask(RequestCode.GET_BROKER_HA_STATUS)
        assert decode_body(HaRuntimeInfo, answer.body).in_sync_slave_nums == 0

    on_a_master(tmp_path, test)
