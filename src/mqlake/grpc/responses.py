"""The frames of responses.

Their headers are always literal, so they are constant bytes, whatever the client's table contains.
"""

from __future__ import annotations

import re
import struct
from typing import Final
from urllib.parse import quote

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.headers import literal
from mqlake.grpc.status import GrpcStatus

_STATUS_200: Final = b"\x88"
_HEADERS: Final = _STATUS_200 + literal("content-type", "application/grpc")
_OK: Final = literal("grpc-status", "0")
_ACCEPTED: Final = literal("grpc-accept-encoding", "identity")
_LONGEST_MESSAGE: Final = 1024
"""Characters of the text of a status."""
_PART: Final = re.compile(r"%.?\Z")
"""A coded character that was cut."""

_LAST: Final = frames.END_HEADERS | frames.END_STREAM
_WHOLE_START: Final = struct.pack(">IB", len(_HEADERS) << 8 | frames.HEADERS, frames.END_HEADERS)
_TRAILERS_START: Final = struct.pack(">IB", len(_OK) << 8 | frames.HEADERS, _LAST)
_BEGIN: Final = struct.Struct(f">{len(_WHOLE_START)}sI{len(_HEADERS)}sIBIBI")
PREFIX_SIZE: Final = 5
"""Bytes before each message: whether it is compressed, and its length."""


def whole(stream: int, message: bytes) -> bytes:
    """Return all frames of a call with one response: headers, one DATA frame, trailers."""
    size = len(message)
    number = stream.to_bytes(4)
    begin = _BEGIN.pack(
        _WHOLE_START, stream, _HEADERS, (size + PREFIX_SIZE) << 8, 0, stream, 0, size
    )  # fmt: skip
    return b"".join((begin, message, _TRAILERS_START, number, _OK))


def headers(stream: int) -> bytes:
    """Return the frame before the first response."""
    return frames.frame(frames.HEADERS, frames.END_HEADERS, stream, _HEADERS)


def prefixed(message: bytes) -> bytes:
    """Return a message as DATA frames contain it."""
    return b"\0" + len(message).to_bytes(4) + message


def trailers(stream: int, status: GrpcStatus, message: str = "", *, is_first: bool) -> bytes:
    """Return the frame that ends a call.

    Args:
        is_first: whether no headers were sent before.
    """
    block = _HEADERS if is_first else b""
    block += literal("grpc-status", str(int(status))) if status else _OK
    if message:
        coded = quote(message[:_LONGEST_MESSAGE], safe=_PLAIN, errors="replace")
        block += literal("grpc-message", _PART.sub("", coded[:_LONGEST_MESSAGE]))
    if status is GrpcStatus.UNIMPLEMENTED and is_first:
        block += _ACCEPTED
    return frames.frame(frames.HEADERS, _LAST, stream, block)


_PLAIN: Final = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""The characters that a status text has as they are."""


def refusal(stream: int, status: int, message: str) -> bytes:
    """Return the frames of an answer to a request that is not one of gRPC."""
    block = b"".join(
        (literal(":status", str(status)), literal("content-type", "text/plain"))
    )  # fmt: skip
    return frames.frame(frames.HEADERS, frames.END_HEADERS, stream, block) + frames.frame(
        frames.DATA, frames.END_STREAM, stream, message.encode() + b"\n"
    )
