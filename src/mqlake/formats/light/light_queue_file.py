"""Files of light queues: header, hash slots, chained entries (docs/formats/light_queue_file.md)."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError

MAGIC = b"MQLIGHT1"
HEADER = Struct(
    ">"
    "8s"  # magic
    "q"  # base: physical offset of the first byte of the file's segment of the log
    "Q"  # seed of the name hashes
    "i"  # slots
    "i"  # following: number that the next entry gets; 1 in an empty file
    "i"  # queues that have an entry
    "i"  # zero
)
SLOT = Struct(">i")
ENTRY = Struct(
    ">"
    "Q"  # hash of the queue's name
    "q"  # physical offset
    "q"  # queue offset
    "i"  # size of the record
    "i"  # previous entry of the same slot; 0 for none
    "i"  # previous entry of the same queue; 0 for none
    "i"  # an earlier entry of the same queue; itself in the queue's first entry
)
HEADER_SIZE, SLOT_SIZE, ENTRY_SIZE = HEADER.size, SLOT.size, ENTRY.size

MOST_NAMES = 64
"""Light queues of one record that get an entry; further names get none."""
LONGEST_NAME = 1024
"""Bytes of a light queue's name that gets an entry."""
_BYTES_PER_SLOT, _BYTES_PER_ENTRY = 4096, 64
_FEWEST_SLOTS, _FEWEST_ENTRIES = 16, 64


class LightHeader(NamedTuple):
    """The first 40 bytes of a file."""

    base: int
    seed: int
    slots: int
    following: int
    queues: int


class LightEntry(NamedTuple):
    """One entry: a record in a light queue, and the entries before it."""

    name_hash: int
    physical_offset: int
    queue_offset: int
    size: int
    slot_previous: int
    previous: int
    jump: int


def slots_of(segment_size: int) -> int:
    """Return the slots of a file, by the bytes of a segment of the log."""
    return max(_FEWEST_SLOTS, segment_size // _BYTES_PER_SLOT)


def capacity_of(segment_size: int) -> int:
    """Return how many entries fit into a file, by the bytes of a segment of the log."""
    return max(_FEWEST_ENTRIES, segment_size // _BYTES_PER_ENTRY)


def file_size(segment_size: int) -> int:
    """Return the bytes of a whole file, by the bytes of a segment of the log."""
    return entry_at(slots_of(segment_size), capacity_of(segment_size) + 1)


def slot_at(slots: int, name_hash: int) -> int:
    """Return the byte position of the slot of a name's hash."""
    return HEADER_SIZE + name_hash % slots * SLOT_SIZE


def entry_at(slots: int, number: int) -> int:
    """Return the byte position of an entry; numbers start at 1, place 0 stays empty."""
    return HEADER_SIZE + slots * SLOT_SIZE + number * ENTRY_SIZE


def encode_header(header: LightHeader) -> bytes:
    """Return the 40 bytes of a header."""
    return HEADER.pack(MAGIC, *header, 0)


def decode_header(data: bytes | memoryview) -> LightHeader:
    """Return the header.

    Raises:
        FormatError: it is not the header of such a file, or the file has no room for the entries
            that it counts.
    """
    if len(data) < HEADER_SIZE:
        reason = f"the header of a file of light queues has {HEADER_SIZE} bytes"
        raise FormatError(f"{reason}, but this file has {len(data)}")
    magic, base, seed, slots, following, queues, _ = HEADER.unpack_from(data)
    if magic != MAGIC or base < 0 or slots < 1 or following < 1 or not 0 <= queues < following:
        raise FormatError("the header is not that of a file of light queues")
    if entry_at(slots, following) > len(data):
        raise FormatError(f"there is no entry {following - 1} in {len(data)} bytes")
    return LightHeader(base, seed, slots, following, queues)


def encode_entry(entry: LightEntry) -> bytes:
    """Return the 40 bytes of an entry."""
    return ENTRY.pack(*entry)


def decode_entry(data: bytes | memoryview, slots: int, number: int) -> LightEntry:
    """Return entry `number` (1 the first) of a file.

    Raises:
        FormatError: it is beyond the end of the file.
    """
    at = entry_at(slots, number)
    if slots < 1 or number < 1 or at + ENTRY_SIZE > len(data):
        raise FormatError(f"there is no entry {number} in {len(data)} bytes")
    return LightEntry(*ENTRY.unpack_from(data, at))
