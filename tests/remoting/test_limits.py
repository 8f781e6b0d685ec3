"""A connection that asks for too much is refused or closed, and no other one notices."""

from __future__ import annotations

import asyncio
import resource
import socket
import time

import pytest

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, Serialization, request, response
from mqlake.protocol.frames import encode
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.limits import Limits
from mqlake.remoting.shared import Shared
from tests.protocol.messages import frame, json_header
from tests.remoting.serving import Raw, Served, serving
from tests.until import rounds, until

ECHO, PARK, LARGE = 1, 2, 3

parked: list[tuple[Peer, Command]] = []
HANDLERS = {
    ECHO: lambda _, asked: response(asked, body=asked.body),
    PARK: lambda peer, asked: parked.append((peer, asked)),
    LARGE: lambda _, asked: response(asked, body=bytes(1 << 20)),
}


async def still_serves(served: Served) -> None:
    assert (await served.ask(request(ECHO, body=b"x"))).body == b"x"


def test_a_malformed_frame_closes_its_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving(HANDLERS) as served:
            await still_serves(served)
            raw = await Raw.open(served.port)
            raw.writer.write(frame(json_header(code=ECHO)) + b"GET / HTTP/1.1\r\n\r\n")
            assert (await raw.command()).code == ResponseCode.SUCCESS  # what was good is answered
            assert await raw.is_closed()
            await still_serves(served)
            assert len(served.server.peers) == 1
            await raw.close()

    asyncio.run(run())
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "closed: no RocketMQ frame: it begins with 'GET '",
    )


def test_an_answer_that_fits_into_no_frame_closes_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        handlers = {**HANDLERS, LARGE: lambda _, asked: response(asked, 200_050)}
        async with serving(handlers) as served:
            asked = request(LARGE)
            asked.serialization = Serialization.ROCKETMQ
            with pytest.raises(ConnectionFailedError):
                await served.ask(asked)
            await still_serves(served)

    asyncio.run(run())
    assert "closed: code 200050 does not fit into a binary header" in caplog.text


def test_requests_beyond_the_limit_in_flight_are_busy() -> None:
    async def run() -> None:
        parked.clear()
        async with serving(HANDLERS, Limits(in_flight=2)) as served:
            waiting = [asyncio.ensure_future(served.ask(request(PARK))) for _ in range(2)]
            await until(lambda: len(parked) == 2)
            answer = await served.ask(request(ECHO))
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert (answer.remark or "").startswith("[TOO_MANY_IN_FLIGHT]2 requests of this")
            peer, asked = parked[0]
            peer.answer(asked, response(asked))
            await waiting[0]
            await still_serves(served)
            waiting[1].cancel()

    asyncio.run(run())


def test_tasks_of_requests_that_want_no_answer_count_too() -> None:
    gate, begun = asyncio.Event(), list[Command]()

    async def wait(_: Peer, asked: Command) -> None:
        begun.append(asked)
        await gate.wait()

    async def run() -> None:
        async with serving({**HANDLERS, PARK: wait}, Limits(in_flight=3)) as served:
            for _ in range(10):
                await served.client.oneway(served.address, request(PARK))
            assert (await served.ask(request(ECHO))).code != ResponseCode.SUCCESS
            assert len(begun) <= 3
            gate.set()
            (peer,) = served.server.peers
            await until(lambda: peer.in_flight == 0)
            await still_serves(served)

    asyncio.run(run())


def test_silent_connections_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def run() -> None:
        async with serving(HANDLERS, Limits(idle=3)) as served:
            await still_serves(served)
            (active,) = served.server.peers
            raw = await Raw.open(served.port)
            await until(lambda: len(served.server.peers) == 2)
            (silent,) = set(served.server.peers) - {active}
            before = active.last_active
            await still_serves(served)
            assert active.last_active > before
            silent._wire.last_active -= 3  # instead of a wait
            assert await raw.is_closed()
            await still_serves(served)
            assert set(served.server.peers) == {active}
            await raw.close()

    asyncio.run(run())
    assert "closed: silent for 3 s" in caplog.text


