"""What a master and its slaves send each other (docs/formats/replication.md).

No I/O. A slave sends reports, a master sends frames of log bytes.
Upstream: `DefaultHAClient`, `DefaultHAConnection`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError

_REPORT = Struct(
    ">q"  # the slave's physical offset
)
_HEAD = Struct(
    ">"
    "q"  # physical offset of the first byte of the body
    "i"  # bytes of the body
)
REPORT_SIZE = _REPORT.size
HEAD_SIZE = _HEAD.size

LONGEST_BODY = (1 << 31) - 1
"""Bytes: a frame lies within one file of the commit log."""
_MOST_JOINED = 64
"""Pieces that are joined at most: whoever takes them looks at the time in between."""
_LONG = 64 << 10
"""Bytes of a piece that is not joined with others: it costs more to copy it."""
_LAST = (1 << 63) - 1 - LONGEST_BODY
NOT_COUNTED = -(1 << 62)
"""What one who only reads reports after its request: a master of any release takes it for a slave
that lacks very much. It is neither in sync, nor does any put wait for it."""


class Piece(NamedTuple):
    """Log bytes of one frame, or some of them. No bytes: the master's heartbeat.

    Attributes:
        offset: physical offset of the first byte.
        data: valid until the reader is fed again.
    """

    offset: int
    data: memoryview


def encode_report(offset: int) -> bytes:
    """Return a slave's report: the first one asks for the log from there, all acknowledge it."""
    return _REPORT.pack(offset)


def encode_head(offset: int, length: int) -> bytes:
    """Return the head of a frame with `length` bytes of the log from a physical offset on."""
    return _HEAD.pack(offset, length)


class ReportReader:
    """Read the reports of one slave from what its connection brings."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[int]:
        """Return the first and the last report that are complete now; none, one or two offsets.

        Raises:
            FormatError: an offset that no log has.
        """
        data = self._rest + data
        whole = len(data) - len(data) % REPORT_SIZE
        self._rest = data[whole:]
        if not whole:
            return []
        offsets = [_REPORT.unpack_from(data, at)[0] for at in (0, whole - REPORT_SIZE)]
        if any(offset != NOT_COUNTED and not 0 <= offset <= _LAST for offset in offsets):
            raise FormatError(f"not a report of a slave: {data[:whole][-REPORT_SIZE:].hex()}")
        return offsets if whole > REPORT_SIZE else offsets[:1]


class MasterFrameReader:
    """Read a master's frames, which may arrive cut anywhere. Holds at most a head."""

    def __init__(self) -> None:
        self._head = b""
        self._offset = self._left = 0

    def feed(self, data: bytes | memoryview) -> Iterator[Piece]:
        """Yield the pieces in what has arrived.

        Raises:
            FormatError: this is no frame; nothing that follows can be read.
        """
        view, at = memoryview(data), 0
        while at < len(view):
            if self._left:
                piece = view[at : at + self._left]
                yield Piece(self._offset, piece)
                self._offset += len(piece)
                self._left -= len(piece)
                at += len(piece)
                continue
            part = view[at : at + HEAD_SIZE - len(self._head)]
            self._head += part
            at += len(part)
            if len(self._head) == HEAD_SIZE:
                self._begin()
                if not self._left:
                    yield Piece(self._offset, view[:0])

    def _begin(self) -> None:
        offset, length = _HEAD.unpack(self._head)
        if not 0 <= offset <= _LAST or length < 0:
            raise FormatError(f"not the header of a commit log frame: {self._head.hex()}")
        self._offset, self._left, self._head = offset, length, b""


def joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces, short ones that follow each other as one: it costs less to append it."""
    start = end = 0
    parts: list[memoryview] = []
    for piece in pieces:
        is_alone = not piece.data or len(piece.data) >= _LONG
        if parts and (is_alone or piece.offset != end or len(parts) == _MOST_JOINED):
            yield _as_one(start, parts)
            parts.clear()
        if is_alone:
            yield piece
            continue
        if not parts:
            start = piece.offset
        parts.append(piece.data)
        end = piece.offset + len(piece.data)
    if parts:
        yield _as_one(start, parts)


def _as_one(start: int, parts: list[memoryview]) -> Piece:
    return Piece(start, parts[0] if len(parts) == 1 else memoryview(b"".join(parts)))
