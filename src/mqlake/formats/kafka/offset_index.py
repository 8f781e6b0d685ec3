"""The entries of `.index` files: offset to position (docs/formats/kafka/offset_index.md).

Upstream: `OffsetIndex`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ENTRY = Struct(
    ">"
    "i"  # offset, less the base offset of the segment
    "i"  # position in the log file
)
ENTRY_SIZE = ENTRY.size


class OffsetPosition(NamedTuple):
    """The last offset of an indexed batch, and where the batch starts in bytes."""

    offset: int
    position: int


def decode_entry(data: ReadableBuffer, base_offset: int, number: int) -> OffsetPosition:
    """Return entry `number`, 0 the first, of a whole file's bytes."""
    relative, position = ENTRY.unpack_from(data, number * ENTRY_SIZE)
    return OffsetPosition(base_offset + relative, position)


def encode_entry(base_offset: int, entry: OffsetPosition) -> bytes:
    """Return the 8 bytes of an entry."""
    return ENTRY.pack(entry.offset - base_offset, entry.position)
