"""What a client's frames do to the streams of its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from mqlake.grpc.client_frames import ClientFrames
from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.served_calls import ServedCalls
from mqlake.grpc.server_state import ServerState
from tests.grpc.outlets import Sent
from tests.grpc.raw_client import call_of
from tests.grpc.serving import METHODS
from tests.until import rounds

END = frames.END_HEADERS | frames.END_STREAM


class Served:
    """The frames of a connection, and the calls that they begin."""

    def __init__(self, limits: GrpcLimits | None = None) -> None:
        limits = limits or GrpcLimits()
        self.sent = Sent(limits)
        self.emptied = 0
        by_path = {method.path: method for method in METHODS}
        loop = asyncio.get_running_loop()
        state = ServerState[GrpcConnection](loop, limits, by_path, None)
        resets = Frequency(limits.resets, "reset calls")
        outlet = self.sent.outlet
        self.calls = ServedCalls(state, outlet, resets, lambda: ("p", "l"), self._note_empty)
        self.frames = ClientFrames(outlet, self.calls, resets, limits)

    def _note_empty(self) -> None:
        self.emptied += 1

    def receive(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        """Receive a frame."""
        self.frames.serve((kind, flags, stream, payload), 1.0)

    def begin(self) -> None:
        """Receive the client's settings."""
        self.receive(frames.SETTINGS, 0, 0)
        assert self.sent.frames() == [(frames.SETTINGS, 0, b"")]

    def call(self, stream: int, method: str = "Telemetry", **fields: str) -> None:
        """Receive the headers of a call."""
        self.receive(frames.HEADERS, frames.END_HEADERS, stream, call_of(method, **fields))


def run(scenario: Callable[[], None]) -> None:
    """Run a scenario on a loop."""

    async def main() -> None:
        scenario()
        await rounds()

    asyncio.run(main())


def test_the_server_begins_with_its_settings() -> None:
    def scenario() -> None:
        served = Served(GrpcLimits(calls=7, headers=5000))
        served.frames.begin()
        (kind, _, payload), (second, _, _) = served.sent.frames()
        assert (kind, second) == (frames.SETTINGS, frames.WINDOW_UPDATE)
        found = dict(frames.read_settings(payload))
        assert found[frames.MAX_CONCURRENT_STREAMS] == 7
        assert found[frames.MAX_HEADER_LIST_SIZE] == 5000

    run(scenario)


def test_a_call_is_known_by_its_stream_until_it_ends() -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        served.call(5)
        assert list(served.calls.by_stream) == [5]
        assert (served.frames.last, served.calls.last) == (5, 1.0)
        assert not served.calls.has_short
        served.receive(frames.RST_STREAM, 0, 5, bytes(4))
        assert not served.calls.by_stream
        assert served.emptied == 1

    run(scenario)


def test_a_call_knows_both_ends_of_its_connection() -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        served.call(1, grpc_timeout="2S")
        call = served.calls.by_stream[1].call
        assert (call.peer, call.local, call.authority) == ("p", "l", "test:1")
        assert call.deadline == 3.0
        served.calls.cancel_all()
        assert served.calls.by_stream == {}

    run(scenario)


def test_more_calls_than_allowed_are_refused() -> None:
    def scenario() -> None:
        served = Served(GrpcLimits(calls=1))
        served.begin()
        for stream in (1, 3):
            served.call(stream)
        refused = frames.RST_STREAM, 3, ErrorCode.REFUSED_STREAM.to_bytes(4)
        assert served.sent.frames() == [refused]
        served.calls.cancel_all()

    run(scenario)


def test_a_connection_that_ends_refuses_new_calls() -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        served.frames.refuse_calls()
        served.call(1)
        assert [kind for kind, _, _ in served.sent.frames()] == [frames.RST_STREAM]
        assert served.frames.last == 1

    run(scenario)


@pytest.mark.parametrize(
    ("method", "fields", "text"),
    [
        ("Unknown", {}, b"there is no method"),
        ("Telemetry", {"content_type": "text/html"}, b"415"),
        ("Telemetry", {"grpc_timeout": "1"}, b"grpc-timeout is"),
    ],
)
def test_what_cannot_be_called_is_refused(method: str, fields: dict[str, str], text: bytes) -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        served.call(1, method, **fields)
        found = served.sent.frames()
        assert text in b"".join(payload for _, _, payload in found)
        assert found[-1] == (frames.RST_STREAM, 1, ErrorCode.NO_ERROR.to_bytes(4))
        assert not served.calls.by_stream

    run(scenario)


def test_a_changed_window_is_that_of_all_streams() -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        served.call(1)
        payload = frames.INITIAL_WINDOW_SIZE.to_bytes(2) + (10).to_bytes(4)
        served.receive(frames.SETTINGS, 0, 0, payload)
        served.call(3)
        assert [one.output.window for one in served.calls.by_stream.values()] == [10, 10]
        served.receive(frames.WINDOW_UPDATE, 0, 3, (5).to_bytes(4))
        assert served.calls.by_stream[3].output.window == 15
        served.calls.cancel_all()

    run(scenario)


def test_a_ping_is_answered_once() -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        served.receive(frames.PING, 0, 0, b"12345678")
        served.receive(frames.PING, frames.ACK, 0, b"12345678")
        assert served.sent.frames() == [(frames.PING, 0, b"12345678")]

    run(scenario)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ((frames.HEADERS, END, 2, call_of("Telemetry")), ErrorCode.PROTOCOL_ERROR),
        ((frames.DATA, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
        ((frames.RST_STREAM, 0, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        ((frames.RST_STREAM, 0, 1, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
        ((frames.WINDOW_UPDATE, 0, 0, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        ((frames.WINDOW_UPDATE, 0, 0, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
        ((frames.CONTINUATION, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
        ((frames.PUSH_PROMISE, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_what_breaks_the_rules_is_an_error(
    frame: tuple[int, int, int, bytes], code: ErrorCode
) -> None:
    def scenario() -> None:
        served = Served()
        served.begin()
        with pytest.raises(Http2Error) as caught:
            served.receive(*frame)
        assert caught.value.code is code

    run(scenario)


def test_nothing_comes_before_the_settings() -> None:
    def scenario() -> None:
        with pytest.raises(Http2Error, match="not SETTINGS"):
            Served().receive(frames.PING, 0, 0, bytes(8))

    run(scenario)
