"""The responses of a call become frames."""

from __future__ import annotations

import asyncio

from mqlake.grpc.http2 import frames
from mqlake.grpc.messages import HeartbeatResponse, Status
from mqlake.grpc.response_stream import ResponseStream
from mqlake.grpc.responses import prefixed
from mqlake.grpc.status import GrpcStatus
from tests.grpc.outlets import Sent
from tests.until import rounds

RESPONSE = HeartbeatResponse(status=Status(message="m" * 100))
MESSAGE = RESPONSE.SerializeToString()
ONE = [frames.HEADERS, frames.DATA, frames.HEADERS]


def kinds(sent: Sent) -> list[int]:
    """Return the types of the frames that may be sent now."""
    return [kind for kind, _, _ in sent.frames()]


def test_the_only_response_is_sent_with_its_end() -> None:
    async def scenario() -> None:
        sent = Sent()
        responses = ResponseStream(sent.outlet, 1)
        responses.send_only(RESPONSE)
        assert responses.sent == len(MESSAGE)
        found = sent.frames()
        assert [kind for kind, _, _ in found] == ONE
        assert found[1] == (frames.DATA, 1, prefixed(MESSAGE))

    asyncio.run(scenario())


def test_an_only_response_waits_for_the_window() -> None:
    async def scenario() -> None:
        sent = Sent()
        sent.outlet.windows.set_first_window(10)
        responses = ResponseStream(sent.outlet, 1)
        responses.send_only(RESPONSE)
        assert kinds(sent) == [frames.HEADERS, frames.DATA]
        assert responses.output.widen(1000)
        sent.outlet.windows.resume(responses.output)
        assert kinds(sent) == [frames.DATA, frames.HEADERS]

    asyncio.run(scenario())


def test_several_responses_share_headers_and_end() -> None:
    async def scenario() -> None:
        sent = Sent()
        responses = ResponseStream(sent.outlet, 1)
        for _ in range(2):
            responses.send(RESPONSE)
        assert responses.sent == 2 * len(MESSAGE)
        found = sent.frames()
        assert found[0][0] == frames.HEADERS
        assert b"".join(payload for _, _, payload in found[1:]) == 2 * prefixed(MESSAGE)
        responses.end(GrpcStatus.OK)
        assert kinds(sent) == [frames.HEADERS]

    asyncio.run(scenario())


def test_a_call_without_responses_has_one_frame() -> None:
    async def scenario() -> None:
        sent = Sent()
        ResponseStream(sent.outlet, 1).end(GrpcStatus.NOT_FOUND, "no such thing")
        ((kind, _, payload),) = sent.frames()
        assert kind == frames.HEADERS
        assert b"application/grpc" in payload
        assert b"no such thing" in payload

    asyncio.run(scenario())


def test_a_handler_waits_while_much_waits_for_the_client() -> None:
    async def scenario() -> None:
        sent = Sent()
        sent.outlet.windows.set_first_window(0)
        responses = ResponseStream(sent.outlet, 1)
        await responses.drain()
        responses.send(HeartbeatResponse(status=Status(message="m" * 70_000)))
        waiting = asyncio.ensure_future(responses.drain())
        await rounds(3)
        responses.note_moved()  # Too little was sent.
        await rounds(3)
        assert not waiting.done()
        assert responses.output.widen(10_000)
        sent.outlet.windows.resume(responses.output)
        sent.frames()
        responses.note_moved()
        await waiting

    asyncio.run(scenario())


def test_a_handler_waits_for_a_client_that_does_not_read() -> None:
    async def scenario() -> None:
        sent = Sent()
        responses = ResponseStream(sent.outlet, 1)
        sent.outlet.set_choked(True)
        waiting = asyncio.ensure_future(responses.drain())
        await rounds(3)
        assert not waiting.done()
        sent.outlet.set_choked(False)
        responses.note_moved()
        await waiting

    asyncio.run(scenario())
