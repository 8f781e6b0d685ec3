"""Read and write the checksum of a whole record: its last property (docs/formats/record.md).

Upstream: `CommitLog.CRC32_RESERVED_LEN`, `MessageDecoder.createCrc32`, `UtilAll.crc32`.
"""

from __future__ import annotations

from struct import Struct

from mqlake.formats import properties

NAME = properties.CRC32
"""The property's name."""

DIGITS = 10
MASK = 0x7FFFFFFF
"""What is stored of a CRC: its sign would be the top bit."""

Buffer = bytes | bytearray | memoryview

_SEPARATOR = ord(properties.PROPERTY_SEPARATOR)
_FIRST = f"{NAME}{properties.NAME_VALUE_SEPARATOR}".encode()
_FORM = Struct(
    f"{len(_FIRST)}s"  # the name and its separator
    f"{DIGITS}s"  # the value, its last digit first
    "B"  # the separator that ends a property
)

SIZE = _FORM.size
"""Bytes of the property. They count against the 32767 that properties may have."""


def encode(crc: int) -> bytes:
    """Return the property that states a CRC.

    Args:
        crc: CRC-32 of all bytes of the record before the property; its top bit is not stored.

    Returns:
        `SIZE` bytes.
    """
    return b"%s%s\2" % (_FIRST, (b"%010d" % (crc & MASK))[::-1])


def stated(tail: Buffer) -> int | None:
    """Return the CRC that a record's properties end with.

    Args:
        tail: the properties, or at least their last `SIZE` + 1 bytes.

    Returns:
        What the ten digits say, which can be more than any CRC if they are damaged. None if the
        last `SIZE` bytes are no such property.
    """
    start = len(tail) - SIZE
    if start < 0 or (start and tail[start - 1] != _SEPARATOR):
        return None
    first, digits, last = _FORM.unpack_from(tail, start)
    if first != _FIRST or last != _SEPARATOR or not digits.isdigit():
        return None
    return int(digits[::-1])
