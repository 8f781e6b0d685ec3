"""Read and write the timer checkpoint (docs/formats/timer_checkpoint.md).

Upstream: `TimerCheckpoint`. One 4096-byte page with seven longs at its start. mqlake keeps its own
position after them, where RocketMQ neither reads nor writes.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError

SIZE = 4096

_FIELDS = Struct(
    ">"
    "q"  # last_read_time
    "q"  # last_log_position
    "q"  # last_queue_offset
    "q"  # master_queue_offset
    "q"  # data version: state
    "q"  # data version: timestamp
    "q"  # data version: counter
)
_POSITION = Struct(
    ">"
    "q"  # done_before
    "q"  # done_in_slot
    "q"  # taken_in
    "q"  # first_waiting
)
_SEAL = Struct(">I")
_POSITION_AT = _FIELDS.size
_SEAL_AT = _POSITION_AT + _POSITION.size
USED = _SEAL_AT + _SEAL.size
"""Bytes of the page that say something."""
_FIELDS_BEFORE_5 = Struct(">4q")
"""The fields without the data version."""


class TimerCheckpoint(NamedTuple):
    """What RocketMQ goes by.

    Attributes:
        last_read_time: milliseconds; messages of earlier slots were delivered.
        last_log_position: bytes of the timer log that are flushed.
        last_queue_offset: of the first timer message that is not in the timer log.
        master_queue_offset: the same of the master; RocketMQ goes by the lower one.
        state_version, timestamp, counter: how often the file changed.
    """

    last_read_time: int = 0
    last_log_position: int = 0
    last_queue_offset: int = 0
    master_queue_offset: int = 0
    state_version: int = 0
    timestamp: int = 0
    counter: int = 0


class TimerPosition(NamedTuple):
    """Which timer messages were delivered; what mqlake goes by.

    Those before queue offset `taken_in` that are due before `done_before`, and of the slot that
    begins at `done_before` those before queue offset `done_in_slot`. All before `first_waiting`.
    """

    done_before: int = 0
    done_in_slot: int = 0
    taken_in: int = 0
    first_waiting: int = 0


def decode(data: bytes | memoryview) -> tuple[TimerCheckpoint, TimerPosition | None]:
    """Return RocketMQ's fields, and mqlake's: None if RocketMQ wrote since, or nobody else.

    Raises:
        FormatError: fewer than 56 bytes.
    """
    if len(data) == _FIELDS_BEFORE_5.size:
        return TimerCheckpoint(*_FIELDS_BEFORE_5.unpack(data)), None
    if len(data) < _FIELDS.size:
        raise FormatError(f"a timer checkpoint has {SIZE} bytes, but this one has {len(data)}")
    fields = TimerCheckpoint(*_FIELDS.unpack_from(data))
    if len(data) < _SEAL_AT + _SEAL.size:
        return fields, None
    (seal,) = _SEAL.unpack_from(data, _SEAL_AT)
    if seal != zlib.crc32(data[:_SEAL_AT]):
        return fields, None
    return fields, TimerPosition(*_POSITION.unpack_from(data, _POSITION_AT))


def encode(checkpoint: TimerCheckpoint, position: TimerPosition) -> bytes:
    """Return the 4096 bytes.

    All that counts is within the first 512 bytes, which a disk writes as a whole.
    """
    data = _FIELDS.pack(*checkpoint) + _POSITION.pack(*position)
    data += _SEAL.pack(zlib.crc32(data))
    return data.ljust(SIZE, b"\0")
