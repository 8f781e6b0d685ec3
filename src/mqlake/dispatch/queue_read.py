"""Follow the entries of a queue to their records in the log (docs/live-store.md, "Reading").

Upstream: the loop of `DefaultMessageStore.getMessage`. RocketMQ trusts the entry. Here an entry
counts only if the record that it points to has the same topic, queue, queue offset and size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Bytes, Longs

QUEUE_OFFSET, AT, SIZE, FAULT = range(4)
"""The results of following entries, i8[4, n]: one column for each name, in this order.

FAULT is Fault.GOOD, or the reason why there is no such record: another Fault, or OTHER. AT is the
record's position in the segment's buffer or, if the entry has no record, its physical offset. SIZE
is the size in the entry.
"""

TOPIC_LEAD = 8
"""Bytes before a topic that is compared with others, because kernels load whole words."""


class LogPart(NamedTuple):
    """One segment of the log, and the range of the log that may be read."""

    buffer: Bytes
    base: int
    """Physical offset of the buffer's first byte."""
    low: int
    high: int
    """Entries that point before `low`, or at `high` or after it, have no record (SHORT)."""


class Wanted(NamedTuple):
    """Which records count: those of one queue, with one of these tags codes."""

    topic: bytes
    padded_topic: Bytes
    """The topic, after TOPIC_LEAD bytes with any content."""
    queue_id: int
    by_code: bool
    """Whether the tags code decides. Codes beyond 32 bits mean something else, and match."""
    codes: Longs
    crc: bool
    """Check the CRC of bodies."""


class ReadLimits(NamedTuple):
    """What was read before, and where to stop. The first record is read whatever its size."""

    messages: int
    bytes: int
    most_messages: int
    most_bytes: int


def wanted(
    topic: str, queue_id: int, codes: list[int] | None = None, *, crc: bool = True
) -> Wanted:
    """Return the records to look for; without `codes`, every tags code matches."""
    name = topic.encode()
    padded = np.frombuffer(bytes(TOPIC_LEAD) + name, np.uint8)
    return Wanted(name, padded, queue_id, codes is not None, np.array(codes or (), np.int64), crc)
