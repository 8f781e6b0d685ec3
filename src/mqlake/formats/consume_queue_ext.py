"""Read consume-queue extension units (docs/formats/consume_queue_ext.md).

Upstream: `ConsumeQueueExt.CqExtUnit`. A queue entry points here when its tags code is an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError

HEAD = Struct(
    ">"
    "h"  # size of the whole unit
    "q"  # tags code
    "q"  # store timestamp
    "h"  # bytes of the filter bit map
)
MIN_SIZE = HEAD.size
END_BLANK_SIZE = 4
"""Bytes that each file keeps free at its end."""

MAX_ADDRESS = -(1 << 31) - 1
"""Tags codes up to this are addresses: no 32-bit hash is that small."""

_BASE = -(1 << 63)
_SIZE = Struct(">h")


class QueueExtUnit(NamedTuple):
    """One unit: its bytes, the tags code, the store timestamp (ms), the filter bit map."""

    size: int
    tags_code: int
    store_timestamp: int
    filter_bit_map: bytes


def is_address(tags_code: int) -> bool:
    """Return whether an entry's tags code is the address of a unit."""
    return tags_code <= MAX_ADDRESS


def address_offset(address: int) -> int:
    """Return the offset (bytes, over all files of the queue) that an address means."""
    if not is_address(address):
        raise FormatError(f"not an address of a consume-queue extension: {address}")
    return address - _BASE


def offset_address(offset: int) -> int:
    """Return the address, a tags code, of the unit at `offset` bytes."""
    address = offset + _BASE
    if offset < 0 or not is_address(address):
        raise FormatError(f"the consume queue extension has no unit at {offset}")
    return address


def decode(data: bytes | memoryview, at: int = 0) -> QueueExtUnit:
    """Return the unit at byte `at`.

    Raises:
        FormatError: no whole unit there, or its lengths disagree.
    """
    if at < 0 or at + MIN_SIZE > len(data):
        raise FormatError(f"there is no whole extension unit at byte {at} of {len(data)}")
    size, tags_code, store_timestamp, map_size = HEAD.unpack_from(data, at)
    map_size = max(map_size, 0)
    if size != MIN_SIZE + map_size or at + size > len(data):
        raise FormatError(
            f"byte {at}: an extension unit of {size} bytes with {map_size} bytes in its map"
        )
    return QueueExtUnit(
        size, tags_code, store_timestamp, bytes(data[at + MIN_SIZE : at + MIN_SIZE + map_size])
    )


def walk(data: bytes | memoryview) -> Iterator[tuple[int, QueueExtUnit]]:
    """Yield position and unit from a file's start up to its blank end.

    Raises:
        FormatError: a unit that is damaged.
    """
    at = 0
    while at + _SIZE.size <= len(data) and _SIZE.unpack_from(data, at)[0] > 0:
        unit = decode(data, at)
        yield at, unit
        at += unit.size
