"""A connection, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from mqlake.grpc.call import Call
from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.http2 import frames
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    Message,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
)
from mqlake.grpc.server_state import ServerState
from mqlake.grpc.status import GrpcError, GrpcStatus
from tests.grpc.abuse.run import Socket
from tests.grpc.raw_client import call, call_of, data, headers
from tests.grpc.serving import METHODS, with_handler
from tests.until import rounds, until

BEGIN = frames.PREFACE + frames.settings({}) + frames.window_update(0, 1 << 20)
SERVED = b"grpc-status\x010"


class Choking(Socket):
    """A transport that accepts what is written, and lets nothing more be written."""

    def write(self, data: Any) -> None:
        super().write(data)
        self.protocol.pause_writing()


def connection(
    transport: Callable[[GrpcConnection], Socket] = Socket,
    handler: Any = None,
    name: str = "Heartbeat",
    limits: GrpcLimits | None = None,
) -> tuple[GrpcConnection, Socket, ServerState[GrpcConnection]]:
    """Return a new connection of a new server, its transport, and the server's state."""
    methods = with_handler(name, handler) if handler else METHODS
    loop = asyncio.get_running_loop()
    by_path = {method.path: method for method in methods}
    state = ServerState[GrpcConnection](loop, limits or GrpcLimits(), by_path, None)
    found = GrpcConnection(state)
    socket = transport(found)
    found.connection_made(socket)
    return found, socket, state


async def receive(found: GrpcConnection, socket: Socket, sent: bytes) -> None:
    """Let a connection receive bytes, once it reads."""
    await until(lambda: not socket.is_paused or socket.is_over)
    found.get_buffer(-1)[: len(sent)] = sent
    found.buffer_updated(len(sent))


def test_nothing_is_served_for_a_client_that_does_not_read() -> None:
    async def scenario() -> None:
        found, socket, state = connection(Choking)
        await receive(found, socket, BEGIN)
        found.resume_writing()
        calls = [call(number, "SendMessage", SendMessageRequest()) for number in range(1, 2001, 2)]
        await receive(found, socket, b"".join(calls))
        await until(lambda: SERVED in socket.written)
        await rounds(100)
        assert socket.written.count(SERVED) < len(calls)
        assert not state.turns.waiting
        while socket.written.count(SERVED) < len(calls):
            written = len(socket.written)
            found.resume_writing()
            await until(lambda at=written: len(socket.written) > at)

    asyncio.run(scenario())


def test_calls_that_are_served_for_long_make_no_client_greedy() -> None:
    async def scenario() -> None:
        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            await asyncio.Event().wait()
            return HeartbeatResponse()

        found, socket, _ = connection(handler=wait)
        await receive(found, socket, BEGIN)
        calls = [call(number, "Heartbeat", HeartbeatRequest()) for number in range(1, 201, 2)]
        await receive(found, socket, b"".join(calls))
        await until(lambda: found.calls == 100)
        later = asyncio.get_running_loop().time() + 100
        assert found.measure() > 100 * 2048
        assert found.greed(later, 0.5) == 0
        socket.close()
        await until(lambda: found.calls == 0)

    asyncio.run(scenario())


def test_requests_that_do_not_continue_make_a_client_greedy() -> None:
    async def scenario() -> None:
        found, socket, state = connection()
        begin = b"\0\0\1\0\0" + bytes(10_000)
        part = data(1, begin, is_last=False)
        await receive(found, socket, BEGIN + headers(1, call_of("SendMessage")) + part)
        later = asyncio.get_running_loop().time() + 100
        small = found.greed(later, 0.5)
        assert small > 10_000
        await receive(found, socket, part[:-1])
        assert found.greed(later, 0.5) > small
        socket.close()
        assert state.budget.used == 0

    asyncio.run(scenario())


def test_a_client_with_many_calls_that_leaves_is_forgotten() -> None:
    async def scenario() -> None:
        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            await asyncio.Event().wait()
            return HeartbeatResponse()

        found, socket, state = connection(handler=wait)
        await receive(found, socket, BEGIN)
        for begin in range(1, 6001, 200):
            numbers = range(begin, begin + 200, 2)
            calls = [call(number, "Heartbeat", HeartbeatRequest()) for number in numbers]
            await receive(found, socket, b"".join(calls))
        await until(lambda: found.calls == 3000)
        socket.close()
        assert state.budget.used == 0
        await until(lambda: found.calls == 0)

    asyncio.run(scenario())


