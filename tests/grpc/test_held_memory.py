"""What a connection holds is counted, and weighs more the longer it stands still."""

from __future__ import annotations

import asyncio

from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.held_memory import HeldMemory
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frame_decoder import FrameDecoder
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.http2.header_blocks import HeaderBlocks
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.served_calls import ServedCalls
from mqlake.grpc.server_state import ServerState
from tests.grpc.outlets import Sent


class Held:
    """The memory of a connection that has begun, and what is measured."""

    def __init__(self) -> None:
        loop, limits = asyncio.get_running_loop(), GrpcLimits()
        state = ServerState[GrpcConnection](loop, limits, {}, None)
        self.outlet = Sent(limits).outlet
        self.decoder, self.headers = FrameDecoder(), HeaderBlocks(1000)
        self.decoder.receive(frames.PREFACE, 0.0)
        assert self.decoder.next() is None
        resets = Frequency(1, "resets")
        calls = ServedCalls(state, self.outlet, resets, lambda: ("p", "l"), list[int])
        self.memory = HeldMemory(self.decoder, self.headers, calls, self.outlet)


def test_everything_is_counted_once() -> None:
    async def scenario() -> None:
        held = Held()
        assert held.memory.size(0) == 0
        held.decoder.receive(bytes(5), 1.0)
        assert held.memory.size(0) == 5
        assert held.decoder.next() is None
        assert held.memory.size(0) == 5
        held.headers.begin(0, 1, bytes(70), 1.0)
        held.outlet.count_partial(1000)
        held.outlet.count_served(20_000)
        held.outlet.grant(1, 1)
        assert held.memory.size(300_000) == 5 + 70 + 1000 + 20_000 + 13 + 300_000

    asyncio.run(scenario())


def test_what_has_moved_lately_is_not_greedy() -> None:
    async def scenario() -> None:
        held = Held()
        held.headers.begin(0, 1, bytes(70), 1.0)
        assert held.memory.greed(1.4, 0.5, 0) == 0
        assert 0 < held.memory.greed(2.0, 0.5, 0) < held.memory.greed(3.0, 0.5, 0)

    asyncio.run(scenario())


def test_what_a_client_does_not_read_is_greedy() -> None:
    async def scenario() -> None:
        held = Held()
        assert held.memory.greed(100.0, 0.5, 1000) == 0
        held.outlet.set_choked(True)
        held.memory.note_choked(1.0)
        assert held.memory.greed(1.4, 0.5, 1000) == 0
        assert held.memory.greed(2.0, 0.5, 1000) > 0

    asyncio.run(scenario())


def test_who_is_not_read_cannot_continue() -> None:
    async def scenario() -> None:
        held = Held()
        held.headers.begin(0, 1, bytes(70), 1.0)
        held.memory.hold_back()
        assert held.memory.greed(100.0, 0.5, 0) == 0
        assert held.memory.greed(100.0, 0.0, 0) > 0  # Memory must be freed at once.
        held.memory.go_on(100.0)
        assert not held.memory.is_held_back
        assert held.memory.greed(100.0, 0.5, 0) > 0

    asyncio.run(scenario())
