"""Whatever a client sends, it gets one clear answer, and others are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from mqlake.grpc.call import Call, FinishedCall
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    Message,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
    TelemetryCommand,
)
from mqlake.grpc.responses import prefixed
from mqlake.grpc.server import GrpcServer
from mqlake.grpc.status import GrpcStatus
from tests.grpc.raw_client import RawClient, block, call, call_of, data, headers, raw_client
from tests.grpc.serving import METHODS, serving, with_handler
from tests.until import until

STATUS = {status: str(int(status)) for status in GrpcStatus}
EMPTY = SendMessageRequest()
Abuse = Callable[[RawClient], Any]


async def farewell_of(abuse: Abuse, limits: GrpcLimits | None = None) -> tuple[ErrorCode, str]:
    """Return what a client is answered; check that another one is served before and after."""
    async with serving(limits=limits) as port, raw_client(port) as other, raw_client(port) as bad:
        await other.send(call(1, "SendMessage", EMPTY))
        assert (await other.status())[0] == "0"
        await abuse(bad)
        found = await bad.farewell()
        await other.send(call(3, "SendMessage", EMPTY))
        assert (await other.status())[0] == "0"
        return found


def test_rapid_resets_end_the_connection() -> None:
    running, most = 0, 0

    async def sleep(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(1000)
        finally:
            running -= 1
        return HeartbeatResponse()

    async def scenario() -> None:
        limits = GrpcLimits(resets=500, idle_frames=50_000, calls=100)
        methods = with_handler("Heartbeat", sleep)
        async with serving(methods, limits) as port, raw_client(port) as client:
            for number in range(1, 2003, 2):
                begin = call(number, "Heartbeat", HeartbeatRequest())
                await client.send(begin, frames.reset(number, ErrorCode.CANCEL))
            assert (await client.farewell())[0] is ErrorCode.ENHANCE_YOUR_CALM
            assert most <= 100
            await until(lambda: running == 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "frame",
    [
        frames.settings({}),
        frames.frame(frames.PING, 0, 0, bytes(8)),
        frames.frame(frames.PRIORITY, 0, 1, bytes(5)),
        frames.window_update(0, 1),
        frames.frame(99, 0, 0, b"unknown"),
    ],
    ids=["SETTINGS", "PING", "PRIORITY", "WINDOW_UPDATE", "unknown"],
)
def test_floods_of_frames_end_the_connection(frame: bytes) -> None:
    async def abuse(client: RawClient) -> None:
        await client.send(frame * 1100)

    code, reason = asyncio.run(farewell_of(abuse, GrpcLimits(resets=500, idle_frames=1000)))
    assert code is ErrorCode.ENHANCE_YOUR_CALM
    assert "more than 1000 frames without a call" in reason


def test_empty_data_frames_end_the_connection() -> None:
    async def abuse(client: RawClient) -> None:
        await client.send(headers(1, call_of("SendMessage")))
        await client.send(data(1, b"", is_last=False) * 1100)

    code, _ = asyncio.run(farewell_of(abuse, GrpcLimits(resets=500, idle_frames=1000)))
    assert code is ErrorCode.ENHANCE_YOUR_CALM


def test_windows_that_change_all_streams_end_the_connection() -> None:
    async def abuse(client: RawClient) -> None:
        for size in range(200):
            await client.send(frames.settings({frames.INITIAL_WINDOW_SIZE: size}))

    code, _ = asyncio.run(farewell_of(abuse, GrpcLimits(resets=100, idle_frames=1000)))
    assert code is ErrorCode.ENHANCE_YOUR_CALM


def test_the_last_of_several_windows_counts() -> None:
    async def scenario() -> None:
        name = frames.INITIAL_WINDOW_SIZE.to_bytes(2)
        payload = b"".join(name + size.to_bytes(4) for size in range(10_000))
        async with serving() as port, raw_client(port) as client:
            await client.send(frames.frame(frames.SETTINGS, 0, 0, payload))
            await client.send(call(1, "SendMessage", EMPTY))
            assert (await client.status())[0] == "0"

    asyncio.run(scenario())


def test_each_call_may_open_windows() -> None:
    async def scenario() -> None:
        async with (
            serving(limits=GrpcLimits(resets=10, idle_frames=10)) as port,
            raw_client(port) as client,
        ):
            for number in range(1, 401, 2):
                begin = call(number, "SendMessage", EMPTY)
                await client.send(begin, frames.window_update(0, 10), frames.window_update(0, 1))
                assert (await client.status())[0] == "0"

    asyncio.run(scenario())


def test_tiny_frames_are_put_together() -> None:
    async def scenario() -> None:
        request = SendMessageRequest(messages=[Message(body=bytes(2000))])
        content = prefixed(request.SerializeToString())
        async with serving() as port, raw_client(port) as client:
            await client.send(headers(1, call_of("SendMessage")))
            for at in range(len(content)):
                await client.send(data(1, content[at : at + 1], is_last=False))
            await client.send(data(1, b""))
            assert (await client.status())[0] == "0"

    asyncio.run(scenario())


def test_huge_headers_end_the_connection() -> None:
    async def abuse(client: RawClient) -> None:
        await client.send(headers(1, block([("x", "y" * 20_000)])))

    code, reason = asyncio.run(farewell_of(abuse))
    assert code is ErrorCode.ENHANCE_YOUR_CALM
    assert "the limit is 16384" in reason


def test_headers_that_grow_by_indexes_are_refused() -> None:
    async def scenario() -> None:
        async with serving() as port, raw_client(port) as client:
            large = b"\x40\x01x\x7f\xa1\x1e" + b"y" * (127 + 0x21 + (0x1E << 7))
            await client.send(headers(1, call_of("SendMessage") + large, is_last=True))
            assert (await client.status())[0] == STATUS[GrpcStatus.INTERNAL]
            await client.send(headers(3, call_of("SendMessage") + b"\xbe" * 100))
            refused = await client.next(frames.HEADERS)
            assert b"431" in refused.payload
            await client.send(call(5, "SendMessage", EMPTY))
            assert (await client.status())[0] == "0"

    asyncio.run(scenario())


def test_continuation_floods_end_the_connection() -> None:
    async def abuse(client: RawClient) -> None:
        await client.send(frames.frame(frames.HEADERS, 0, 1, b""))
        await client.send(frames.frame(frames.CONTINUATION, 0, 1, b"") * 100)

    code, reason = asyncio.run(farewell_of(abuse))
    assert code is ErrorCode.ENHANCE_YOUR_CALM
    assert "frames" in reason


def test_headers_may_continue_in_a_second_frame() -> None:
    async def scenario() -> None:
        async with serving() as port, raw_client(port) as client:
            fields = call_of("SendMessage")
            await client.send(
                frames.frame(frames.HEADERS, 0, 1, fields[:20]),
                frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, fields[20:]),
                data(1, prefixed(b"")),
            )
            assert (await client.status())[0] == "0"

    asyncio.run(scenario())


def test_more_calls_than_allowed_are_refused() -> None:
    async def scenario() -> None:
        async with serving(limits=GrpcLimits(calls=10)) as port, raw_client(port) as client:
            for number in range(1, 23, 2):
                await client.send(headers(number, call_of("Telemetry")))
            found = await client.next(frames.RST_STREAM)
            assert found.stream == 21
            assert int.from_bytes(found.payload) == ErrorCode.REFUSED_STREAM

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"\0\x7f\xff\xff\xff", GrpcStatus.RESOURCE_EXHAUSTED, "the limit of this method is"),
        (b"\1\0\0\0\0", GrpcStatus.UNIMPLEMENTED, "compressed"),
        (b"\0\0\0\0\3\xff\xff\xff", GrpcStatus.INTERNAL, "no SendMessageRequest"),
        (b"\0\0\0\0\5\0\0\0", GrpcStatus.INTERNAL, "not exactly one whole request"),
        (b"\0\0\0\0\0" * 2, GrpcStatus.INTERNAL, "not exactly one whole request"),
        (b"", GrpcStatus.INTERNAL, "not exactly one whole request"),
        (prefixed(b"\x0a\x00" * 70_000), GrpcStatus.RESOURCE_EXHAUSTED, "32768 fields"),
        (prefixed(b"\x08" + b"\xff" * 70_000), GrpcStatus.INTERNAL, "no SendMessageRequest"),
    ],
)
def test_wrong_requests_end_the_call(content: bytes, status: GrpcStatus, words: str) -> None:
    async def scenario() -> None:
        async with serving() as port, raw_client(port) as client:
            await client.send(headers(1, call_of("SendMessage")))
            parts = [content[at : at + 16_384] for at in range(0, len(content), 16_384)]
            for part in parts:
                await client.send(data(1, part, is_last=False))
            await client.send(data(1, b""))
            found, text = await client.status()
            assert found == STATUS[status]
            assert words in text
            await client.send(call(3, "SendMessage", EMPTY))
            assert (await client.status())[0] == "0"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"Name": "x"}, "400"),
        ({"a b": "x"}, "400"),
        ({":status": "200"}, "400"),
        ({":other": "x"}, "400"),
        ({"x-name": "a\nb"}, "400"),
        ({"x-name": "a\0b"}, "400"),
        ({"content-type": "application/grpc-web"}, "415"),
        ({":method": "GET"}, "405"),
        ({"content-type": "text/html"}, "415"),
        ({"grpc-timeout": "soon"}, "400"),
    ],
)
def test_requests_that_are_no_calls_get_a_status_of_http(
    fields: dict[str, str], status: str
) -> None:
    async def scenario() -> None:
        wanted = {":method": "POST", ":path": "/x", "content-type": "application/grpc", **fields}
        async with serving() as port, raw_client(port) as client:
            await client.send(headers(1, block(wanted.items()), is_last=True))
            assert status.encode() in (await client.next(frames.HEADERS)).payload
            assert (await client.next(frames.DATA)).flags == frames.END_STREAM

    asyncio.run(scenario())


WRONG = {
    "a frame of stream 2": (headers(2, call_of("SendMessage")), ErrorCode.PROTOCOL_ERROR),
    "a frame beyond the limit": (frames.frame(0, 0, 1, bytes(70_000)), ErrorCode.FRAME_SIZE_ERROR),
    "data before headers": (data(1, b""), ErrorCode.PROTOCOL_ERROR),
    "a reset before headers": (frames.reset(1, ErrorCode.CANCEL), ErrorCode.PROTOCOL_ERROR),
    "a window of 0": (frames.window_update(0, 0), ErrorCode.PROTOCOL_ERROR),
    "a window beyond the limit": (
        frames.window_update(0, frames.LARGEST_WINDOW),
        ErrorCode.FLOW_CONTROL_ERROR,
    ),
    "a first window beyond the limit": (
        frames.settings({frames.INITIAL_WINDOW_SIZE: 2**31}),
        ErrorCode.FLOW_CONTROL_ERROR,
    ),
    "half a setting": (frames.frame(frames.SETTINGS, 0, 0, b"abc"), ErrorCode.FRAME_SIZE_ERROR),
    "a push": (frames.frame(frames.PUSH_PROMISE, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
    "a field that no table has": (headers(1, b"\xff\x80\x01"), ErrorCode.COMPRESSION_ERROR),
    "a number without an end": (headers(1, b"\xff" * 20), ErrorCode.COMPRESSION_ERROR),
    "a table that is resized between fields": (
        headers(1, b"\x83\x20"),
        ErrorCode.COMPRESSION_ERROR,
    ),
    "very many fields": (headers(1, b"\x83" * 10_000), ErrorCode.ENHANCE_YOUR_CALM),
    "headers within headers": (
        frames.frame(frames.HEADERS, 0, 1, b"") + frames.frame(frames.PING, 0, 0, bytes(8)),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "more padding than payload": (
        frames.frame(frames.HEADERS, frames.PADDED, 1, b"\xff"),
        ErrorCode.PROTOCOL_ERROR,
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_breaks_the_rules_ends_the_connection(what: str) -> None:
    sent, expected = WRONG[what]

    async def abuse(client: RawClient) -> None:
        await client.send(sent)

    assert asyncio.run(farewell_of(abuse))[0] is expected


@pytest.mark.parametrize(
    "begin", [b"GET / HTTP/1.1\r\n\r\n" + bytes(10), b"\0\0\1\0" * 10, b"PRI *x"]
)
def test_other_protocols_are_closed_at_once(begin: bytes) -> None:
    async def scenario() -> None:
        async with serving() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begin)
            assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())


def test_a_window_that_is_never_opened_holds_no_memory_for_ever() -> None:
    async def scenario() -> None:
        limits = GrpcLimits(request_time=0.2)
        settings = {frames.INITIAL_WINDOW_SIZE: 0}
        async with serving(limits=limits) as port, raw_client(port, settings=settings) as client:
            await client.send(call(1, "SendMessage", EMPTY))
            found = await client.next(frames.RST_STREAM, frames.DATA)
            assert (found.kind, found.stream) == (frames.RST_STREAM, 1)
            await client.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 1000}))
            await client.send(call(3, "SendMessage", EMPTY))
            assert (await client.next(frames.DATA)).stream == 3

    asyncio.run(scenario())


def test_a_window_that_opens_lets_the_rest_through() -> None:
    async def scenario() -> None:
        settings = {frames.INITIAL_WINDOW_SIZE: 3}
        request = ReceiveMessageRequest(batch_size=100)
        async with serving() as port, raw_client(port, settings=settings) as client:
            await client.send(call(1, "ReceiveMessage", request))
            received = len((await client.next(frames.DATA)).payload)
            assert received == 3
            await client.send(frames.window_update(1, 1000))
            while received < 1003:
                received += len((await client.next(frames.DATA)).payload)
            await client.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 20}))
            await client.send(frames.window_update(0, 1 << 20))
            assert (await client.status())[0] == "0"

    asyncio.run(scenario())


def test_many_that_do_not_read_are_closed_before_memory_ends() -> None:
    async def scenario() -> None:
        limits = GrpcLimits(memory=2 << 20)
        settings = {frames.INITIAL_WINDOW_SIZE: 0}
        server = GrpcServer(METHODS, limits)
        port = await server.start("127.0.0.1", 0)
        greedy = [raw_client(port, settings=settings) for _ in range(10)]
        clients = [await one.__aenter__() for one in greedy]
        for client in clients:
            for number in range(1, 401, 2):
                await client.send(
                    call(number, "ReceiveMessage", ReceiveMessageRequest(batch_size=50))
                )
        await until(lambda: len(server.connections) < 10)
        assert server.held <= 2 * limits.memory
        async with raw_client(port) as other:
            await other.send(call(1, "SendMessage", EMPTY))
            assert (await other.status())[0] == "0"
        for one in greedy:
            await one.__aexit__(None, None, None)
        await until(lambda: server.held == 0)
        await server.stop(0.0)

    asyncio.run(scenario())


def test_a_client_that_reads_nothing_is_closed() -> None:
    async def endless(call: Call, request: ReceiveMessageRequest) -> AsyncIterator[Any]:
        while True:
            yield ReceiveMessageResponse(message=Message(body=bytes(50_000)))

    async def scenario() -> None:
        limits = GrpcLimits(write_buffer=1 << 20)
        server = GrpcServer(with_handler("ReceiveMessage", endless), limits)
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port, settings={frames.INITIAL_WINDOW_SIZE: 2**31 - 1}) as client:
            client.pause()
            await client.send(frames.window_update(0, 1 << 30))
            for number in range(1, 101, 2):
                await client.send(call(number, "ReceiveMessage", ReceiveMessageRequest()))
            await until(lambda: not server.connections)
        await server.stop(0.0)

    asyncio.run(scenario())


def test_half_requests_of_clients_that_leave_are_forgotten() -> None:
    async def scenario() -> None:
        server = GrpcServer(METHODS)
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port) as client:
            begin = b"\0\0\x10\0\0" + bytes(10_000)
            await client.send(headers(1, call_of("SendMessage")), data(1, begin, is_last=False))
            await client.send(headers(3, call_of("Telemetry")), data(3, begin, is_last=False))
            await until(lambda: server.held > 20_000)
            client.abort()
            await until(lambda: not server.connections)
            assert server.held == 0
        await server.stop(0.0)

    asyncio.run(scenario())


def test_a_request_that_does_not_continue_is_reset() -> None:
    async def scenario() -> None:
        limits = GrpcLimits(request_time=0.2)
        async with serving(limits=limits) as port, raw_client(port) as client:
            await client.send(headers(1, call_of("SendMessage")))
            found = await client.next(frames.RST_STREAM)
            assert int.from_bytes(found.payload) == ErrorCode.CANCEL

    asyncio.run(scenario())


def test_idle_connections_are_told_to_go_away() -> None:
    async def scenario() -> None:
        async with serving(limits=GrpcLimits(idle=0.2)) as port, raw_client(port) as client:
            assert (await client.farewell())[0] is ErrorCode.NO_ERROR

    asyncio.run(scenario())


def test_one_address_has_its_share_of_connections() -> None:
    async def scenario() -> None:
        limits = GrpcLimits(connections=8, share=50)
        async with serving(limits=limits) as port:
            opened = [raw_client(port) for _ in range(5)]
            clients = [await one.__aenter__() for one in opened]
            for number, client in enumerate(clients):
                await client.send(call(1, "SendMessage", EMPTY))
                if number < 4:
                    assert (await client.status())[0] == "0"
                else:
                    assert await client.frame() is None
            for one in opened:
                await one.__aexit__(None, None, None)

    asyncio.run(scenario())


# Handlers


def test_a_handler_that_fails_ends_its_call(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
        raise ValueError("two\nlines")

    async def scenario() -> None:
        methods = with_handler("Heartbeat", fail)
        async with serving(methods) as port, raw_client(port) as client:
            await client.send(call(1, "Heartbeat", HeartbeatRequest()))
            expected = (STATUS[GrpcStatus.INTERNAL], "ValueError: two lines")
            assert await client.status() == expected

    asyncio.run(scenario())
    assert "Heartbeat failed" in caplog.text


@pytest.mark.parametrize("is_reset", [True, False])
def test_a_client_that_cancels_or_leaves_cancels_its_handler(*, is_reset: bool) -> None:
    async def scenario() -> None:
        started, ended = asyncio.Event(), asyncio.Event()
        calls = list[Call]()
        finished = list[FinishedCall]()

        async def wait(call: Call, request: ReceiveMessageRequest) -> AsyncIterator[Any]:
            calls.append(call)
            started.set()
            try:
                await asyncio.Event().wait()
                yield None
            finally:
                ended.set()

        methods = with_handler("ReceiveMessage", wait)
        async with serving(methods, on_finished=finished.append) as port:
            async with raw_client(port) as client:
                await client.send(call(1, "ReceiveMessage", ReceiveMessageRequest()))
                await started.wait()
                if is_reset:
                    await client.send(frames.reset(1, ErrorCode.CANCEL))
                    await ended.wait()
                client.abort()
                await ended.wait()
            assert calls[0].is_cancelled
            assert [one.status for one in finished] == [GrpcStatus.CANCELLED]

    asyncio.run(scenario())


def test_a_call_ends_after_its_deadline() -> None:
    async def scenario() -> None:
        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            remaining = call.remaining()
            assert remaining is not None
            assert 0 <= remaining <= 0.05
            await asyncio.Event().wait()
            return HeartbeatResponse()

        methods = with_handler("Heartbeat", wait)
        async with serving(methods) as port, raw_client(port) as client:
            fields = call_of("Heartbeat", grpc_timeout="50m")
            await client.send(headers(1, fields), data(1, prefixed(b"")))
            assert (await client.status())[0] == STATUS[GrpcStatus.DEADLINE_EXCEEDED]

    asyncio.run(scenario())


def test_a_server_that_stops_lets_calls_end() -> None:
    async def scenario() -> None:
        started, may_end = asyncio.Event(), asyncio.Event()

        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            started.set()
            await may_end.wait()
            return HeartbeatResponse()

        server = GrpcServer(with_handler("Heartbeat", wait))
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port) as client:
            await client.send(headers(1, call_of("Telemetry")))
            await client.send(call(3, "Heartbeat", HeartbeatRequest()))
            await started.wait()
            stopping = asyncio.ensure_future(server.stop(1000.0))
            await client.next(frames.GOAWAY)
            await client.send(call(5, "Heartbeat", HeartbeatRequest()))
            refused = await client.next(frames.RST_STREAM)
            assert refused.stream == 5
            may_end.set()
            assert (await client.status())[0] == "0"
            assert (await client.status())[0] == STATUS[GrpcStatus.UNAVAILABLE]
            await stopping

    asyncio.run(scenario())


def test_a_stream_of_requests_that_nobody_takes_is_not_read_without_end() -> None:
    async def scenario() -> None:
        async def wait(call: Call, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
            await asyncio.Event().wait()
            yield TelemetryCommand()

        server = GrpcServer(with_handler("Telemetry", wait))
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port) as client:
            await client.send(headers(1, call_of("Telemetry")))
            for _ in range(70):
                await client.send(data(1, bytes(16_384), is_last=False))
            found = await client.next(frames.RST_STREAM)
            assert int.from_bytes(found.payload) == ErrorCode.FLOW_CONTROL_ERROR
        await server.stop(0.0)

    asyncio.run(scenario())


def test_what_calls_cost_is_reported() -> None:
    async def scenario() -> None:
        finished = list[FinishedCall]()
        async with serving(on_finished=finished.append) as port, raw_client(port) as client:
            request = SendMessageRequest(messages=[Message(body=bytes(100))])
            await client.send(call(1, "SendMessage", request))
            assert (await client.status())[0] == "0"
            (one,) = finished
            assert (one.call.method, one.status) == ("SendMessage", GrpcStatus.OK)
            assert one.call.peer == client.address
            assert one.received == len(prefixed(request.SerializeToString()))
            assert one.sent > 0
            assert one.seconds > 0

    asyncio.run(scenario())
