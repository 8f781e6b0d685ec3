"""One connection: bytes in, calls to their handlers, frames out in one write for each round of the
loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, cast

from mqlake.grpc.client_frames import ClientFrames
from mqlake.grpc.held_memory import HeldMemory
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frame_decoder import FrameDecoder
from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.served_calls import ServedCalls
from mqlake.grpc.server_state import ServerState
from mqlake.grpc.timeouts import Timeouts
from mqlake.remoting.tls.layer import TlsLayer

_log: Final = logging.getLogger("mqlake.grpc")

_NOWHERE: Final = ("unknown", 0)
_LARGE: Final = 1 << 15
"""Bytes that are written before more is served."""
_LEAVING: Final = 1.0
"""Seconds between the announcement that the connection ends and its end."""
_CLOSING: Final = 10.0
"""Seconds within which data that was written before a close must reach the other side."""


class GrpcConnection(asyncio.BufferedProtocol):
    """The other side of a connection.

    Attributes:
        address: "ip:port" of the client.
        local: "ip:port" that it is connected to.
        is_relayed: whether a proxy has yet to name its client (`ProxyDetection`).
        held: bytes of memory that are counted as held for it.
    """

    def __init__(self, state: ServerState[GrpcConnection]) -> None:
        self.address = self.local = "not connected"
        self.is_relayed = False
        self.held = 0
        self._state, self._most_unread = state, state.limits.write_buffer
        self._outlet = Outlet(state.flushes, state.limits, self.flush, self._note_moved)
        resets = Frequency(state.limits.resets, "reset calls")
        self._calls = ServedCalls(state, self._outlet, resets, self._ends, self._note_no_calls)
        self._frames = ClientFrames(self._outlet, self._calls, resets, state.limits)
        self._decoder, headers = FrameDecoder(), self._frames.headers
        self._memory = HeldMemory(self._decoder, headers, self._calls, self._outlet)
        self._timeouts = Timeouts(state.limits, self._decoder, headers, self._calls, self._outlet)
        self._transport: asyncio.Transport | None = None
        self._tls: TlsLayer | None = None
        self._is_open = self._is_going_away = False
        self._is_waiting = False

    def _ends(self) -> tuple[str, str]:
        return self.address, self.local

    @property
    def is_closed(self) -> bool:
        """Return whether nothing that is sent now would arrive."""
        return not self._is_open

    @property
    def calls(self) -> int:
        """Return how many calls are served, with those whose handlers have yet to notice that they
        are cancelled.
        """
        return self._calls.count

    @property
    def has_short_calls(self) -> bool:
        """Return whether calls are served that end by themselves."""
        return self._calls.has_short

    # Callbacks of asyncio

    def secure(self, layer: TlsLayer) -> None:
        """Read and write through TLS from now on."""
        self._transport = self._tls = layer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Data that the system does not accept at once is noticed at once.
        self._transport.set_write_buffer_limits(high=0)
        self.address = _address(transport.get_extra_info("peername") or _NOWHERE)
        self.local = _address(transport.get_extra_info("sockname") or _NOWHERE)
        now = self._state.loop.time()
        self._timeouts.note_received(now)
        self._calls.note_begun(now)
        self._is_open = True
        if self._state.is_closed:  # It was accepted before the server stopped listening.
            self._transport.abort()
        elif (refusal := self._state.opened(self)) is not None:
            self.evict(f"too many connections are open: {refusal}")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer for the next bytes: all connections share one."""
        return self._state.room()

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._state.buffer[:nbytes])
        now = self._state.loop.time()
        self._timeouts.note_received(now)
        is_new = not self._decoder.has_preface
        try:
            has_more = self._decoder.receive(data, now)
        except Http2Error as error:  # It is no client of HTTP/2: it would not understand why.
            self.evict(str(error))
            return
        if not has_more:
            self._count()
            return
        if is_new:
            self._frames.begin()
        if self._is_open and self._state.turns.take(self) and self._transport is not None:
            self._is_waiting = True
            self._transport.pause_reading()
            self._count()

    def eof_received(self) -> None:
        """Let the transport close: a client that sends nothing more waits for nothing."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._is_open = False
        self._release()
        self._state.lost(self)

    def pause_writing(self) -> None:
        self._outlet.set_choked(True)
        self._memory.note_choked(self._state.loop.time())
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._outlet.set_choked(False)
        self.flush()
        if self._outlet.is_choked:
            return
        self._calls.note_all_moved()
        if self._is_open and not self._is_waiting and self._decoder.has_unread:
            self._is_waiting = True
            self._state.turns.wait(self)
        elif not self._is_waiting:
            self._read_on()

    # Reading (a `TurnTaker` of `Turns`)

    def serve(self, until: float) -> bool:
        """Serve frames until a time of `perf_counter`; return whether there are more."""
        self._outlet.begin_serving()
        try:
            has_more = self._serve_frames(until)
        except Http2Error as error:
            self._fail(error.code, str(error))
            has_more = False
        except Exception as error:  # noqa: BLE001 (other connections must be served on)
            _log.error("%s: a frame could not be served", self.address, exc_info=error)
            self._fail(ErrorCode.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
            has_more = False
        finally:
            self._outlet.end_serving()
        self.flush()
        if not has_more:
            self._is_waiting = False
            if not self._decoder.has_unread:
                self._read_on()
        return has_more

    def _serve_frames(self, until: float) -> bool:
        now, outlet, decoder = self._timeouts.received, self._outlet, self._decoder
        while (frame := decoder.next()) is not None:
            self._frames.serve(frame, now)
            if not self._is_open:
                return False
            if outlet.is_choked and decoder.unread:
                return False  # The rest is served once the client reads.
            if outlet.size > _LARGE:
                self.flush()
            if perf_counter() >= until:
                return True
        return False

    def _read_on(self) -> None:
        if self._is_open and not self._memory.is_held_back and not self._outlet.is_choked:
            assert self._transport is not None
            self._transport.resume_reading()

    # Writing

    def flush(self) -> None:
        """Write what was sent in this round of the loop, if the client reads."""
        if not self._is_open or self._transport is None:
            return
        while not self._outlet.is_choked:
            data = self._outlet.take()
            if not data:
                break
            self._transport.write(data)
        outlet, most = self._outlet, self._most_unread
        if self._unsent + outlet.size + outlet.windows.waiting > most:
            self.evict(f"it does not read: {most} bytes wait for it")
        else:
            self._count()

    def _note_moved(self, numbers: list[int]) -> None:
        self._calls.note_moved(numbers)

    @property
    def _unsent(self) -> int:
        """Return how many bytes were written and not yet accepted by the system."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    # Memory (a `Holder` of `MemoryBudget`)

    def _count(self) -> None:
        """Report to the budget what is held now."""
        size = self.measure()
        if size != self.held:
            self._state.budget.hold(self, size)

    def measure(self) -> int:
        """Return the bytes that are held for the client."""
        if not self._is_open:
            return 0
        size = self._memory.size(self._unsent if self._outlet.is_choked else 0)
        return size if self._tls is None else size + self._tls.held

    def greed(self, now: float, grace: float) -> float:
        """Return how much is held for the client, times the cube of how long it has stood still."""
        return self._memory.greed(now, grace, self._unsent)

    def hold_back(self) -> None:
        """Stop reading."""
        self._memory.hold_back()
        if self._is_open and self._transport is not None:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Resume reading where it was stopped."""
        self._memory.go_on(self._state.loop.time())
        if not self._is_waiting and not self._decoder.has_unread:
            self._read_on()

    def evict(self, reason: str) -> None:
        """Close the connection, and release what it holds."""
        if not self._is_open or self._transport is None:
            return
        self._state.complaints.say(self.address, reason)
        self._is_open = False
        self._release()
        self._transport.abort()

    # The end

    def check(self, now: float) -> None:
        """Close the connection if it is silent, or begins requests that it does not continue."""
        fault = self._timeouts.fault(now)
        if fault is not None:
            self.evict(fault)
        elif self._timeouts.is_idle(now):
            self.go_away()
        else:
            self._timeouts.ping(now)
        self._timeouts.reset_stuck_calls(now)

    def go_away(self) -> None:
        """Tell the client to call elsewhere; what it has begun is still served."""
        if self._is_open and not self._is_going_away:
            self._is_going_away = True
            self._frames.refuse_calls()
            self._outlet.write(frames.go_away(self._frames.last, ErrorCode.NO_ERROR))
            if not self._calls.by_stream:
                self._close_later()

    def _note_no_calls(self) -> None:
        if self._is_going_away:
            self._close_later()

    def _close_later(self) -> None:
        """Close the connection once the client can have read that it is to go away: what it has
        sent before is refused until then, and can be sent elsewhere.
        """
        self._state.loop.call_later(_LEAVING, self.close)

    def end_calls(self) -> None:
        """End all calls: the server stops."""
        self._calls.end_all()

    def _fail(self, code: ErrorCode, reason: str) -> None:
        """Tell the client why nothing more can be read, and close."""
        self._state.complaints.say(self.address, reason)
        self._outlet.windows.stop()
        self._outlet.write(frames.go_away(self._frames.last, code, reason))
        self.close()

    def close(self) -> None:
        """Close the connection; data that was sent before is still written."""
        if not self._is_open or self._transport is None:
            return
        self.flush()
        if self._outlet.size:
            self._transport.write(self._outlet.take())
        self._is_open = False
        self._release()
        self._transport.close()
        self._state.loop.call_later(_CLOSING, self._transport.abort)

    def _release(self) -> None:
        self._decoder.clear()
        self._outlet.windows.stop()
        self._outlet.clear()
        self._calls.cancel_all()


def _address(name: Sequence[Any]) -> str:
    host, port = name[:2]  # An IPv6 address has two more.
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
