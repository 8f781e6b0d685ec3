"""HEADERS and CONTINUATION frames to the fields of requests."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.headers import HeaderDecoder

_MOST_FRAMES: Final = 16
"""Frames of one block of headers."""


class HeaderBlocks:
    """Puts the blocks of headers of one connection together, and decodes them in their order.

    Args:
        most: bytes that a block, and the fields of one, may have.

    Attributes:
        most: as above.
        is_incomplete: whether a block has begun, so that a CONTINUATION frame must follow.
        began: the loop time at which it began.
    """

    __slots__ = (
        "_block",
        "_count",
        "_decoder",
        "_flags",
        "_stream",
        "began",
        "is_incomplete",
        "most",
    )

    def __init__(self, most: int) -> None:
        self.most = most
        self._decoder = HeaderDecoder(most)
        self._block = bytearray()
        self._stream = self._flags = self._count = 0
        self.is_incomplete, self.began = False, 0.0

    @property
    def held(self) -> int:
        """Return how many bytes of an incomplete block have arrived."""
        return len(self._block)

    @property
    def decoded(self) -> int:
        """Return how many bytes the fields of the last block have."""
        return self._decoder.decoded

    def decode(self, block: bytes) -> dict[str, str] | None:
        """Return the fields of a block that is one frame; None if they are too large.

        Raises:
            Http2Error: the block is too large, or cannot be decoded.
        """
        if len(block) > self.most:
            raise self._too_large(len(block))
        return self._decoder.decode(block)

    def begin(self, flags: int, stream: int, payload: bytes, now: float) -> None:
        """Begin a block of several frames with a HEADERS frame.

        Args:
            now: the loop time.

        Raises:
            Http2Error: it is too large.
        """
        if len(payload) > self.most:
            raise self._too_large(len(payload))
        self._block, self._count = bytearray(payload), 1
        self._stream, self._flags = stream, flags
        self.is_incomplete, self.began = True, now

    def resume(self, stream: int, payload: bytes) -> None:
        """Add a CONTINUATION frame to the block.

        Raises:
            Http2Error: it belongs to no block, or the block is too large or has too many frames.
        """
        if not self.is_incomplete or stream != self._stream:
            raise Http2Error(
                ErrorCode.PROTOCOL_ERROR, "a CONTINUATION frame that continues no block of headers"
            )
        self._block += payload
        self._count += 1
        if len(self._block) > self.most:
            raise self._too_large(len(self._block))
        if self._count > _MOST_FRAMES:
            reason = f"headers in more than {_MOST_FRAMES} frames"
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, reason)

    def end(self) -> tuple[dict[str, str] | None, bool]:
        """Return the fields of the block, None if they are too large, and whether the stream ends.

        Raises:
            Http2Error: the block cannot be decoded.
        """
        block, self._block = bytes(self._block), bytearray()
        self.is_incomplete = False
        return self._decoder.decode(block), bool(self._flags & frames.END_STREAM)

    def _too_large(self, size: int) -> Http2Error:
        reason = f"headers of {size} bytes: the limit is {self.most}"
        return Http2Error(ErrorCode.ENHANCE_YOUR_CALM, reason)
