"""Choose the batches that get index entries (`mqlake.kafka.index.builder.IndexBuilder.add`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.kernels.jit import kernel
from mqlake.kernels.memory import borrow


@kernel
def choose(rows, interval, since, timestamp, offset, chosen, timestamps, offsets):
    """Walk over batches; `since` bytes have come since the last entry.

    `timestamp` and `offset` are the largest so far. For each of the batches that get an entry,
    `chosen` has its row, `timestamps` and `offsets` what is the largest then. Returns (entries,
    since, timestamp, offset).
    """
    rows = borrow(rows)
    count = 0
    for number in range(len(rows)):
        row = rows[number]
        if row.max_timestamp > timestamp:
            timestamp, offset = row.max_timestamp, row.last_offset
        if since > interval:
            chosen[count] = number
            timestamps[count] = timestamp
            offsets[count] = offset
            count += 1
            since = 0
        since += row.size
    return count, since, timestamp, offset
