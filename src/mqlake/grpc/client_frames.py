"""What the frames of a client do to the streams of its connection."""

from __future__ import annotations

from typing import Final

from mqlake.grpc import responses
from mqlake.grpc.headers_of_call import CallRefusedError
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.http2.header_blocks import HeaderBlocks
from mqlake.grpc.http2.sending import LARGEST_FRAME
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.request_stream import WINDOW as STREAM_WINDOW
from mqlake.grpc.served_calls import ServedCalls
from mqlake.grpc.status import GrpcError

_WINDOW: Final = 1 << 30
"""Bytes that a client may send before more is granted; the memory budget restricts it before."""
_FRAMES_OF_CALL: Final = 4
"""Frames without a call that each call allows: clients open windows for what they receive."""


class ClientFrames:
    """Serves the frames of one connection in the order in which they arrive.

    What breaks the rules of HTTP/2, or costs more than a client should, raises `Http2Error`, which
    ends the connection.

    Args:
        outlet: what the connection sends.
        calls: the calls that frames begin, continue and end.
        resets: counts the calls that the client resets.
        limits: what the client may do.

    Attributes:
        headers: the blocks of headers.
        last: the highest stream that the client has begun.
    """

    def __init__(
        self, outlet: Outlet, calls: ServedCalls, resets: Frequency, limits: GrpcLimits
    ) -> None:
        self._outlet, self._calls, self._resets = outlet, calls, resets
        self._most_calls = limits.calls
        self._by_stream = calls.by_stream
        self._idle_frames = Frequency(limits.idle_frames, "frames without a call")
        self.headers = HeaderBlocks(limits.headers)
        self._window = _WINDOW
        self._has_settings = self._refuses_calls = False
        self.last = 0

    def begin(self) -> None:
        """Answer the preface with the settings of this server."""
        values = {
            frames.MAX_CONCURRENT_STREAMS: self._most_calls,
            frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            frames.MAX_FRAME_SIZE: LARGEST_FRAME,
            frames.MAX_HEADER_LIST_SIZE: self.headers.most,
        }
        self._outlet.write(frames.settings(values))
        self._outlet.write(frames.window_update(0, _WINDOW - frames.FIRST_WINDOW))

    def refuse_calls(self) -> None:
        """Refuse all calls that begin from now on: the connection ends."""
        self._refuses_calls = True

    def serve(self, frame: tuple[int, int, int, bytes], now: float) -> None:
        """Serve a frame.

        Args:
            frame: its type, flags, stream and payload.
            now: the loop time at which it arrived.

        Raises:
            Http2Error: nothing more can be read from the client.
        """
        kind, flags, number, payload = frame
        if self.headers.is_incomplete and kind != frames.CONTINUATION:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a block of headers is not complete")
        if not self._has_settings and kind != frames.SETTINGS:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if kind == frames.DATA:
            self._serve_data(flags, number, payload, now)
        elif kind == frames.HEADERS:
            self._serve_headers(flags, number, payload, now)
        elif kind == frames.WINDOW_UPDATE:
            self._serve_window_update(number, payload, now)
        elif kind == frames.CONTINUATION:
            self.headers.resume(number, payload)
            if flags & frames.END_HEADERS:
                fields, is_last = self.headers.end()
                self._serve_fields(number, fields, now, is_last=is_last)
        else:
            self._idle_frames.note(now)
            self._serve_other(frame, now)

    def _serve_other(self, frame: tuple[int, int, int, bytes], now: float) -> None:
        kind, flags, number, payload = frame
        if kind == frames.RST_STREAM:
            self._serve_reset(number, payload, now)
        elif kind == frames.SETTINGS:
            self._serve_settings(flags, number, payload, now)
        elif kind == frames.PING:
            _check(len(payload) == 8 and not number, f"a PING frame of {len(payload)} bytes")
            if not flags & frames.ACK:
                self._outlet.write(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif kind == frames.PUSH_PROMISE:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a client has sent PUSH_PROMISE")
        # Nothing follows from PRIORITY, GOAWAY and frames of other types.

    def _serve_data(self, flags: int, number: int, payload: bytes, now: float) -> None:
        size = len(payload)
        self._window -= size
        if self._window < _WINDOW // 2:
            self._outlet.write(frames.window_update(0, _WINDOW - self._window))
            self._window = _WINDOW
        is_last = bool(flags & frames.END_STREAM)
        if flags & frames.PADDED:
            payload = frames.without_padding(flags, payload)
        if not payload and not is_last:
            self._idle_frames.note(now)
        served = self._by_stream.get(number)
        if served is not None:
            if not served.receive(payload, size, now, is_last=is_last):
                self._resets.note(now)
        else:  # The client cannot know yet that a call has ended.
            self._idle_frames.note(now)
            _check(0 < number <= self.last and number & 1 == 1, f"data for stream {number}")

    def _serve_headers(self, flags: int, number: int, payload: bytes, now: float) -> None:
        if flags & (frames.PADDED | frames.HAS_PRIORITY):
            payload = frames.without_padding(flags, payload, has_priority=True)
        if flags & frames.END_HEADERS:
            is_last = bool(flags & frames.END_STREAM)
            self._serve_fields(number, self.headers.decode(payload), now, is_last=is_last)
        else:
            self.headers.begin(flags, number, payload, now)

    def _serve_fields(
        self, number: int, fields: dict[str, str] | None, now: float, *, is_last: bool
    ) -> None:
        """Begin a call, or end the requests of one, by a block of headers."""
        if not number & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"headers for stream {number}")
        if number <= self.last:
            self._serve_trailers(number, now, is_last=is_last)
            return
        self.last = number
        self._calls.note_begun(now)
        if self._refuses_calls or self._calls.count >= self._most_calls:
            self._idle_frames.note(now)
            self._outlet.write(frames.reset(number, ErrorCode.REFUSED_STREAM))
        elif fields is None:
            reason = f"the headers have more than {self.headers.most} bytes"
            self._refuse(number, responses.refusal(number, 431, reason), now, is_last=is_last)
        else:
            self._begin_call(number, fields, now, is_last=is_last)

    def _serve_trailers(self, number: int, now: float, *, is_last: bool) -> None:
        served = self._by_stream.get(number)
        if served is None:
            self._idle_frames.note(now)
            return
        _check(is_last, "headers in the middle of a stream")
        if not served.receive(b"", 0, now, is_last=True):
            self._resets.note(now)

    def _begin_call(
        self, number: int, fields: dict[str, str], now: float, *, is_last: bool
    ) -> None:
        try:
            served = self._calls.begin(number, fields, self.headers.decoded, now)
        except CallRefusedError as error:
            answer = responses.refusal(number, error.status, str(error))
            self._refuse(number, answer, now, is_last=is_last)
        except GrpcError as error:
            answer = responses.trailers(number, error.status, error.message, is_first=True)
            self._refuse(number, answer, now, is_last=is_last)
        else:
            self._idle_frames.allow(_FRAMES_OF_CALL)
            if is_last:
                served.receive(b"", 0, now, is_last=True)

    def _refuse(self, number: int, answer: bytes, now: float, *, is_last: bool) -> None:
        self._idle_frames.note(now)
        self._outlet.write(answer)
        if not is_last:
            self._outlet.write(frames.reset(number, ErrorCode.NO_ERROR))

    def _serve_window_update(self, number: int, payload: bytes, now: float) -> None:
        if len(payload) != 4:
            raise _wrong_size("WINDOW_UPDATE", payload)
        size = int.from_bytes(payload) & frames.STREAM_MASK
        _check(size > 0, "a WINDOW_UPDATE of 0 bytes")
        self._idle_frames.note(now)
        if number == 0:
            self._outlet.windows.widen(size)
            return
        served = self._by_stream.get(number)
        if served is None:
            _check(number <= self.last, f"a window for stream {number}")
        elif not served.output.widen(size):
            self._resets.note(now)
            served.reset(ErrorCode.FLOW_CONTROL_ERROR)
        else:
            self._outlet.windows.resume(served.output)

    def _serve_reset(self, number: int, payload: bytes, now: float) -> None:
        if len(payload) != 4:
            raise _wrong_size("RST_STREAM", payload)
        _check(0 < number <= self.last, f"a reset of stream {number}")
        self._resets.note(now)
        served = self._by_stream.get(number)
        if served is not None:
            served.cancel()

    def _serve_settings(self, flags: int, number: int, payload: bytes, now: float) -> None:
        _check(not number, "a SETTINGS frame for a stream")
        if flags & frames.ACK:
            _check(not payload, "an acknowledgement with settings")
            return
        found = dict(frames.read_settings(payload))
        windows = self._outlet.windows
        windows.set_largest(found.get(frames.MAX_FRAME_SIZE, windows.largest))
        first = found.get(frames.INITIAL_WINDOW_SIZE, windows.first_window)
        if first != windows.first_window:
            self._resets.note(now)  # It takes as long as many calls.
            self._set_first_window(first)
        self._has_settings = True
        self._outlet.write(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _set_first_window(self, size: int) -> None:
        """Change the windows of all streams."""
        grown = self._outlet.windows.set_first_window(size)
        for served in self._by_stream.values():
            if not served.output.widen(grown):
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
            self._outlet.windows.resume(served.output)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, what)


def _wrong_size(name: str, payload: bytes) -> Http2Error:
    reason = f"a {name} frame of {len(payload)} bytes"
    return Http2Error(ErrorCode.FRAME_SIZE_ERROR, reason)
