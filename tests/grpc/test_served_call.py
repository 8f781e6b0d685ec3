"""A call ends once, whatever its client, its handler and its time do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mqlake.grpc.call import Call
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.messages import HeartbeatRequest, HeartbeatResponse, TelemetryCommand
from mqlake.grpc.method import Method, bidirectional, unary
from mqlake.grpc.responses import prefixed
from mqlake.grpc.served_call import ServedCall
from mqlake.grpc.status import GrpcStatus
from tests.grpc.outlets import Sent
from tests.until import rounds

EMPTY = prefixed(b"")


def answer(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Answer at once."""
    return HeartbeatResponse()


async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Answer never."""
    await asyncio.Event().wait()
    return HeartbeatResponse()


async def echo(
    call: Call, requests: AsyncIterator[TelemetryCommand]
) -> AsyncIterator[TelemetryCommand]:
    """Send back what arrives."""
    async for request in requests:
        yield request


TELEMETRY = bidirectional("Telemetry", TelemetryCommand, TelemetryCommand, echo)


def heartbeat(handler: Any) -> Method:
    """Return a unary method."""
    return unary("Heartbeat", HeartbeatRequest, HeartbeatResponse, handler)


class Begun:
    """A call that has begun, and what became of it."""

    def __init__(self, method: Method, limits: GrpcLimits | None = None) -> None:
        self.sent = Sent(limits)
        self.closed: list[ServedCall] = []
        call = Call(method.name, {}, peer="p", local="l")
        self.served = ServedCall(self.sent.outlet, 1, method, call, self.closed.append)
        self.served.begin(0.0, 100)

    def receive(self, data: bytes, *, is_last: bool = True, now: float = 0.0) -> bool:
        """Receive the content of a frame."""
        return self.served.receive(data, len(data), now, is_last=is_last)

    @property
    def statuses(self) -> list[GrpcStatus]:
        """Return how the call has ended."""
        return [one.status for one in self.sent.finished]

    def resets(self) -> list[int]:
        """Return the codes of the resets that were sent."""
        return [
            int.from_bytes(payload)
            for kind, _, payload in self.sent.frames()
            if kind == frames.RST_STREAM
        ]


def test_a_call_that_is_answered_is_forgotten() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(answer))
        assert begun.sent.outlet.served == 100
        assert begun.receive(EMPTY)
        assert begun.closed == [begun.served]
        assert begun.statuses == [GrpcStatus.OK]
        assert begun.served.is_answered
        assert begun.sent.outlet.served == 0
        (one,) = begun.sent.finished
        assert one.received == len(EMPTY)

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1, 3, 5, 100])
def test_a_request_may_arrive_in_pieces(size: int) -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(answer))
        content = prefixed(HeartbeatRequest(group={"name": "g" * 50}).SerializeToString())
        for at in range(0, len(content), size):
            assert begun.receive(content[at : at + size], is_last=at + size >= len(content))
        assert begun.statuses == [GrpcStatus.OK]
        assert begun.sent.outlet.partial == begun.sent.outlet.served == 0

    asyncio.run(scenario())


def test_a_large_request_is_served_later() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(answer))
        request = HeartbeatRequest(group={"name": "g" * 20_000}).SerializeToString()
        assert begun.receive(prefixed(request))
        assert begun.sent.outlet.served == 100 + len(request)
        await rounds()
        assert begun.statuses == [GrpcStatus.OK]
        assert begun.sent.outlet.served == begun.sent.outlet.lingering == 0

    asyncio.run(scenario())


def test_a_request_that_is_too_large_ends_the_call() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(answer), GrpcLimits(other=10))
        begun.receive(prefixed(bytes(11)), is_last=False)
        assert begun.statuses == [GrpcStatus.RESOURCE_EXHAUSTED]
        assert begun.resets() == [ErrorCode.NO_ERROR]

    asyncio.run(scenario())


def test_what_follows_the_answer_is_dropped() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(answer))
        begun.served.end(GrpcStatus.DEADLINE_EXCEEDED)
        assert begun.receive(bytes(1000), is_last=False)
        assert begun.sent.outlet.partial == 0
        begun.served.end(GrpcStatus.OK)
        assert begun.statuses == [GrpcStatus.DEADLINE_EXCEEDED]

    asyncio.run(scenario())


def test_data_after_the_last_request_resets_the_call() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(wait))
        assert begun.receive(EMPTY)
        assert not begun.receive(EMPTY)
        assert begun.resets() == [ErrorCode.STREAM_CLOSED]
        assert begun.statuses == [GrpcStatus.CANCELLED]

    asyncio.run(scenario())


def test_a_call_that_is_cancelled_cancels_its_handler() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(wait))
        begun.receive(EMPTY)
        await rounds(2)
        begun.served.cancel()
        assert begun.served.call.is_cancelled
        assert begun.sent.outlet.lingering == 1
        assert begun.closed == [begun.served]
        await rounds(3)
        assert begun.sent.outlet.lingering == 0
        assert begun.statuses == [GrpcStatus.CANCELLED]
        assert begun.sent.frames() == []

    asyncio.run(scenario())


def test_a_future_of_others_is_not_cancelled() -> None:
    async def scenario() -> None:
        shared = asyncio.get_running_loop().create_future()
        begun = Begun(heartbeat(lambda *_: shared))
        begun.receive(EMPTY)
        begun.served.cancel()
        assert not shared.cancelled()
        assert begun.sent.outlet.lingering == 1
        shared.set_result(HeartbeatResponse())
        await rounds(2)
        assert begun.sent.outlet.lingering == 0
        assert begun.statuses == [GrpcStatus.CANCELLED]

    asyncio.run(scenario())


def test_a_stream_is_served_as_its_requests_arrive() -> None:
    async def scenario() -> None:
        begun = Begun(TELEMETRY)
        assert begun.served.is_endless
        content = prefixed(TelemetryCommand(status={"message": "m"}).SerializeToString())
        for _ in range(2):
            begun.receive(content, is_last=False)
            await rounds(3)
            assert (frames.DATA, 1, content) in begun.sent.frames()
        begun.receive(b"")
        await rounds(3)
        assert begun.statuses == [GrpcStatus.OK]

    asyncio.run(scenario())


def test_an_answer_that_waits_is_not_forgotten() -> None:
    async def scenario() -> None:
        begun = Begun(heartbeat(answer))
        begun.served.output.widen(-begun.served.output.window)
        begun.receive(EMPTY)
        assert begun.statuses == [GrpcStatus.OK]
        assert begun.closed == []
        begun.served.output.widen(1000)
        begun.sent.outlet.windows.resume(begun.served.output)
        begun.sent.frames()
        begun.served.note_moved()
        assert begun.closed == [begun.served]

    asyncio.run(scenario())


def test_which_calls_are_stuck() -> None:
    async def scenario() -> None:
        waiting = Begun(heartbeat(wait))
        assert waiting.served.is_stuck(1.0)  # Its request has not arrived.
        waiting.receive(EMPTY[:2], is_last=False, now=1.0)
        assert not waiting.served.is_stuck(1.0)
        assert waiting.served.is_stuck(2.0)
        waiting.receive(EMPTY[2:], now=3.0)
        assert not waiting.served.is_stuck(100.0)  # The handler may take as long as it needs.
        waiting.served.cancel()
        stream = Begun(TELEMETRY)
        assert not stream.served.is_stuck(100.0)  # The client need not send anything.
        stream.receive(EMPTY[:2], is_last=False)
        assert stream.served.is_stuck(100.0)
        stream.served.cancel()
        await rounds()

    asyncio.run(scenario())