def test_a_handler_that_returns_no_response_ends_its_call() -> None:
    async def scenario() -> None:
        async def forget(call: Call, request: HeartbeatRequest) -> None:
            await asyncio.sleep(0)

        found, socket, _ = connection(handler=forget)
        await receive(found, socket, BEGIN + call(1, "Heartbeat", HeartbeatRequest()))
        await until(lambda: b"grpc-status\x0213" in socket.written)
        socket.close()

    asyncio.run(scenario())


def test_nothing_follows_the_farewell() -> None:
    async def scenario() -> None:
        found, socket, _ = connection()
        begin = frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: 10})
        request = SendMessageRequest(messages=[Message(body=bytes(10))] * 1000)
        await receive(found, socket, begin + call(1, "SendMessage", request))
        await receive(found, socket, frames.window_update(1, 1 << 20) + frames.window_update(0, 0))
        await rounds(3)
        assert socket.is_over
        assert bytes(socket.written).endswith(b"a WINDOW_UPDATE of 0 bytes")

    asyncio.run(scenario())


def test_resets_that_a_client_provokes_are_limited() -> None:
    async def scenario() -> None:
        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            await asyncio.Event().wait()
            return HeartbeatResponse()

        found, socket, _ = connection(handler=wait, limits=GrpcLimits(resets=50))
        await receive(found, socket, BEGIN)
        for number in range(1, 201, 2):
            begin = call(number, "Heartbeat", HeartbeatRequest())
            await receive(found, socket, begin + data(number, b"x"))
            if socket.is_over:
                break
        await until(lambda: b"more than 50 reset calls" in socket.written)
        await until(lambda: found.calls == 0)

    asyncio.run(scenario())


def test_a_handler_that_ignores_that_it_is_cancelled_sends_nothing_more() -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def ignore(call: Call, request: ReceiveMessageRequest) -> AsyncIterator[Any]:
            try:
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
                while True:
                    yield ReceiveMessageResponse(message=Message(body=bytes(1000)))
            finally:
                ended.set()

        found, socket, _ = connection(handler=ignore, name="ReceiveMessage")
        await receive(found, socket, BEGIN + call(1, "ReceiveMessage", ReceiveMessageRequest()))
        await rounds(3)
        await receive(found, socket, frames.reset(1, frames.ErrorCode.CANCEL))
        written = len(socket.written)
        await ended.wait()
        await until(lambda: found.calls == 0)
        assert len(socket.written) == written

    asyncio.run(scenario())


def test_errors_with_any_text_are_answered() -> None:
    async def scenario() -> None:
        def fail(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            raise GrpcError(GrpcStatus.INTERNAL, "\udcff" + "\u00e9" * 5000)

        def cancel(call: Call, request: ReceiveMessageRequest) -> HeartbeatResponse:
            raise asyncio.CancelledError

        for handler, status in ((fail, b"\x0213"), (cancel, b"\x011")):
            found, socket, _ = connection(handler=handler)
            await receive(found, socket, BEGIN + call(1, "Heartbeat", HeartbeatRequest()))
            await until(lambda to=socket, end=status: b"grpc-status" + end in to.written)
            assert len(socket.written) < 2000
            assert not socket.is_over

    asyncio.run(scenario())


def test_what_calls_hold_is_counted() -> None:
    async def scenario() -> None:
        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            await asyncio.Event().wait()
            return HeartbeatResponse()

        found, socket, _ = connection(handler=wait)
        await receive(found, socket, BEGIN)
        empty = found.measure()
        content = b"\0\0\0\0\0"
        block = call_of("Heartbeat", x_mq_client_id="c" * 4000)
        await receive(found, socket, headers(1, block) + data(1, content))
        assert found.measure() > empty + 4000
        many = b"\x0a\x00" * 10_000
        content = b"\0" + len(many).to_bytes(4) + many
        await receive(found, socket, headers(3, call_of("Heartbeat")) + data(3, content))
        await until(lambda: found.measure() > 48 * 10_000)
        socket.close()
        await until(lambda: found.calls == 0)

    asyncio.run(scenario())
