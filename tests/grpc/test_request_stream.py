"""The requests of a call are collected, and the client may send more as they are taken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlake.grpc.http2 import frames
from mqlake.grpc.messages import HeartbeatRequest, TelemetryCommand
from mqlake.grpc.method import Method, bidirectional, unary
from mqlake.grpc.request_stream import WINDOW, RequestStream
from mqlake.grpc.responses import prefixed
from mqlake.grpc.status import GrpcError, GrpcStatus
from tests.grpc.outlets import Sent
from tests.until import rounds

MOST = 4 * WINDOW


def unserved(*_: Any) -> Any:
    """Serve nothing: no handler is called here."""


HEARTBEAT = unary("Heartbeat", HeartbeatRequest, HeartbeatRequest, unserved)
TELEMETRY = bidirectional("Telemetry", TelemetryCommand, TelemetryCommand, unserved)


def stream_of(sent: Sent, method: Method) -> RequestStream:
    """Return the requests of a new call."""
    return RequestStream(sent.outlet, 1, method, MOST, "someSize")


def receive(requests: RequestStream, data: bytes, *, is_last: bool = False) -> None:
    """Add the content of a frame that is allowed."""
    assert requests.receive(data, len(data), is_last=is_last)


def granted(sent: Sent) -> list[int]:
    """Return by how much the client's window was made wider each time."""
    found = sent.frames()
    assert all(kind == frames.WINDOW_UPDATE and number == 1 for kind, number, _ in found)
    return [int.from_bytes(payload) for _, _, payload in found]


def test_the_only_request_is_taken_once_it_has_arrived() -> None:
    async def scenario() -> None:
        sent = Sent()
        requests, content = stream_of(sent, HEARTBEAT), prefixed(b"12345")
        receive(requests, content[:7])
        assert requests.take_only() is None
        assert sent.outlet.partial == 7
        assert requests.is_incomplete
        receive(requests, content[7:])
        assert requests.take_only() is None  # Another one may follow, which is an error.
        receive(requests, b"", is_last=True)
        assert requests.take_only() == b"12345"
        assert sent.outlet.partial == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("content", [b"", b"\0\0", prefixed(b"1")[:-1], prefixed(b"1") + b"\0"])
def test_a_call_with_one_request_has_exactly_one(content: bytes) -> None:
    async def scenario() -> None:
        requests = stream_of(Sent(), HEARTBEAT)
        receive(requests, content, is_last=True)
        with pytest.raises(GrpcError, match="not exactly one whole request") as caught:
            requests.take_only()
        assert caught.value.status is GrpcStatus.INTERNAL

    asyncio.run(scenario())


def test_the_client_may_send_all_of_a_large_request() -> None:
    async def scenario() -> None:
        sent = Sent()
        requests, content = stream_of(sent, HEARTBEAT), prefixed(bytes(2 * WINDOW))
        receive(requests, content[:10])
        assert requests.take_only() is None
        assert granted(sent) == [len(content) - 10 - (WINDOW - 10)]
        receive(requests, content[10:], is_last=True)
        assert requests.take_only() == bytes(2 * WINDOW)

    asyncio.run(scenario())


def test_more_than_the_window_is_not_allowed() -> None:
    async def scenario() -> None:
        requests = stream_of(Sent(), TELEMETRY)
        receive(requests, bytes(WINDOW))
        assert not requests.receive(b"1", 1, is_last=False)

    asyncio.run(scenario())


def test_padding_counts_in_the_window() -> None:
    async def scenario() -> None:
        sent = Sent()
        requests = stream_of(sent, TELEMETRY)
        assert requests.receive(b"", WINDOW, is_last=False)
        assert sent.outlet.partial == 0
        assert not requests.receive(b"", 1, is_last=False)

    asyncio.run(scenario())


def test_requests_are_yielded_as_they_arrive() -> None:
    async def scenario() -> None:
        sent, found = Sent(), list[Any]()
        requests = stream_of(sent, TELEMETRY)

        async def collect() -> None:
            async for message in requests.messages():
                found.append(message)

        task = asyncio.ensure_future(collect())
        content = prefixed(TelemetryCommand(status={"message": "m"}).SerializeToString())
        receive(requests, content + content[:3])
        await rounds(3)
        assert len(found) == 1
        assert sent.outlet.partial == 3
        receive(requests, content[3:], is_last=True)
        await task
        assert [one.status.message for one in found] == ["m", "m"]
        assert sent.outlet.partial == 0

    asyncio.run(scenario())


def test_the_window_opens_again_as_requests_are_taken() -> None:
    async def scenario() -> None:
        sent = Sent()
        requests, size = stream_of(sent, TELEMETRY), WINDOW // 4
        content = prefixed(TelemetryCommand(status={"message": "m" * size}).SerializeToString())
        receive(requests, 3 * content)
        messages = requests.messages()
        await anext(messages)
        assert granted(sent) == [len(content)]
        await messages.aclose()

    asyncio.run(scenario())


def test_the_last_request_must_be_complete() -> None:
    async def scenario() -> None:
        requests = stream_of(Sent(), TELEMETRY)
        receive(requests, b"\0\0", is_last=True)
        with pytest.raises(GrpcError, match="the last request is not complete"):
            await anext(requests.messages())

    asyncio.run(scenario())


def test_nothing_is_kept_after_the_call_has_ended() -> None:
    async def scenario() -> None:
        sent = Sent()
        requests = stream_of(sent, TELEMETRY)
        receive(requests, bytes(3))
        requests.close()
        assert sent.outlet.partial == 0
        receive(requests, bytes(3))
        assert sent.outlet.partial == 0
        assert not requests.is_incomplete
        assert [each async for each in requests.messages()] == []

    asyncio.run(scenario())
