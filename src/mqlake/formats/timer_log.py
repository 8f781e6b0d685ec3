"""Read and write the units of RocketMQ's timer log (docs/formats/timer_log.md).

Upstream: `TimerLog`, `TimerMessageStore.doEnqueue`. A unit says which message of the commit log
waits for which slot. The units of one slot are chained, the newest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

UNIT = Struct(
    ">"
    "i"  # size of the unit: 52
    "q"  # position of the slot's unit before this one, -1 for the first
    "i"  # kind: MAGIC_*
    "q"  # slot in which it was written, milliseconds
    "i"  # from there to the slot it waits for, milliseconds
    "q"  # physical offset of the message
    "i"  # size of the message
    "i"  # hash of the real topic
    "q"  # reserved
)
UNIT_SIZE = UNIT.size

MAGIC_DEFAULT, MAGIC_ROLL, MAGIC_DELETE = 1, 2, 4
_NO_UNIT = -1
_LONGEST_DELAY = 0x7FFFFFFF


class TimerUnit(NamedTuple):
    """A waiting message: its `slot` in milliseconds, and where its record is, in bytes."""

    slot: int
    physical_offset: int
    size: int
    kind: int = MAGIC_DEFAULT


def encode(units: list[TimerUnit], written: int) -> bytes:
    """Return the bytes of consecutive units, from position 0 on, chained by slot.

    Args:
        written: the slot in which they are written, milliseconds.
    """
    parts: list[bytes] = []
    newest: dict[int, int] = {}
    for number, unit in enumerate(units):
        before = newest.get(unit.slot, _NO_UNIT)
        newest[unit.slot] = number * UNIT_SIZE
        delay = max(-_LONGEST_DELAY, min(unit.slot - written, _LONGEST_DELAY))
        parts.append(
            UNIT.pack(
                UNIT_SIZE,
                before,
                unit.kind,
                written,
                delay,
                unit.physical_offset,
                unit.size,
                0,
                0,
            )
        )
    return b"".join(parts)


def decode(data: bytes | memoryview) -> Iterator[TimerUnit]:
    """Yield the units from position 0 on, up to the first position without a valid one."""
    for at in range(0, len(data) - UNIT_SIZE + 1, UNIT_SIZE):
        size, _, kind, written, delay, offset, length, _, _ = UNIT.unpack_from(data, at)
        if size != UNIT_SIZE or not 0 <= kind <= 0xF:
            return
        yield TimerUnit(written + delay, offset, length, kind)
