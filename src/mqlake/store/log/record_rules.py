"""Recovery's requirements on records beyond RocketMQ's check of lengths, magic number and body.

A disk writes blocks, and may lose some. A lost block of a new file is zero, and a block may be
written while a record is being copied into it. RocketMQ's check does not notice a loss in the
properties; the message would come back with other properties than it had. Properties may contain
any bytes, including zeros, so only a checksum of the whole record distinguishes a torn record from
an unusual one.

Upstream: `CommitLog.checkMessageAndReturnSize`.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import numpy as np

from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.columns import RecordColumns
from mqlake.dispatch.kernel import load
from mqlake.formats import record_crc
from mqlake.formats.checkpoint import Checksummed
from mqlake.formats.properties import decode_properties
from mqlake.formats.record import is_torn

_JAVA_INT = 1 << 32


class RecordRule(Protocol):
    """A rule for records that pass RocketMQ's check."""

    def first_bad(self, buffer: Bytes, base: int, records: RecordColumns, /) -> int:
        """Return the row of the first record that breaks the rule; the number of rows if none does.

        Args:
            buffer: contains the records.
            base: physical offset of its first byte.
            records: rows of a walk, ascending.
        """
        ...

    def is_bad(self, offset: int, data: memoryview, properties_length: int, /) -> bool:
        """Return whether one record breaks the rule.

        Args:
            offset: its physical offset.
            data: its bytes.
            properties_length: the size of its properties, with which it ends.
        """
        ...


class ChecksumRule:
    """Records of the part that mqlake wrote with checksums must not be torn.

    Other records may contain any checksum: RocketMQ keeps one that it received with a message.

    Args:
        part: the part of the log in which all records have checksums.
    """

    def __init__(self, part: Checksummed) -> None:
        self._part = part
        self._kernel = load()

    def first_bad(self, buffer: Bytes, base: int, records: RecordColumns, /) -> int:
        first, stop = np.searchsorted(records["physical_offset"], self._part).tolist()
        row = first + self._kernel.first_torn(buffer, base, records[first:stop])
        return row if row < stop else len(records)

    def is_bad(self, offset: int, data: memoryview, properties_length: int, /) -> bool:
        start, end = self._part
        return start <= offset < end and is_torn(data, properties_length)


class ForcedRule:
    """Every record must contain its checksum (`forceVerifyPropCRC`), whichever program wrote it.

    The last property of the name counts, wherever it is, as in RocketMQ.
    """

    def first_bad(self, buffer: Bytes, base: int, records: RecordColumns, /) -> int:
        for row, found in enumerate(records):
            offset, size = int(found["physical_offset"]), int(found["size"])
            data = buffer.data[offset - base : offset - base + size]
            if self.is_bad(offset, data, int(found["properties_length"])):
                return row
        return len(records)

    def is_bad(self, _offset: int, data: memoryview, properties_length: int, /) -> bool:
        found = decode_properties(data[len(data) - properties_length :])
        stated = _java_number(found.get(record_crc.NAME, ""))
        return stated != zlib.crc32(data[: -record_crc.SIZE]) & record_crc.MASK


def _java_number(digits: str) -> int | None:
    """Return the number that RocketMQ reads, with the lowest digit first; None without digits."""
    if not digits:
        return None
    number = 0
    for digit in reversed(digits):
        number = number * 10 + ord(digit) - ord("0")
    return (number + _JAVA_INT // 2) % _JAVA_INT - _JAVA_INT // 2
