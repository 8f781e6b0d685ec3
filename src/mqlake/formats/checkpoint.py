"""Read and write the store checkpoint (docs/formats/checkpoint.md).

RocketMQ: `StoreCheckpoint`. One 4096-byte page with six longs at its start.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.dialect import Dialect

SIZE = 4096

_FIELDS = Struct(
    ">"
    "q"  # physic_msg_timestamp
    "q"  # logics_msg_timestamp
    "q"  # index_msg_timestamp
    "q"  # master_flushed_offset: 5.x
    "q"  # confirm_physical_offset: 5.x
    "q"  # logics_physical_offset: 5.5
)
FIELD_COUNT = {Dialect.V4_9: 3, Dialect.V5_3: 5, Dialect.V5_5: 6}


class Checkpoint(NamedTuple):
    """How far the store was flushed: store timestamps in milliseconds, offsets in bytes."""

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_physical_offset: int = 0
    logics_physical_offset: int = 0


def decode(data: bytes | memoryview) -> Checkpoint:
    """Return the six fields; those that an older RocketMQ does not write are 0.

    Raises:
        FormatError: fewer than 48 bytes.
    """
    if len(data) < _FIELDS.size:
        raise FormatError(f"a checkpoint has {SIZE} bytes, this one {len(data)}")
    return Checkpoint(*_FIELDS.unpack_from(data))


def encode(checkpoint: Checkpoint, dialect: Dialect = Dialect.V5_5) -> bytes:
    """Return the 4096 bytes, with the fields that the dialect has and zeros for the others."""
    count = FIELD_COUNT[dialect]
    fields = checkpoint[:count] + (0,) * (len(checkpoint) - count)
    return _FIELDS.pack(*fields).ljust(SIZE, b"\0")
