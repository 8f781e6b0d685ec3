"""Read and write the checksum of a whole record: its last property (docs/formats/record.md).

Upstream: `CommitLog.CRC32_RESERVED_LEN`, `MessageDecoder.createCrc32`, `UtilAll.crc32`.
"""

from __future__ import annotations

import re
from struct import Struct

from mqlake.formats import properties

NAME = properties.CRC32
"""The property's name."""

_NAME = NAME.encode()

DIGITS = 10
MASK = 0x7FFFFFFF
"""What is stored of a CRC: its sign would be the top bit."""

Buffer = bytes | bytearray | memoryview

SEPARATOR = ord(properties.PROPERTY_SEPARATOR)
"""The byte before the property, if others are before it."""

FIRST = f"{NAME}{properties.NAME_VALUE_SEPARATOR}".encode()
"""The bytes before the digits."""

_END = properties.PROPERTY_SEPARATOR.encode()
BACKWARDS = b"%c%%0%dd%s" % (SEPARATOR, DIGITS, FIRST[::-1])
"""The property with its bytes in the opposite order: what is formatted is then reversed."""

_ANYWHERE = re.compile(rb"(?:\A|(?<=%c))%s[^%c]*%c?" % (SEPARATOR, FIRST, SEPARATOR, SEPARATOR))
_FORM = Struct(
    f"{len(FIRST)}s"  # the name and its separator
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
    # One formatting and one reversal are the fastest way to write digits backwards.
    return (BACKWARDS % (crc & MASK))[::-1]


def drop(data: bytes) -> bytes:
    """Return properties without any of this name; all other bytes stay as they are.

    Upstream: `MessageUtils.deleteProperty`.
    """
    return _ANYWHERE.sub(b"", data) if _NAME in data else data


def missing_separator(data: Buffer) -> bytes:
    """Return what has to stand between other properties and this one: a separator, or nothing."""
    return _END if data and data[-1] != SEPARATOR else b""


def may_be_left_out(data: Buffer) -> bool:
    """Return whether a record with these properties is taken for whole without a CRC.

    It is not where recovery looks for one, if a byte in its place is zero or looks like another.
    """
    tail = bytes(data[-SIZE:])
    return b"\0" not in tail and stated(tail) is None


def stated(tail: Buffer) -> int | None:
    """Return the CRC that a record's properties end with.

    Args:
        tail: the properties, or at least their last `SIZE` + 1 bytes.

    Returns:
        What the ten digits say, which can be more than any CRC if they are damaged. None if the
        last `SIZE` bytes are no such property.
    """
    start = len(tail) - SIZE
    if start < 0 or (start and tail[start - 1] != SEPARATOR):
        return None
    first, digits, last = _FORM.unpack_from(tail, start)
    if first != FIRST or last != SEPARATOR or not digits.isdigit():
        return None
    return int(digits[::-1])
