"""Derive what a few records at the end of a log add to queues and index, in one call."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.describe import describe
from mqlake.dispatch.compiled.queue_entries import put_entry
from mqlake.dispatch.compiled.record import walk
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.record import Fault
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.memory import borrow

_GOOD = int(Fault.GOOD)


@inlined
def _by_queue(records, order):
    """Fill `order` with the rows that have a queue, by its number, in the log's order; return how
    many they are. Few rows are sorted fastest by inserting each.
    """
    count = 0
    for row in range(len(records)):
        number = records[row].queue
        if number >= 0:
            place = count
            while place > 0 and records[order[place - 1]].queue > number:
                order[place] = order[place - 1]
                place -= 1
            order[place] = row
            count += 1
    return count


@inlined
def _fill_runs(records, order, count, entries, runs):
    """Write the queue entries, and a run for those of a queue with consecutive offsets."""
    filled, number, following = 0, np.int64(-1), np.int64(0)
    for place in range(count):
        record = records[order[place]]
        put_entry(entries, place * ENTRY_SIZE, record)
        if record.queue != number or record.queue_offset != following:
            number = np.int64(record.queue)
            runs[filled, 0], runs[filled, 1], runs[filled, 3] = number, place, record.queue_offset
            filled += 1
        runs[filled - 1, 2] = place + 1
        following = record.queue_offset + 1
    return filled


@brief_kernel
def digest(
    buffer,
    at,
    end,
    base,
    records,
    keys,
    slots,
    queues,
    arena,
    fill,
    seed,
    delay_levels,
    index_tags,
    entries,
    runs,
    hashes,
    offsets,
    times,
):
    """Describe the records from `at` to `end`, and fill what `mqlake.dispatch.digest` hands out.

    Returns (records, runs, keys, whether the last record has a key, physical offset and store
    timestamp of the last record, the same of the last one that has a queue). No records if there
    are more than `records` has rows, or anything but good records: then nothing is filled, except
    that queues may have got numbers.
    """
    buffer, all_records = borrow(buffer), borrow(records)
    entries, runs = borrow(entries), borrow(runs)
    stop, rows, _, verdict = walk(buffer, at, end, end, end, base, False, all_records)
    if stop != end or verdict != _GOOD:
        return 0, 0, 0, False, 0, 0, 0, 0
    found = all_records[:rows]
    count = describe(
        buffer, found, keys, slots, queues, arena, fill, seed, delay_levels, True, index_tags
    )
    for key in range(count):
        record = found[keys[key].record]
        hashes[key] = keys[key].hash
        offsets[key], times[key] = record.physical_offset, record.store_timestamp
    order = np.empty(rows, np.int64)
    queued = _by_queue(found, order)
    filled = _fill_runs(found, order, queued, entries, runs)
    last, last_queued = found[rows - 1], rows - 1
    while last_queued > 0 and found[last_queued].queue < 0:
        last_queued -= 1
    return (
        rows,
        filled,
        count,
        last.key_count > 0,
        last.physical_offset,
        last.store_timestamp,
        found[last_queued].physical_offset,
        found[last_queued].store_timestamp,
    )
