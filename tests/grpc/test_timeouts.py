"""Connections on which nothing happens end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frame_decoder import FrameDecoder
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.http2.header_blocks import HeaderBlocks
from mqlake.grpc.http2.sending import StreamOutput
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.served_calls import ServedCalls
from mqlake.grpc.server_state import ServerState
from mqlake.grpc.timeouts import Timeouts
from tests.grpc.outlets import Sent
from tests.grpc.raw_client import CALL
from tests.grpc.serving import METHODS
from tests.until import rounds

LIMITS = GrpcLimits(idle=100.0, request_time=50.0, handshake=10.0)


class Watched:
    """The timeouts of a connection that was opened at 0, and what they look at."""

    def __init__(self, limits: GrpcLimits = LIMITS) -> None:
        self.sent = Sent(limits)
        self.decoder, self.headers = FrameDecoder(), HeaderBlocks(1000)
        methods = {method.path: method for method in METHODS}
        loop = asyncio.get_running_loop()
        state = ServerState[GrpcConnection](loop, limits, methods, None)
        resets = Frequency(100, "resets")
        outlet = self.sent.outlet
        self.calls = ServedCalls(state, outlet, resets, lambda: ("p", "l"), list[int])
        self.timeouts = Timeouts(limits, self.decoder, self.headers, self.calls, outlet)

    def begin(self) -> None:
        """Receive the preface."""
        self.decoder.receive(frames.PREFACE, 0.0)
        assert self.decoder.next() is None


def run(scenario: Callable[[], None]) -> None:
    """Run a scenario on a loop."""

    async def main() -> None:
        scenario()
        await rounds()

    asyncio.run(main())


def test_who_does_not_begin_is_closed() -> None:
    def scenario() -> None:
        watched = Watched()
        assert watched.timeouts.fault(9.0) is None
        assert "has not begun as HTTP/2 within 10 s" in str(watched.timeouts.fault(11.0))
        watched.begin()
        assert watched.timeouts.fault(11.0) is None

    run(scenario)


def test_a_connection_without_calls_is_idle_after_a_while() -> None:
    def scenario() -> None:
        watched = Watched()
        watched.calls.note_begun(5.0)
        assert not watched.timeouts.is_idle(105.0)
        assert watched.timeouts.is_idle(106.0)
        watched.calls.begin(1, dict(CALL), 0, 5.0)
        assert not watched.timeouts.is_idle(106.0)

    run(scenario)


def test_a_client_with_calls_is_asked_whether_it_is_alive() -> None:
    def scenario() -> None:
        watched = Watched()
        watched.begin()
        watched.timeouts.ping(100.0)
        assert watched.sent.frames() == []
        watched.timeouts.ping(101.0)
        watched.timeouts.ping(102.0)
        assert watched.sent.frames() == [(frames.PING, 0, bytes(8))]
        assert watched.timeouts.fault(130.0) is None
        assert watched.timeouts.fault(131.0) == "silent for 130 s"
        watched.timeouts.note_received(131.0)
        assert watched.timeouts.fault(131.0) is None

    run(scenario)


def test_a_frame_must_continue() -> None:
    def scenario() -> None:
        watched = Watched()
        watched.begin()
        watched.decoder.receive(b"\0", 1.0)
        assert watched.decoder.next() is None
        assert watched.timeouts.fault(51.0) is None
        assert "50 s ago is incomplete" in str(watched.timeouts.fault(52.0))
        watched.sent.outlet.set_choked(True)  # Nothing is read: the rest may have been sent.
        assert watched.timeouts.fault(52.0) is None

    run(scenario)


def test_a_block_of_headers_must_continue() -> None:
    def scenario() -> None:
        watched = Watched()
        watched.begin()
        watched.headers.begin(0, 1, b"", 1.0)
        assert watched.timeouts.fault(51.0) is None
        assert "50 s ago is incomplete" in str(watched.timeouts.fault(52.0))

    run(scenario)


def test_the_window_of_the_connection_must_open() -> None:
    def scenario() -> None:
        watched = Watched()
        watched.begin()
        outlet = watched.sent.outlet
        outlet.windows.stop()
        outlet.send_data(StreamOutput(1, 10), b"1")
        began = outlet.windows.moved
        assert watched.timeouts.fault(began + 50.0) is None
        assert "has not let anything be sent" in str(watched.timeouts.fault(began + 51.0))

    run(scenario)


def test_calls_must_continue() -> None:
    def scenario() -> None:
        watched = Watched()
        watched.calls.begin(1, dict(CALL), 0, 5.0)
        watched.timeouts.reset_stuck_calls(55.0)
        assert watched.calls.count == 1
        watched.timeouts.reset_stuck_calls(56.0)
        assert watched.calls.count == 0

    run(scenario)


def test_limits_of_0_are_none() -> None:
    def scenario() -> None:
        watched = Watched(GrpcLimits(idle=0.0, request_time=0.0))
        watched.begin()
        watched.decoder.receive(b"\0", 1.0)
        assert watched.decoder.next() is None
        watched.calls.begin(1, dict(CALL), 0, 5.0)
        watched.timeouts.reset_stuck_calls(1e6)
        watched.timeouts.ping(1e6)
        assert watched.calls.count == 1
        assert watched.timeouts.fault(1e6) is None
        assert not watched.timeouts.is_idle(1e6)
        assert watched.sent.frames() == []

    run(scenario)
