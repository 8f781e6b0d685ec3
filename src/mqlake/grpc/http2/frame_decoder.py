"""Received bytes to frames of HTTP/2."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.http2.frames import HEAD, PREFACE, STREAM_MASK, ErrorCode, Http2Error
from mqlake.grpc.http2.sending import LARGEST_FRAME

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream and payload."""

_unpack: Final = HEAD.unpack_from


class FrameDecoder:
    """Cuts what one connection receives into the client's preface and frames.

    Attributes:
        has_preface: whether the preface has arrived.
        began: the loop time at which the incomplete frame began to arrive.
    """

    __slots__ = ("_at", "_data", "_need", "_received", "_rest", "began", "has_preface")

    def __init__(self) -> None:
        self.has_preface = False
        self._data, self._at = b"", 0
        self._rest = bytearray()
        self._need = len(PREFACE)
        self._received = self.began = 0.0

    @property
    def incomplete(self) -> int:
        """Return how many bytes of an incomplete frame have arrived."""
        return len(self._rest)

    @property
    def unread(self) -> int:
        """Return how many bytes `next` has yet to look at."""
        return len(self._data) - self._at

    @property
    def has_unread(self) -> bool:
        """Return whether received bytes wait until `next` has looked at them all."""
        return bool(self._data)

    def receive(self, data: bytes, now: float) -> bool:
        """Add received bytes; return whether `next` has something to look at.

        `next` must have returned None since the last call.

        Args:
            now: the loop time.

        Raises:
            Http2Error: the connection does not begin with the preface.
        """
        self._received = now
        if self._rest or not self.has_preface:
            if not self._rest:
                self.began = now
            self._rest += data
            if len(self._rest) < self._need and self._may_be_preface():
                return False
            data, self._rest = bytes(self._rest), bytearray()
        if not self.has_preface:
            data = self._without_preface(data)
        self._data, self._at = data, 0
        return True

    def _may_be_preface(self) -> bool:
        return self.has_preface or PREFACE.startswith(bytes(self._rest))

    def _without_preface(self, data: bytes) -> bytes:
        if not data.startswith(PREFACE):
            raise Http2Error(
                ErrorCode.PROTOCOL_ERROR, f"it does not begin as HTTP/2: {data[:24]!r}"
            )
        self.has_preface = True
        return data[len(PREFACE) :]

    def next(self) -> Frame | None:
        """Return the next frame; None once no more are complete.

        Raises:
            Http2Error: the frame is larger than allowed.
        """
        data, at = self._data, self._at
        begin = at + 9
        if begin <= len(data):
            start, flags, stream = _unpack(data, at)
            size = start >> 8
            if size > LARGEST_FRAME:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
            end = begin + size
            if end <= len(data):
                self._at = end
                return start & 0xFF, flags, stream & STREAM_MASK, data[begin:end]
            self._need = 9 + size
        else:
            self._need = 9
        self._rest += data[at:]
        self.began = self._received
        self._data, self._at = b"", 0
        return None

    def clear(self) -> None:
        """Forget all bytes."""
        self._data, self._at, self._rest = b"", 0, bytearray()
