"""Write the records of batches, and of rows of tables, in one call.

A kernel writes drafts (`mqlake.dispatch.drafts`); another lays out the messages of a batch as such.
The position that a record states can be changed afterwards (`state_crcs`).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.drafts import DRAFT, HOST_ROUTE, QUEUE_ROUTE, Drafts, Routes, Rows
from mqlake.dispatch.kernel import Kernel
from mqlake.formats import message_batch

_LEAD = 16
"""Bytes before the first message, since kernels load whole words."""

_MANY = 1 << 20
"""Bytes of rows."""


class QueueRoute(NamedTuple):
    """What the records of a queue have in common; no `part` where its topic is not taken."""

    next_offset: int
    magic: int
    part: bytes | None
    """The topic as a record holds it: its length, and its bytes."""


def draft_batch(body: bytes, kernel: Kernel) -> Drafts | None:
    """Lay out the messages of a batch's body, as of queue 0 and host 0; None if it is malformed.

    What a message shares with its batch (queue id, system flag, …) is 0, and for the caller to set.
    """
    source = np.frombuffer(bytes(_LEAD) + body, np.uint8)
    rows = _zero_rows(len(body) // message_batch.LEAST_SIZE)
    count = kernel.draft_batch(source, _LEAD, rows)
    if count < 0:
        return None
    rows = rows[:count]
    rows["regular"] = 1
    return Drafts(source, source, rows)


def _zero_rows(count: int) -> Rows:
    """Return rows of zeros.

    The memory of many is asked of the system, which zeroes the pages that are used: a batch may
    have far fewer messages than its size allows.
    """
    size = count * DRAFT.itemsize
    if size < _MANY:
        return np.zeros(count, DRAFT)
    return np.frombuffer(mmap.mmap(-1, size), DRAFT)


def make_routes(queues: Iterable[QueueRoute], hosts: Iterable[bytes | None]) -> Routes:
    """Return the routes of drafts; the last host is the store's own, None one that is not taken."""
    parts = bytearray()

    def place(part: bytes | None) -> tuple[int, int]:
        if part is None:
            return 0, -1
        at = len(parts)
        parts.extend(part)
        return at, len(part)

    queue_rows = [(queue.next_offset, queue.magic, *place(queue.part)) for queue in queues]
    host_rows = [place(host) for host in hosts]
    return Routes(
        np.array(queue_rows, QUEUE_ROUTE),
        np.array(host_rows, HOST_ROUTE),
        np.frombuffer(parts, np.uint8),
    )


def write_records(
    target: Bytes,
    to: int,
    end: int,
    base: int,
    drafts: Drafts,
    first: int,
    routes: Routes,
    now: int,
    kernel: Kernel,
    *,
    append_crc: bool,
) -> tuple[int, int]:
    """Write the drafts from row `first` on as records, into `target` from byte `to` on.

    Ends before the first that is not regular, whose topic or host is not taken, or that does not
    fit before byte `end`. Counts the queues' `next_offset` up, and fills the rows' last columns.

    Args:
        base: physical offset of the first byte of `target`.
        now: store timestamp, in milliseconds.
        append_crc: state the CRC of each record in its last property, for which the drafts leave
            room; a draft that does not ends the writing as one that is not regular does.

    Returns:
        (the row that comes next, position after the records)
    """
    return kernel.write_records(target, to, end, base, drafts, first, routes, now, int(append_crc))


def state_crcs(buffer: Bytes, starts: Longs, sizes: Longs, kernel: Kernel) -> None:
    """State the CRC of records in their last property again, once their other bytes are final.

    Args:
        starts: of the records in `buffer`, which were written with `append_crc`.
        sizes: bytes of each record.
    """
    kernel.state_crcs(buffer, starts, sizes)
