"""The entries of `.timeindex` files: timestamp to offset (docs/formats/kafka/time_index.md).

Upstream: `TimeIndex`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ENTRY = Struct(
    ">"
    "q"  # timestamp: the largest so far
    "i"  # offset, less the base offset of the segment
)
ENTRY_SIZE = ENTRY.size


class TimestampOffset(NamedTuple):
    """The largest timestamp so far (milliseconds) and the last offset of the batch that has it."""

    timestamp: int
    offset: int


def decode_entry(data: ReadableBuffer, base_offset: int, number: int) -> TimestampOffset:
    """Return entry `number`, 0 the first, of a whole file's bytes."""
    timestamp, relative = ENTRY.unpack_from(data, number * ENTRY_SIZE)
    return TimestampOffset(timestamp, base_offset + relative)


def encode_entry(base_offset: int, entry: TimestampOffset) -> bytes:
    """Return the 12 bytes of an entry."""
    return ENTRY.pack(entry.timestamp, entry.offset - base_offset)
