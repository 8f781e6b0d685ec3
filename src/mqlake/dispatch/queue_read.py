"""Follow the entries of a queue to their records in the log (docs/live-store.md, "Reading").

RocketMQ: the loop of `DefaultMessageStore.getMessage`. There, what an entry says is believed; here,
it is believed when the record it points at names the same topic, queue, queue offset and size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Bytes, Longs

QUEUE_OFFSET, AT, SIZE, FAULT = range(4)
"""What following entries fills, i8[4, n]: a column for each, in this order.

FAULT is Fault.GOOD, or says why there is no such record: another Fault, or OTHER. AT is the
record's position in the segment's buffer; its physical offset, where there is none. SIZE is what
the entry says.
"""

TOPIC_LEAD = 8
"""Bytes before a topic that is compared with others, since kernels load whole words."""


class Part(NamedTuple):
    """One segment of the log, and what of the log may be read."""

    buffer: Bytes
    base: int
    """Physical offset of the buffer's first byte."""
    low: int
    high: int
    """Entries that point before `low`, or at `high` or behind it, have no record (SHORT)."""


class Wanted(NamedTuple):
    """Which records count: those of one queue, with one of these tags codes."""

    topic: bytes
    padded_topic: Bytes
    """The topic behind TOPIC_LEAD bytes of anything."""
    queue_id: int
    by_code: bool
    """Whether the tags code decides; codes beyond 32 bits stand for something else, and match."""
    codes: Longs
    crc: bool
    """Check the CRC of bodies."""


class Limits(NamedTuple):
    """What was taken before, and where to stop; the first record is taken whatever its size."""

    messages: int
    bytes: int
    most_messages: int
    most_bytes: int


def wanted(
    topic: str, queue_id: int, codes: list[int] | None = None, *, crc: bool = True
) -> Wanted:
    """Return what to look for; without `codes`, every tags code matches."""
    name = topic.encode()
    padded = np.frombuffer(bytes(TOPIC_LEAD) + name, np.uint8)
    return Wanted(name, padded, queue_id, codes is not None, np.array(codes or (), np.int64), crc)
