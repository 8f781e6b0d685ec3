"""A partition's producers, `.snapshot` files (docs/formats/kafka/producer_snapshot.md).

Upstream: `ProducerStateManager.readSnapshot`, `writeSnapshot`, the `ProducerSnapshot` schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.kafka.crc32c import crc32c

HEADER = Struct(
    ">"
    "h"  # version: 1
    "I"  # CRC-32C of all that follows
)
COUNT = Struct(">i")
ENTRY = Struct(
    ">"
    "q"  # producer id
    "h"  # producer epoch
    "i"  # last sequence
    "q"  # last offset
    "i"  # last offset, less the first one of the same batch
    "q"  # timestamp
    "i"  # epoch of the transaction coordinator
    "q"  # first offset of the open transaction
)
VERSION = 1


class ProducerEntry(NamedTuple):
    """What is known of a producer; -1 for what there is none of. The timestamp in milliseconds."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


def decode(data: bytes) -> list[ProducerEntry]:
    """Return the producers of a file.

    Raises:
        FormatError: another version, cut off, or damaged.
    """
    start = HEADER.size + COUNT.size
    if len(data) < start:
        raise FormatError(f"a producer snapshot has at least {start} bytes, not {len(data)}")
    version, crc = HEADER.unpack_from(data)
    if version != VERSION:
        raise FormatError(f"a producer snapshot of version {version}")
    if crc != (computed := crc32c(data[HEADER.size :])):
        raise FormatError(f"checksum {crc:08x} in the producer snapshot, {computed:08x} of it")
    (count,) = COUNT.unpack_from(data, HEADER.size)
    if not 0 <= count <= (len(data) - start) // ENTRY.size:
        raise FormatError(f"{count} producers in a snapshot of {len(data)} bytes")
    return [
        ProducerEntry(*ENTRY.unpack_from(data, start + number * ENTRY.size))
        for number in range(count)
    ]


def encode(entries: Sequence[ProducerEntry]) -> bytes:
    """Return the bytes of a file."""
    body = COUNT.pack(len(entries)) + b"".join(ENTRY.pack(*entry) for entry in entries)
    return HEADER.pack(VERSION, crc32c(body)) + body