def test_connections_beyond_the_limit_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving(HANDLERS, Limits(connections=1)) as served:
            await still_serves(served)
            raw = await Raw.open(served.port)
            assert await raw.is_closed()
            await still_serves(served)
            await raw.close()

    asyncio.run(run())
    assert "there are 1 already, and the maximum is 1" in caplog.text


def test_connections_leave_room_for_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))

    async def run() -> None:
        async with serving(HANDLERS) as served:
            await still_serves(served)
            raws = [await Raw.open(served.port) for _ in range(12)]
            closed = [await raw.is_closed() for raw in raws[9:]]
            assert closed == [True] * 3
            await still_serves(served)
            assert len(served.server.peers) == 10
            for raw in raws:
                await raw.close()

    asyncio.run(run())


def test_frames_begun_are_held_up_to_a_limit_in_all(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving(HANDLERS, Limits(memory=100_000)) as served:
            begun = frame(json_header(), bytes(1 << 20))[:60_000]
            raws = [await Raw.open(served.port) for _ in range(2)]
            for raw in raws:
                raw.writer.write(begun)
            done, waiting = await asyncio.wait(
                [asyncio.ensure_future(raw.is_closed()) for raw in raws],
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert len(done) == 1
            await still_serves(served)
            for raw in raws:
                await raw.close()
            await asyncio.gather(*waiting)
            await still_serves(served)

    asyncio.run(run())
    assert "all connections together exceed 100000 bytes" in caplog.text


def test_who_sits_on_frames_gives_way_to_who_sends_a_larger_one() -> None:
    async def run() -> None:
        async with serving(HANDLERS, Limits(memory=1_000_000)) as served:
            begun = frame(json_header(), bytes(1 << 20))[:30_000]
            raws = [await Raw.open(served.port) for _ in range(32)]
            for raw in raws:
                raw.writer.write(begun)
            await until(lambda: sum(peer.held for peer in served.server.peers) == 32 * 30_000)
            for _ in range(5):
                answer = await served.ask(request(ECHO, body=bytes(500_000)))
                assert len(answer.body) == 500_000
            assert len(served.server.peers) < 32
            for raw in raws:
                await raw.close()

    asyncio.run(run())


def test_a_frame_has_to_be_complete_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving(HANDLERS, Limits(frame_time=0.2)) as served:
            raw = await Raw.open(served.port)
            begun = frame(json_header(), bytes(1 << 20))
            closed = asyncio.ensure_future(raw.is_closed())
            for at in range(10_000):  # a byte now and then is no progress
                if closed.done():
                    break
                raw.writer.write(begun[at : at + 1])
                await still_serves(served)
                await asyncio.sleep(0.01)
            assert await closed
            await raw.close()

    asyncio.run(run())
    assert "a frame that it began 0.2 s ago is not complete" in caplog.text


def test_what_is_held_is_let_go_of_when_connections_are_gone() -> None:
    async def run() -> None:
        parked.clear()
        async with serving(HANDLERS) as served:
            raw = await _slow(served)
            raw.writer.write(encode(request(PARK, body=bytes(100_000))) * 3)
            for _ in range(20):
                raw.writer.write(encode(request(LARGE)))
            raw.writer.write(frame(json_header(), bytes(1 << 20))[:60_000])
            await until(lambda: len(parked) == 3)
            (peer,) = served.server.peers
            await until(lambda: peer.is_choked)
            assert peer.held > 300_000
            assert served.used() == peer.held
            await raw.close()
            await until(lambda: peer.is_closed)
            for _, asked in parked:
                peer.answer(asked, response(asked))
            assert (peer.in_flight, peer.bodies, peer.unsent) == (0, 0, 0)
            await still_serves(served)
            assert served.used() == 0

    asyncio.run(run())


def test_bodies_of_requests_that_wait_are_limited() -> None:
    async def run() -> None:
        parked.clear()
        async with serving(HANDLERS, Limits(bodies=1000)) as served:
            waiting = [
                asyncio.ensure_future(served.ask(request(PARK, body=bytes(600)))) for _ in range(2)
            ]
            await until(lambda: len(parked) == 2)
            answer = await served.ask(request(ECHO))
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert (answer.remark or "").endswith("2 requests of this connection, 1200 bytes, wait")
            for peer, asked in parked:
                peer.answer(asked, response(asked))
            await asyncio.gather(*waiting)
            await still_serves(served)

    asyncio.run(run())


def test_a_flood_of_one_connection_takes_turns_with_others() -> None:
    """Each request holds the loop for a while, and a read brings hundreds of them.

    Requests are counted, not seconds: a busy machine must not decide.
    """
    served_by: list[str] = []

    def slow(peer: Peer, asked: Command) -> Command:
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
        served_by.append(peer.address)
        return response(asked)

    async def run() -> None:
        async with serving({**HANDLERS, PARK: slow}) as served:
            raws = [await Raw.open(served.port) for _ in range(4)]
            flood = encode(request(PARK)) * 100
            for raw in raws:
                raw.writer.write(flood)
            most = done = 0
            while len(served_by) < 400:
                await still_serves(served)
                most, done = max(most, len(served_by) - done), len(served_by)
            assert most < 200
            for raw in raws:
                for _ in range(100):
                    await raw.command()
                await raw.close()

    asyncio.run(run())
    for part in range(0, 300, 100):  # all of them get on
        assert len(set(served_by[part : part + 100])) == 4


def test_both_sides_may_write_more_than_the_other_one_reads_at_once() -> None:
    async def run() -> None:
        async with serving(HANDLERS) as served:
            body = bytes(1 << 20)
            answers = await asyncio.gather(
                *(served.ask(request(ECHO, body=body)) for _ in range(60))
            )
            assert all(answer.body == body for answer in answers)

    asyncio.run(run())


async def _slow(served: Served) -> Raw:
    """Open a connection whose kernel buffers are small."""
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await loop.sock_connect(sock, ("127.0.0.1", served.port))
    return Raw(*await asyncio.open_connection(sock=sock, limit=4096))


def test_one_that_does_not_read_is_served_no_more_until_it_reads() -> None:
    async def run() -> None:
        async with serving(HANDLERS) as served:
            raw = await _slow(served)
            for number in range(40):
                asked = request(LARGE)
                asked.opaque = number
                raw.writer.write(encode(asked))
            await until(lambda: any(peer.is_choked for peer in served.server.peers))
            (peer,) = served.server.peers
            await rounds()
            assert not peer.is_closed
            assert peer.unsent < 8 << 20
            await still_serves(served)
            for number in range(40):
                answer = await raw.command()
                assert (answer.opaque, len(answer.body)) == (number, 1 << 20)
            await raw.close()

    asyncio.run(run())


def test_one_that_is_gone_before_it_was_greeted_is_no_accident(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Gone(asyncio.Transport):
        def abort(self) -> None:
            pass

    async def run() -> None:
        peer = Peer(lambda *_: None, Shared(asyncio.get_running_loop(), Limits()))
        transport = Gone()
        transport.set_write_buffer_limits = lambda high: None  # type: ignore[method-assign]
        peer.connection_made(transport)
        assert peer.address == "unknown:0"
        peer.connection_lost(None)
        assert peer.is_closed

    asyncio.run(run())
    assert not caplog.records


def test_one_that_does_not_read_what_comes_by_itself_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        parked.clear()
        async with serving(HANDLERS, Limits(write_buffer=4 << 20)) as served:
            raw = await _slow(served)
            for _ in range(40):
                raw.writer.write(encode(request(PARK)))
            await until(lambda: len(parked) == 40)
            for peer, asked in parked:
                peer.answer(asked, response(asked, body=bytes(1 << 20)))
            assert parked[0][0].is_closed
            await still_serves(served)
            assert len(served.server.peers) == 1
            await raw.close()

    asyncio.run(run())
    assert f"does not read: {4 << 20} bytes wait for it" in caplog.text
