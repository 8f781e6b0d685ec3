"""Which bytes a slave requests from its master, and the checks before any byte is appended.

A slave first requests some bytes that it already has, and compares them: this finds a log that has
diverged at once. Upstream's slave requests bytes from its end on, and appends whatever follows.
"""

from __future__ import annotations

import logging
from enum import Enum
from struct import Struct

from mqlake.errors import StoreError
from mqlake.formats import record
from mqlake.formats.sys_flag import BORN_HOST_V6, STORE_HOST_V6
from mqlake.protocol.replication.frames import Piece
from mqlake.replication.master_log import MasterLog
from mqlake.store.port import LogCopying

OVERLAP = 64 << 10
"""Bytes before the log's end that are compared at each connection."""
SIZE_FIELD = 4
"""The first byte that can be requested by its offset.

A request for offset 0 returns the last file of the log, not the first. The bytes before this one
are the first record's size, which follows from the record's content.
"""
_INT = Struct(">i")

_log = logging.getLogger(__name__)


class Begin(Enum):
    """How a slave with an empty log requests the master's."""

    UNKNOWN = 0
    """From offset 0: this is the whole log if the first file is the last one."""
    FIRST_BYTE = 1
    """From the first byte that can be requested."""
    LAST_FILE = 2
    """From offset 0, wherever the master then begins."""
    FIRST_FILE = 3
    """For offset 0, which means the first file under a controller."""
    OWN_LAST_FILE = 4
    """Where a log that is not empty has its last file: the master may lack those before it."""


class BeginOtherwiseError(Exception):
    """The master's log must be requested in another way: as in `begin`."""

    def __init__(self, begin: Begin) -> None:
        super().__init__(begin.name)
        self.begin = begin


class DivergedError(StoreError):
    """This log and the master's cannot be one: following it is of no use until somebody acts.

    Attributes:
        at: physical offset of the first byte that is another one; None if none was compared.
    """

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.at = at


