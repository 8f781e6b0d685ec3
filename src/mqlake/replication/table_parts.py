"""Tables that a slave requests in parts, because a response has at most 16 MiB.

RocketMQ has no such parts: its slaves request, and its masters answer, the whole table. Which part
an entry belongs to follows from its key, so entries that come or go meanwhile move no others.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.slaves import TablePartHeader
from mqlake.remoting.slices import Job

SIZE: Final = 2 << 20
"""Approximate bytes of a part."""
MOST_PARTS: Final = 4096


class TablePart(NamedTuple):
    """One of so many parts of a table."""

    number: int = 0
    parts: int = 1

    def has(self, key: bytes) -> bool:
        """Return whether an entry belongs to this part."""
        return self.parts == 1 or crc32(key) % self.parts == self.number


def requested(header: TablePartHeader, size: Job[int]) -> Job[TablePart | None]:
    """Return the part of a table that a slave requests; None if it requests the whole table.

    Args:
        size: returns the approximate bytes of the table.

    Raises:
        RemotingError: there is no such part.
    """
    if header.part is None:
        return None
    count = header.parts
    if count is None:
        count = min((yield from size) // SIZE + 1, MOST_PARTS)
    if not 0 <= header.part < count <= MOST_PARTS:
        reason = f"part {header.part} of {count}: a table has at most {MOST_PARTS} parts"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    return TablePart(header.part, count)
