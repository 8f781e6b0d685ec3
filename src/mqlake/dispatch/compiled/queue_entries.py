"""Write consume-queue entries, queue by queue (`mqlake.formats.consume_queue`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, store_i32, store_i64

_SIZE_AT, _TAGS_CODE_AT = 8, 8 + 4


@inlined
def put_entry(entries, at, record):
    """Write the entry of a record, a row of RECORD."""
    store_i64(entries, at, record.physical_offset)
    store_i32(entries, at + _SIZE_AT, np.int64(record.size))
    store_i64(entries, at + _TAGS_CODE_AT, record.tags_code)


@kernel
def group(records, queues):
    """Sort by counting, which is stable: the entries of a queue stay in the log's order."""
    records = borrow(records)
    starts = np.zeros(queues + 1, np.int64)
    for row in range(len(records)):
        if records[row].queue >= 0:
            starts[records[row].queue + 1] += 1
    for queue in range(queues):
        starts[queue + 1] += starts[queue]
    entries = np.empty(starts[queues] * ENTRY_SIZE, np.uint8)
    queue_offsets = np.empty(starts[queues], np.int64)
    places = starts[:-1].copy()
    for row in range(len(records)):
        record = records[row]
        if record.queue >= 0:
            place = places[record.queue]
            places[record.queue] = place + 1
            put_entry(entries, place * ENTRY_SIZE, record)
            queue_offsets[place] = record.queue_offset
    return entries, starts, queue_offsets
