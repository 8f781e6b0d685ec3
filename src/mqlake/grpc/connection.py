"""One connection: frames in, calls to their handlers, frames out in one write for each loop
round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, cast

from mqlake.grpc import responses
from mqlake.grpc.call import Call
from mqlake.grpc.headers_of_call import CallHeaders, CallRefusedError, timeout_of
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.http2.headers import HeaderDecoder
from mqlake.grpc.http2.sending import LARGEST_FRAME
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.served_call import WINDOW, ServedCall
from mqlake.grpc.server_state import ServerState
from mqlake.grpc.status import GrpcStatus
from mqlake.remoting.greed import REQUEST, greed_of, greed_of_requests
from mqlake.remoting.tls.layer import TlsLayer

_log: Final = logging.getLogger("mqlake.grpc")

_NOWHERE: Final = ("unknown", 0)
_WINDOW: Final = 1 << 30
"""Bytes that a client may send before more is granted; the memory budget restricts it before."""
_TURN: Final = 0.002
"""Seconds of one round of the loop in which calls are cancelled."""
_LARGE: Final = 1 << 15
"""Bytes that are written before more is served."""
_CONTINUATIONS: Final = 16
"""Frames of one block of headers."""
_FRAMES_OF_CALL: Final = 4
"""Frames without a call that each call allows: clients open windows for what they receive."""
_LEAVING: Final = 1.0
"""Seconds between the announcement that the connection ends and its end."""
_CLOSING: Final = 10.0
"""Seconds within which data that was written before a close must reach the other side."""
_SILENT: Final = 30.0
"""Seconds within which a client that was asked whether it is alive must have sent something."""


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
        self._state, self._limits = state, state.limits
        self._outlet = Outlet(state.flushes, state.limits, self.flush, self._note_moved)
        self._transport: asyncio.Transport | None = None
        self._tls: TlsLayer | None = None
        self._is_open = False
        self._decoder = HeaderDecoder(state.limits.headers)
        self._resets = Frequency(state.limits.resets, "reset calls")
        self._idle_frames = Frequency(state.limits.idle_frames, "frames without a call")
        self._data = b""
        self._at = 0
        self._rest = bytearray()
        self._need = len(frames.PREFACE)
        self._has_preface = self._has_settings = False
        self._streams: dict[int, ServedCall] = {}
        self._last = 0
        self._is_going_away = False
        self._window = _WINDOW
        self._block: bytearray | None = None
        self._block_number = self._block_flags = self._block_frames = 0
        self._moved = self._choked_at = self._rest_began = self._block_began = 0.0
        self._now = self._last_received = self._last_call = 0.0
        self._has_pinged = False
        self._is_waiting = self._is_held_back = False

    # Calls

    @property
    def is_closed(self) -> bool:
        """Return whether nothing that is sent now would arrive."""
        return not self._is_open

    @property
    def calls(self) -> int:
        """Return how many calls are served, with those whose handlers have yet to notice that they
        are cancelled.
        """
        return len(self._streams) + self._outlet.lingering

    def _forget(self, served: ServedCall) -> None:
        """Forget a call that has ended."""
        if self._streams.pop(served.output.number, None) is None:
            return
        self._outlet.windows.drop(served.output)
        if served.is_answered:
            self._resets.allow(1)
        if served.call.deadline is not None:
            self._state.forget_deadline(served, served.call.deadline)
        if not self._streams:
            self._last_call = self._state.loop.time()
            if self._is_going_away:
                self._close_later()

    def _cancel_calls(self) -> None:
        """Cancel all calls, some in each round of the loop."""
        until = perf_counter() + _TURN
        while self._streams:
            next(iter(self._streams.values())).cancel()
            if perf_counter() >= until:
                self._state.loop.call_soon(self._cancel_calls)
                return

    def _note_moved(self, numbers: list[int]) -> None:
        """Let calls continue that waited until something was sent."""
        for number in numbers:
            served = self._streams.get(number)
            if served is not None:
                served.note_moved()

    # Frames of the client

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
            if not self._data:
                self._read_on()
        return has_more

    def _serve_frames(self, until: float) -> bool:
        data, at, end = self._data, self._at, len(self._data)
        unpack = frames.HEAD.unpack_from
        while end - at >= frames.HEAD.size:
            start, flags, stream = unpack(data, at)
            begin, size = at + 9, start >> 8
            if size > LARGEST_FRAME:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
            if begin + size > end:
                self._need = 9 + size
                break
            at = begin + size
            self._take(start & 0xFF, flags, stream & frames.STREAM_MASK, data[begin:at])
            if not self._is_open:
                return False
            if self._outlet.is_choked and at < end:
                self._at = at  # It is served on once the client reads.
                return False
            if self._outlet.size > _LARGE:
                self.flush()
            if perf_counter() >= until:
                self._at = at
                return True
        else:
            self._need = frames.HEAD.size
        self._rest += data[at:]
        self._rest_began = self._now
        self._data, self._at = b"", 0
        return False

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != frames.CONTINUATION:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a block of headers is not complete")
        if not self._has_settings and kind != frames.SETTINGS:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if kind == frames.DATA:
            self._take_data(flags, number, payload)
        elif kind == frames.HEADERS:
            self._take_headers(flags, number, payload)
        elif kind == frames.WINDOW_UPDATE:
            self._take_window_update(number, payload)
        elif kind == frames.CONTINUATION:
            self._take_continuation(flags, number, payload)
        else:
            self._idle_frames.note(self._now)
            self._take_other(kind, flags, number, payload)

    def _take_other(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == frames.RST_STREAM:
            self._take_reset(number, payload)
        elif kind == frames.SETTINGS:
            self._take_settings(flags, number, payload)
        elif kind == frames.PING:
            _check(len(payload) == 8 and not number, f"a PING frame of {len(payload)} bytes")
            if not flags & frames.ACK:
                self._outlet.write(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif kind == frames.PUSH_PROMISE:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a client has sent PUSH_PROMISE")
        # Nothing follows from PRIORITY, GOAWAY and frames of other types.

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        size = len(payload)
        self._window -= size
        if self._window < _WINDOW // 2:
            self._outlet.write(frames.window_update(0, _WINDOW - self._window))
            self._window = _WINDOW
        is_last = bool(flags & frames.END_STREAM)
        if flags & frames.PADDED:
            payload = frames.without_padding(flags, payload)
        if not payload and not is_last:
            self._idle_frames.note(self._now)
        served = self._streams.get(number)
        if served is not None:
            if not served.receive(payload, size, self._now, is_last=is_last):
                self._resets.note(self._now)
        else:  # The client cannot know yet that a call has ended.
            self._idle_frames.note(self._now)
            _check(0 < number <= self._last and number & 1 == 1, f"data for stream {number}")

    def _take_headers(self, flags: int, number: int, payload: bytes) -> None:
        if flags & (frames.PADDED | frames.HAS_PRIORITY):
            payload = frames.without_padding(flags, payload, has_priority=True)
        if flags & frames.END_HEADERS:
            self._take_block(flags, number, payload)
        else:
            self._check_size(len(payload))
            self._block, self._block_began = bytearray(payload), self._now
            self._block_number, self._block_flags, self._block_frames = number, flags, 1

    def _take_continuation(self, flags: int, number: int, payload: bytes) -> None:
        block = self._block
        if block is None or number != self._block_number:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a CONTINUATION frame that continues none")
        block += payload
        self._block_frames += 1
        self._check_size(len(block))
        if self._block_frames > _CONTINUATIONS:
            reason = f"headers in more than {_CONTINUATIONS} frames"
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, reason)
        if flags & frames.END_HEADERS:
            self._block = None
            self._take_block(self._block_flags, number, bytes(block))

    def _check_size(self, size: int) -> None:
        if size > self._limits.headers:
            reason = f"headers of {size} bytes: the limit is {self._limits.headers}"
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, reason)

    def _take_block(self, flags: int, number: int, block: bytes) -> None:
        self._check_size(len(block))
        fields = self._decoder.decode(block)
        is_last = bool(flags & frames.END_STREAM)
        _check(number & 1 == 1, f"headers for stream {number}")
        if number <= self._last:  # What follows the requests.
            served = self._streams.get(number)
            if served is not None:
                _check(is_last, "headers in the middle of a stream")
                if not served.receive(b"", 0, self._now, is_last=True):
                    self._resets.note(self._now)
            else:
                self._idle_frames.note(self._now)
            return
        self._last, self._last_call = number, self._now
        if self._is_going_away or self.calls >= self._limits.calls:
            self._idle_frames.note(self._now)
            self._outlet.write(frames.reset(number, ErrorCode.REFUSED_STREAM))
        elif fields is None:
            reason = f"the headers have more than {self._limits.headers} bytes"
            self._refuse(number, responses.refusal(number, 431, reason), is_last=is_last)
        else:
            self._open(number, fields, is_last=is_last)

    def _open(self, number: int, fields: dict[str, str], *, is_last: bool) -> None:
        """Begin a call."""
        try:
            found = CallHeaders(fields)
            timeout = timeout_of(fields)
        except CallRefusedError as error:
            answer = responses.refusal(number, error.status, str(error))
            self._refuse(number, answer, is_last=is_last)
            return
        method = self._state.methods.get(found.path)
        if method is None:
            text = f"there is no method {found.path[:200]}"
            answer = responses.trailers(number, GrpcStatus.UNIMPLEMENTED, text, is_first=True)
            self._refuse(number, answer, is_last=is_last)
            return
        call = Call(
            method.name,
            fields,
            peer=self.address,
            local=self.local,
            authority=found.authority,
            deadline=None if timeout is None else self._now + timeout,
            now=self._state.loop.time,
        )
        served = ServedCall(self._outlet, number, method, call, self._forget)
        self._streams[number] = served
        self._idle_frames.allow(_FRAMES_OF_CALL)
        if call.deadline is not None:
            self._state.note_deadline(served, call.deadline)
        served.begin(self._now, self._decoder.decoded)
        if is_last:
            served.receive(b"", 0, self._now, is_last=True)

    def _refuse(self, number: int, answer: bytes, *, is_last: bool) -> None:
        self._idle_frames.note(self._now)
        self._outlet.write(answer)
        if not is_last:
            self._outlet.write(frames.reset(number, ErrorCode.NO_ERROR))

    def _take_window_update(self, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(
                ErrorCode.FRAME_SIZE_ERROR, f"a WINDOW_UPDATE frame of {len(payload)} bytes"
            )
        size = int.from_bytes(payload) & frames.STREAM_MASK
        _check(size > 0, "a WINDOW_UPDATE of 0 bytes")
        self._idle_frames.note(self._now)
        if number == 0:
            self._outlet.windows.widen(size)
            return
        served = self._streams.get(number)
        if served is None:
            _check(number <= self._last, f"a window for stream {number}")
        elif not served.output.widen(size):
            self._resets.note(self._now)
            served.reset(ErrorCode.FLOW_CONTROL_ERROR)
        else:
            self._outlet.windows.resume(served.output)

    def _take_reset(self, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(
                ErrorCode.FRAME_SIZE_ERROR, f"a RST_STREAM frame of {len(payload)} bytes"
            )
        _check(0 < number <= self._last, f"a reset of stream {number}")
        self._resets.note(self._now)
        served = self._streams.get(number)
        if served is not None:
            served.cancel()

    def _take_settings(self, flags: int, number: int, payload: bytes) -> None:
        _check(not number, "a SETTINGS frame for a stream")
        if flags & frames.ACK:
            _check(not payload, "an acknowledgement with settings")
            return
        found = dict(frames.read_settings(payload))
        windows = self._outlet.windows
        windows.set_largest(found.get(frames.MAX_FRAME_SIZE, windows.largest))
        first = found.get(frames.INITIAL_WINDOW_SIZE, windows.first_window)
        if first != windows.first_window:
            self._set_first_window(first)
        self._has_settings = True
        self._outlet.write(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _set_first_window(self, size: int) -> None:
        """Change the windows of all streams."""
        self._resets.note(self._now)  # It takes as long as many calls.
        grown = self._outlet.windows.set_first_window(size)
        for served in self._streams.values():
            if not served.output.widen(grown):
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
            self._outlet.windows.resume(served.output)

    # Memory (a `Holder` of `MemoryBudget`)

    def measure(self) -> int:
        """Return the bytes that are held for the client."""
        if not self._is_open:
            return 0
        size = (
            len(self._rest)
            + len(self._block or b"")
            + len(self._data)
            - self._at
            + self._outlet.size
            + self._outlet.windows.waiting
        )
        size += self.calls * REQUEST + self._outlet.partial + self._outlet.served
        if self._outlet.is_choked and self._transport is not None:
            size += self._transport.get_write_buffer_size()
        if self._tls is not None:
            size += self._tls.held
        return size

    def greed(self, now: float, grace: float) -> float:
        """Return how much is held for the client, times how long it has stood still, cubed."""
        outlet = self._outlet
        greed = greed_of_requests(self.calls * REQUEST + outlet.served, grace)
        if self._is_held_back and grace:
            return greed
        since = max(self._moved, outlet.moved) if grace else outlet.began
        greed += greed_of(outlet.partial, since, now, grace)
        greed += greed_of(len(self._rest), self._rest_began, now, grace)
        greed += greed_of(len(self._block or b""), self._block_began, now, grace)
        if outlet.windows.waiting:
            since = outlet.windows.moved if grace else outlet.windows.began
            greed += greed_of(outlet.windows.waiting, since, now, grace)
        if self._outlet.is_choked:
            greed += greed_of(self._unsent + len(self._data), self._choked_at, now, grace)
        return greed

    def hold_back(self) -> None:
        """Stop reading."""
        self._is_held_back = True
        if self._is_open and self._transport is not None:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Resume reading where it was stopped."""
        self._is_held_back = False
        self._moved = self._state.loop.time()
        if not self._is_waiting and not self._data:
            self._read_on()

    def evict(self, reason: str) -> None:
        """Close the connection, and release what it holds."""
        if not self._is_open or self._transport is None:
            return
        self._state.complaints.say(self.address, reason)
        self._is_open = False
        self._release()
        self._transport.abort()

    def _release(self) -> None:
        self._data, self._at, self._rest = b"", 0, bytearray()
        self._outlet.windows.stop()
        self._outlet.clear()
        self._cancel_calls()

    @property
    def _unsent(self) -> int:
        waiting = self._transport.get_write_buffer_size() if self._transport else 0
        return self._outlet.size + waiting

    def _count(self) -> None:
        """Tell the budget what is held now."""
        size = self.measure()
        if size != self.held:
            self._state.budget.hold(self, size)

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
        if self._unsent + self._outlet.windows.waiting > self._limits.write_buffer:
            self.evict(f"it does not read: {self._limits.write_buffer} bytes wait for it")
        else:
            self._count()

    def pause_writing(self) -> None:
        self._outlet.set_choked(True)
        self._choked_at = self._state.loop.time()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._outlet.set_choked(False)
        self.flush()
        if self._outlet.is_choked:
            return
        for served in list(self._streams.values()):
            served.note_moved()
        if self._is_open and not self._is_waiting and self._data:
            self._is_waiting = True
            self._state.turns.wait(self)
        elif not self._is_waiting:
            self._read_on()

    # The end

    def go_away(self) -> None:
        """Tell the client to call elsewhere; what it has begun is still served."""
        if self._is_open and not self._is_going_away:
            self._is_going_away = True
            self._outlet.write(frames.go_away(self._last, ErrorCode.NO_ERROR))
            if not self._streams:
                self._close_later()

    def _close_later(self) -> None:
        """Close the connection once the client can have read that it is to go away: what it has
        sent before is refused until then, and can be sent elsewhere.
        """
        self._state.loop.call_later(_LEAVING, self.close)

    @property
    def has_short_calls(self) -> bool:
        """Return whether calls are served that end by themselves."""
        return any(not served.is_endless for served in self._streams.values())

    def end_calls(self) -> None:
        """End all calls: the server stops."""
        for served in list(self._streams.values()):
            served.end(GrpcStatus.UNAVAILABLE, "the server stops")

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

    def _fail(self, code: ErrorCode, reason: str) -> None:
        """Tell the client why nothing more can be read, and close."""
        self._state.complaints.say(self.address, reason)
        self._outlet.windows.stop()
        self._outlet.write(frames.go_away(self._last, code, reason))
        self.close()

    def check(self, now: float) -> None:
        """Close the connection if it is silent, or begins requests that it does not continue."""
        limits = self._limits
        if limits.idle:
            if not self._streams and now - self._last_call > limits.idle:
                self.go_away()
            elif self._has_pinged and now - self._last_received > limits.idle + _SILENT:
                self.evict(f"silent for {limits.idle + _SILENT:g} s")
            elif now - self._last_received > limits.idle and not self._has_pinged:
                self._has_pinged = True
                self._outlet.write(frames.frame(frames.PING, 0, 0, bytes(8)))
        if limits.request_time:
            self._check_progress(now - limits.request_time)
        if not self._has_preface and now - self._last_call > limits.handshake:
            self.evict(f"it has not begun as HTTP/2 within {limits.handshake:g} s")

    def _check_progress(self, before: float) -> None:
        """End what has not progressed since a loop time."""
        windows = self._outlet.windows
        if windows.waiting and windows.window <= 0 and windows.moved < before:
            self.evict(f"it has not let anything be sent for {self._limits.request_time:g} s")
        elif (self._rest and self._rest_began < before and not self._outlet.is_choked) or (
            self._block is not None and self._block_began < before
        ):
            self.evict(f"a frame that it began {self._limits.request_time:g} s ago is incomplete")
        for served in list(self._streams.values()):
            if served.is_stuck(before):
                served.reset(ErrorCode.CANCEL)

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
        self._now = self._last_received = self._last_call = self._state.loop.time()
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
        self._now = self._last_received = self._state.loop.time()
        self._has_pinged = False
        if self._rest or not self._has_preface:
            self._rest += data
            if len(self._rest) < self._need and self._may_be_preface():
                self._count()
                return
            data, self._rest = bytes(self._rest), bytearray()
        if not self._has_preface:
            data = self._begin(data)
        self._data, self._at = data, 0
        if self._is_open and self._state.turns.take(self) and self._transport is not None:
            self._is_waiting = True
            self._transport.pause_reading()
            self._count()

    def _may_be_preface(self) -> bool:
        return self._has_preface or frames.PREFACE.startswith(bytes(self._rest))

    def _begin(self, data: bytes) -> bytes:
        """Read the preface, and send settings."""
        if not data.startswith(frames.PREFACE):
            self.evict(f"it does not begin as HTTP/2: {data[:24]!r}")
            return b""
        self._has_preface = True
        self._outlet.write(
            frames.settings(
                {
                    frames.MAX_CONCURRENT_STREAMS: self._limits.calls,
                    frames.INITIAL_WINDOW_SIZE: WINDOW,
                    frames.MAX_FRAME_SIZE: LARGEST_FRAME,
                    frames.MAX_HEADER_LIST_SIZE: self._limits.headers,
                }
            )
        )
        self._outlet.write(frames.window_update(0, _WINDOW - frames.FIRST_WINDOW))
        return data[len(frames.PREFACE) :]

    def _read_on(self) -> None:
        if self._is_open and not self._is_held_back and not self._outlet.is_choked:
            assert self._transport is not None
            self._transport.resume_reading()

    def eof_received(self) -> None:
        """Let the transport close: a client that sends nothing more waits for nothing."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._is_open = False
        self._release()
        self._state.lost(self)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, what)


def _address(name: Sequence[Any]) -> str:
    host, port = name[:2]  # An IPv6 address has two more.
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