class Comparison:
    """The beginning of one connection to a master, until new bytes arrive.

    Args:
        first: physical offset of this log's first byte.
        master: the range of the master's log, or None if unknown.
        since: compare from this physical offset on, if that is before the usual one.
        begin: how to request the log if this one is empty.

    Attributes:
        request: the physical offset to request.
        is_over: whether all requested bytes that exist here were compared; later ones are appended.
    """

    def __init__(
        self,
        copying: LogCopying,
        first: int,
        master: MasterLog | None,
        since: int | None = None,
        begin: Begin = Begin.UNKNOWN,
    ) -> None:
        self._copying, self._first, self._master = copying, first, master
        self._since, self._begin = since, begin
        self._start = bytearray()
        self._is_empty = copying.is_empty
        self.is_over = False
        self.request = self._request()
        self._next = self.request

    def _request(self) -> int:
        copying, master = self._copying, self._master
        if self._is_empty:
            if self._begin is Begin.FIRST_FILE:
                return 0
            start = master.start if master else 0
            return start or (SIZE_FIELD if self._begin is Begin.FIRST_BYTE else 0)
        end = copying.expected
        if master is not None and end > master.end:
            raise DivergedError(
                f"this log ends at physical offset {end}, and its master's at {master.end}: it is"
                " ahead"
            )
        if master is not None and end < master.start:
            raise DivergedError(
                f"this log ends at physical offset {end}, and its master's begins at"
                f" {master.start}: what is between is gone"
            )
        least = max(self._first, master.start if master else 0)
        usual = end - OVERLAP
        wanted = max(least, usual if self._since is None else min(usual, self._since))
        if self._begin is Begin.OWN_LAST_FILE:
            wanted = max(wanted, min(copying.last_file, end))
        return wanted or min(SIZE_FIELD, end)

    def heartbeat(self, offset: int) -> None:
        """Handle a heartbeat: the master has nothing more before this offset.

        Raises:
            DivergedError: it lacks what this log has.
            BeginOtherwiseError: its first file is gone, or some of those that were asked for.
        """
        if self._is_empty:
            if self.request == SIZE_FIELD and not self._start:
                raise BeginOtherwiseError(Begin.LAST_FILE)
            if self._begin is Begin.UNKNOWN and self.request == 0 < offset:
                # Its last file is empty, and there are others.
                raise BeginOtherwiseError(Begin.FIRST_BYTE)
            return
        if self.is_over:
            return
        if offset < self._copying.expected:
            if self._next == self.request < self._copying.last_file:
                raise BeginOtherwiseError(Begin.OWN_LAST_FILE)
            raise DivergedError(
                f"this log ends at physical offset {self._copying.expected}, and its master has"
                f" nothing from {offset} on: its log is shorter, or begins later"
            )

    def shared(self, piece: Piece) -> int:
        """Return how many bytes of what has arrived this log has, too."""
        if self._is_empty:
            return 0
        return min(len(piece.data), max(self._copying.expected - piece.offset, 0))

    def take(self, piece: Piece) -> memoryview | bytes:
        """Return the part of a piece to append; empty if it was only compared.

        Raises:
            DivergedError: the bytes differ from this log's.
            BeginOtherwiseError: the log does not begin with these bytes.
            StoreError: the bytes do not follow the previous ones.
        """
        if self._is_empty and not self._start and self._next != piece.offset:
            self._begin_later(piece)
        if piece.offset != self._next:
            raise StoreError(
                f"the master sends physical offset {piece.offset} instead of {self._next}"
            )
        self._next += len(piece.data)
        if self._is_empty and self.request == SIZE_FIELD:
            return self._first_record(piece.data)
        if self._is_empty:
            self._begin_log(piece.offset)
        shared = self.shared(piece)
        self._compare(piece.offset, piece.data[:shared])
        self.is_over = self._next >= self._copying.expected
        return piece.data[shared:]

    def _begin_later(self, piece: Piece) -> None:
        """Use the master's last file as the first one, if there is no other way."""
        if self.request:
            return
        if self._begin is Begin.FIRST_FILE:
            self._next = piece.offset
            return
        if self._begin is not Begin.LAST_FILE:
            raise BeginOtherwiseError(Begin.FIRST_BYTE)
        _log.warning(
            "the master's log before physical offset %d is not copied: the name server does not"
            " tell where its first file begins",
            piece.offset,
        )
        self._next = piece.offset

    def _begin_log(self, offset: int) -> None:
        self._copying.begin_at(offset)
        self._is_empty = False

    def _compare(self, offset: int, data: memoryview) -> None:
        while data:
            own = self._copying.part(offset, len(data))
            if own != data[: len(own)]:
                at = next(at for at, (a, b) in enumerate(zip(own, data, strict=False)) if a != b)
                raise DivergedError(
                    f"this log and its master's differ at physical offset {offset + at}: they have"
                    " gone different ways",
                    offset + at,
                )
            if not own:
                raise StoreError(f"this log has nothing at physical offset {offset}")
            offset, data = offset + len(own), data[len(own) :]

    def _first_record(self, data: memoryview) -> bytes:
        """Return the log's first bytes once the size of its first record is known."""
        self._start += data
        size = first_record_size(self._start)
        if size is None:
            if len(self._start) > self._copying.largest_record:
                raise StoreError("the master's log begins with no record: it has no end")
            return b""
        self._begin_log(0)
        self.is_over = True
        return _INT.pack(size) + self._start


def first_record_size(data: bytes | bytearray) -> int | None:
    """Return the size of a record from the bytes after its size field; None if more are needed.

    Raises:
        StoreError: these bytes are not a record's.
    """
    longest_head = record.HEAD_SIZES[-1]
    if len(data) < longest_head:
        return None
    magic = int.from_bytes(data[:4], "big")
    if magic not in (record.V1_MAGIC, record.V2_MAGIC):
        raise StoreError("the master's log begins with no record")
    (flags,) = _INT.unpack_from(data, record.SYS_FLAG_AT - SIZE_FIELD)
    number = bool(flags & BORN_HOST_V6) + 2 * bool(flags & STORE_HOST_V6)
    at = record.HEAD_SIZES[number] - SIZE_FIELD
    (body,) = _INT.unpack_from(data, at - 4)
    if body < 0:
        raise StoreError("the master's log begins with no record: its body has a negative length")
    at += body
    for width in (1 if magic == record.V1_MAGIC else 2, 2):
        if len(data) < at + width:
            return None
        at += width + int.from_bytes(data[at : at + width], "big")
    return at + SIZE_FIELD
