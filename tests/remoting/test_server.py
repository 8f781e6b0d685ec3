"""Requests, handlers, answers: over real connections on the loopback."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import weakref

import pytest

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, oneway, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import encode
from mqlake.protocol.header import Header, Int32
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.server import RemotingServer
from tests.remoting.serving import PATIENCE, Raw, is_closed, serving
from tests.until import rounds, until

ASK = RequestCode.HEART_BEAT


class Number(Header):
    number: Int32


def echo(peer: Peer, asked: Command) -> Command:
    return response(asked, header=asked.fields, body=asked.body, remark=peer.address)


@pytest.mark.parametrize("kind", Serialization)
def test_a_handlers_command_is_the_answer(kind: Serialization) -> None:
    async def run() -> None:
        async with serving({ASK: echo}) as served:
            asked = request(ASK, Number(number=3), b"body")
            asked.serialization = kind
            answer = await served.ask(asked)
            assert (answer.code, answer.serialization) == (ResponseCode.SUCCESS, kind)
            assert answer.header(Number) == Number(number=3)
            assert answer.body == b"body"
            assert answer.remark is not None
            assert answer.remark.startswith("127.0.0.1:")

    asyncio.run(run())


def test_large_answers_arrive_among_small_ones() -> None:
    bodies = [bytes([number]) * size for number, size in enumerate((1 << 20, 3, 200_000, 0, 2**22))]

    async def run() -> None:
        async with serving({ASK: echo}) as served:
            asked = (served.ask(request(ASK, body=body)) for body in bodies)
            answers = await asyncio.gather(*asked)
            assert [bytes(answer.body) for answer in answers] == bodies

    asyncio.run(run())


def test_an_answer_may_come_later_and_in_any_order() -> None:
    waiting: list[tuple[Peer, Command]] = []

    def park(peer: Peer, asked: Command) -> None:
        waiting.append((peer, asked))
        if len(waiting) == 3:
            assert peer.in_flight == 3
            for at, asked in reversed(waiting):
                at.answer(asked, response(asked, body=asked.body))

    async def run() -> None:
        async with serving({ASK: park}) as served:
            bodies = [b"1", b"2", b"3"]
            answers = await asyncio.gather(*(served.ask(request(ASK, body=b)) for b in bodies))
            assert [answer.body for answer in answers] == bodies
            assert {peer.in_flight for peer, _ in waiting} == {0}

    asyncio.run(run())


def test_a_coroutine_is_a_task() -> None:
    gate = asyncio.Event()

    async def wait(_: Peer, asked: Command) -> Command:
        await gate.wait()
        return response(asked, ResponseCode.NO_MESSAGE)

    def open_gate(_: Peer, asked: Command) -> Command:
        gate.set()
        return response(asked)

    async def run() -> None:
        async with serving({ASK: wait, RequestCode.SEND_MESSAGE: open_gate}) as served:
            slow = asyncio.ensure_future(served.ask(request(ASK)))
            assert (await served.ask(request(RequestCode.SEND_MESSAGE))).code == 0
            assert (await slow).code == ResponseCode.NO_MESSAGE

    asyncio.run(run())


async def later(error: Exception) -> Command:
    await asyncio.sleep(0)
    raise error


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize(
    ("error", "code", "remark", "logged"),
    [
        (RemotingError(ResponseCode.TOPIC_NOT_EXIST, "no topic T"), 17, "no topic T", False),
        (MqlakeError("a file is gone"), 1, "a file is gone", True),
        (RequestTimeoutError("another one is silent"), 1, "another one is silent", False),
        (ZeroDivisionError("by zero"), 1, "ZeroDivisionError: by zero", True),
    ],
)
def test_a_failure_is_an_answer(
    error: Exception,
    code: int,
    remark: str,
    logged: bool,
    is_later: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Peer, __: Command) -> Command:
        raise error

    async def run() -> None:
        handler = (lambda _, __: later(error)) if is_later else fail
        async with serving({ASK: handler}) as served:
            answer = await served.ask(request(ASK))
            assert (answer.code, answer.remark) == (code, remark)
            with pytest.raises(RemotingError, match=remark) as caught:
                await served.client.call(served.address, request(ASK), PATIENCE)
            assert caught.value.code == code

    asyncio.run(run())
    assert bool(caplog.records) == logged


def test_a_header_that_is_wrong_is_said_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        handler = lambda _, asked: response(asked, header=asked.header(Number))  # noqa: E731
        async with serving({ASK: handler}) as served:
            answer = await served.ask(request(ASK, {"number": "x"}))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "number" in (answer.remark or "")

    asyncio.run(run())
    assert not caplog.records


def test_an_unknown_code_is_answered() -> None:
    async def run() -> None:
        async with serving({}) as served:
            answer = await served.ask(request(9999))
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            assert answer.remark == " request type 9999 not supported"

    asyncio.run(run())


def test_a_oneway_request_gets_no_answer() -> None:
    seen: list[bytes] = []

    def note(_: Peer, asked: Command) -> Command:
        seen.append(bytes(asked.body))
        return response(asked)

    async def run() -> None:
        async with serving({ASK: note}) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(encode(oneway(ASK, body=b"1")) + encode(oneway(77)))
            raw.writer.write(encode(request(ASK, body=b"2")))
            assert (await raw.command()).opaque == 0
            await served.client.oneway(served.address, request(ASK, body=b"3"))
            assert (await served.ask(request(ASK, body=b"4"))).code == 0
            assert seen == [b"1", b"2", b"3", b"4"]
            await raw.close()

    asyncio.run(run())


def test_a_server_may_ask_its_client() -> None:
    async def ask_back(peer: Peer, asked: Command) -> Command:
        answer = await peer.request(
            request(RequestCode.CHECK_TRANSACTION_STATE, body=b"x"), PATIENCE
        )
        return response(asked, body=bytes(answer.body) * 2)

    async def run() -> None:
        mine = {RequestCode.CHECK_TRANSACTION_STATE: echo}
        async with serving({ASK: ask_back}, client_handlers=mine) as served:
            assert (await served.ask(request(ASK))).body == b"xx"

    asyncio.run(run())


def test_a_request_without_an_answer_times_out() -> None:
    async def run() -> None:
        async with serving({ASK: lambda _, __: None}) as served:
            with pytest.raises(RequestTimeoutError, match=r"request 34 within 0\.01 s"):
                await served.ask(request(ASK), 0.01)

    asyncio.run(run())


def test_a_connection_that_is_lost_ends_what_waits_for_it() -> None:
    closed: list[Peer] = []

    def drop(peer: Peer, _: Command) -> None:
        peer.on_close(closed.append)
        peer.close()
        peer.send(response(request(1)))

    async def run() -> None:
        async with serving({ASK: drop, 1: echo}) as served:
            with pytest.raises(ConnectionFailedError, match="lost"):
                await served.ask(request(ASK))
            assert (await served.ask(request(1))).code == 0  # on a new connection
            peer = await served.client.connect(served.address)
            peer.close()
            with pytest.raises(ConnectionFailedError, match="closed"):
                await peer.request(request(1), 1)
            assert len(closed) == 1
            assert closed[0].is_closed
            closed[0].on_close(closed.append)
            assert len(closed) == 2

    asyncio.run(run())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1", "127.0.0.1:x", ":1", "h:70000"])
def test_an_address_without_a_server_is_an_error(address: str) -> None:
    async def run() -> None:
        async with serving({}) as served:
            with pytest.raises(ConnectionFailedError, match=address):
                await served.client.request(address, request(1))

    asyncio.run(run())


def test_requests_at_once_share_one_connection() -> None:
    async def run() -> None:
        async with serving({ASK: echo}) as served:
            answers = await asyncio.gather(*(served.ask(request(ASK)) for _ in range(20)))
            assert len({answer.remark for answer in answers}) == 1
            assert len(served.server.peers) == 1

    asyncio.run(run())


def test_a_port_that_is_taken_is_an_error_and_several_ports_are_one_server() -> None:
    async def run() -> None:
        async with serving({ASK: lambda p, a: response(a, remark=str(p.local_port))}) as served:
            with pytest.raises(MqlakeError, match=f"cannot listen on 127.0.0.1:{served.port}"):
                await RemotingServer([]).start("127.0.0.1", served.port)
            other = await served.server.start("127.0.0.1", 0)
            for port in (served.port, other):
                answer = await served.client.call(f"127.0.0.1:{port}", request(ASK), PATIENCE)
                assert answer.remark == str(port)

    asyncio.run(run())


def test_a_stop_waits_for_running_handlers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def run() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(_: Peer, asked: Command) -> Command:
            begun.set()
            await may_end.wait()
            return response(asked, body=b"done")

        async with serving({ASK: slow}) as served:
            answer = asyncio.ensure_future(served.ask(request(ASK)))
            await begun.wait()
            stopping = asyncio.ensure_future(served.server.stop(PATIENCE))
            await rounds()
            assert not stopping.done()
            may_end.set()
            await stopping
            assert (await answer).body == b"done"

    asyncio.run(run())
    assert not caplog.records


@pytest.mark.parametrize("rounds", range(6))
def test_a_stop_closes_a_connection_that_is_just_accepted(rounds: int) -> None:
    async def run() -> None:
        server = RemotingServer([])
        port = await server.start("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for _ in range(rounds):
                await asyncio.sleep(0)
            await server.stop(0.0)
            assert await asyncio.to_thread(is_closed, connection)
            assert not server.peers

    asyncio.run(run())


def test_a_stop_that_is_cancelled_closes_the_port() -> None:
    async def run() -> int:
        server = RemotingServer([])
        port = await server.start("127.0.0.1", 0)
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        return port

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", asyncio.run(run()))).close()


def test_a_lost_connection_is_freed_without_the_garbage_collector() -> None:
    """The broker collects garbage of the oldest generation only while it is mostly idle."""

    async def run() -> None:
        async with serving({ASK: echo}) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(encode(request(ASK)))
            await raw.command()
            (peer,) = served.server.peers
            found = weakref.ref(peer)
            del peer
            gc.disable()
            try:
                await raw.close()
                await until(lambda: not served.server.peers)
                await asyncio.sleep(0)
                assert found() is None
            finally:
                gc.enable()

    asyncio.run(run())
