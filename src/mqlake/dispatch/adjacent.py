"""Find records that lie one behind the other, wherever in a log they come from.

A broker answers a pull with such records (docs/formats/remoting.md). Each states the physical
offset that it has at the broker, which says nothing about where it lies here.
"""

from __future__ import annotations

import numpy as np

from mqlake.dispatch.batch import Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.formats import record
from mqlake.formats.record import Fault

AT, SIZE, QUEUE_OFFSET, FAULT, TAGS_AT, TAGS_LENGTH = range(6)
"""The rows of what is found: positions and lengths in bytes. FAULT is GOOD, or CRC if the checksum
of the body is wrong; TAGS_LENGTH is 0 without tags."""


def find_records(data: bytes, kernel: Kernel | None = None) -> tuple[Longs, Fault]:
    """Return i8[6, n] of the records from the first byte on, and what is behind the last one.

    That is SHORT where nothing is left.
    """
    rows = np.empty((6, len(data) // record.MIN_SIZE), np.int64)
    count, fault = (kernel or load()).adjacent(np.frombuffer(data, np.uint8), rows)
    return rows[:, :count], Fault(fault)
