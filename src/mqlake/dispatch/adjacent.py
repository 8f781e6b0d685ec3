"""Find records that lie consecutively, wherever in a log they come from.

A broker answers a pull with such records (docs/formats/remoting.md). Each states the physical
offset that it has at the broker, which says nothing about where it lies here.
"""

from __future__ import annotations

import numpy as np

from mqlake.dispatch.batch import Batch, Longs
from mqlake.dispatch.columns import KEY, RECORD
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.window import SLACK
from mqlake.formats import record
from mqlake.formats.record import Fault

AT, SIZE, QUEUE_OFFSET, FAULT, TAGS_AT, TAGS_LENGTH, SYS_FLAG = range(7)
"""The rows of what is found: positions and lengths in bytes. FAULT is GOOD, or CRC if the checksum
of the body is wrong; TAGS_LENGTH is 0 without tags."""

PADDING = bytes(SLACK)
"""What must follow records for `located`, because kernels load whole blocks."""


def find_records(data: bytes, kernel: Kernel | None = None) -> tuple[Longs, Fault]:
    """Return i8[7, n] of the records from the first byte on, and what is after the last one.

    That is SHORT where nothing is left.
    """
    rows = np.empty((7, len(data) // record.MIN_SIZE), np.int64)
    count, fault = (kernel or load()).adjacent(np.frombuffer(data, np.uint8), rows)
    return rows[:, :count], Fault(fault)


def located(data: bytes, at: Longs, kernel: Kernel | None = None) -> Batch:
    """Return records that `find_records` has found as a batch for `mqlake.dispatch.arrow`.

    Its rows have only what Arrow columns are made from. Their physical offset is their position,
    as if the log began with `data`; the column has the one that the record states.

    Args:
        data: ends with PADDING.
        at: the positions of the records.
    """
    buffer, records = np.frombuffer(data, np.uint8), np.empty(len(at), RECORD)
    (kernel or load()).locate(buffer, at, records)
    return Batch(buffer, 0, records, np.empty(0, KEY), QueueTable())
