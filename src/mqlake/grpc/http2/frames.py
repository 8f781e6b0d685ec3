"""Frames of HTTP/2: their numbers, and the bytes of those that a server sends."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from mqlake.errors import MqlakeError

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client's connection begins with."""
HEAD: Final = struct.Struct(">IBI")
"""The start of a frame: length (24 bits) and type, flags, stream."""
STREAM_MASK: Final = 0x7FFF_FFFF
"""The bits of the number of a stream, and of a window's increment."""
LARGEST_WINDOW: Final = 2**31 - 1
FIRST_WINDOW: Final = 65_535
"""The size of a window until a frame changes it."""
SMALLEST_FRAME_LIMIT: Final = 16_384
"""The limit of a frame's length until a SETTINGS frame changes it, and the least one."""
_LARGEST_FRAME_LIMIT: Final = 2**24 - 1

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

_SETTING: Final = struct.Struct(">HI")
_PRIORITY_SIZE: Final = 5


class ErrorCode(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Http2Error(MqlakeError):
    """The client broke the rules: nothing more can be read from its connection.

    Attributes:
        code: what the client receives, together with the text.
    """

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return HEAD.pack(len(payload) << 8 | kind, flags, stream) + payload


def settings(values: dict[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*item) for item in values.items()))


def reset(stream: int, code: ErrorCode) -> bytes:
    """Return a frame that ends a stream."""
    return frame(RST_STREAM, 0, stream, code.to_bytes(4))


def window_update(stream: int, size: int) -> bytes:
    """Return a frame that allows the client to send more, on one stream or (0) on all."""
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4))


def go_away(last: int, code: ErrorCode, reason: str = "") -> bytes:
    """Return a frame that announces the end of the connection.

    Args:
        last: the highest stream that is served.
    """
    return frame(GOAWAY, 0, 0, last.to_bytes(4) + code.to_bytes(4) + reason.encode()[:512])


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Return the settings in a frame.

    Raises:
        Http2Error: a value is not allowed.
    """
    if len(payload) % _SETTING.size:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a SETTINGS frame of {len(payload)} bytes")
    found = list(_SETTING.iter_unpack(payload))
    for name, value in found:
        if name == INITIAL_WINDOW_SIZE and value > LARGEST_WINDOW:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, f"an initial window of {value} bytes")
        if (name == ENABLE_PUSH and value > 1) or (
            name == MAX_FRAME_SIZE and not SMALLEST_FRAME_LIMIT <= value <= _LARGEST_FRAME_LIMIT
        ):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"setting {name} is {value}")
    return found


def without_padding(flags: int, payload: bytes, *, has_priority: bool = False) -> bytes:
    """Return what a frame contains besides padding and a priority.

    Raises:
        Http2Error: the frame is shorter than its padding.
    """
    at, end = 0, len(payload)
    if flags & PADDED:
        end -= payload[0] if payload else 1
        at = 1
    if has_priority and flags & HAS_PRIORITY:
        at += _PRIORITY_SIZE
    if end < at:
        raise Http2Error(
            ErrorCode.PROTOCOL_ERROR, f"a frame of {len(payload)} bytes is shorter than its padding"
        )
    return payload[at:end]
