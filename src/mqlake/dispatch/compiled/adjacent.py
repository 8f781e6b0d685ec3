"""Find records that lie consecutively (`mqlake.dispatch.adjacent`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.properties import find_properties
from mqlake.dispatch.compiled.record import has_good_body, is_safe_topic, judge_frame, lay_out
from mqlake.formats import record
from mqlake.formats.record import Fault
from mqlake.kernels.jit import kernel, outlined
from mqlake.kernels.memory import BLOCK, borrow, copy, load_i32, load_i64

_GOOD, _CRC, _SHORT, _TOPIC = int(Fault.GOOD), int(Fault.CRC), int(Fault.SHORT), int(Fault.TOPIC)
_QUEUE_OFFSET_AT, _SYS_FLAG_AT = record.QUEUE_OFFSET_AT, record.SYS_FLAG_AT


@kernel
def adjacent(buffer, rows):
    """Fill a column of `rows` for each record; return how many, and what is after the last one."""
    data, rows = borrow(buffer), borrow(rows)
    # The position in `buffer` where `data` begins, and the end of the records in `data`.
    start, end = np.int64(0), np.int64(len(data))
    count, at = 0, np.int64(0)
    while at < end:
        fault = judge_frame(data, at, end, end)
        if fault != _GOOD:
            return count, fault
        size = np.int64(load_i32(data, at))
        if at + size + BLOCK > len(data):
            data, start, end, at = _with_room(data, at), at, end - at, np.int64(0)
        fault, body, body_length, topic, topic_length, found, found_length = lay_out(data, at)
        if fault != _GOOD:
            return count, fault
        if not is_safe_topic(data, topic, topic_length):
            return count, _TOPIC
        tags, _, _, _ = find_properties(data, found, found + found_length)
        rows[0, count], rows[1, count] = start + at, size
        rows[2, count] = load_i64(data, at + _QUEUE_OFFSET_AT)
        rows[3, count] = _GOOD if has_good_body(data, at, body, body_length) else _CRC
        tags_at, tags_length = tags
        rows[4, count], rows[5, count] = start + tags_at if tags_length else 0, tags_length
        rows[6, count] = load_i32(data, at + _SYS_FLAG_AT)
        at += size
        count += 1
    return count, _SHORT


@outlined
def _with_room(data, at):
    """Return a copy of the bytes from a position on, after which a whole block can be loaded."""
    size = len(data) - at
    copied = np.empty(size + BLOCK, np.uint8)
    copied[size:] = 0
    copy(copied, 0, data, at, size)
    return copied


@kernel
def locate(buffer, at, records):
    """Fill the rows of records that `adjacent` has found, each with its position."""
    buffer, records = borrow(buffer), borrow(records)
    for row in range(len(at)):
        start = np.int64(at[row])
        _, body, body_length, topic, topic_length, found, found_length = lay_out(buffer, start)
        one = records[row]
        one.physical_offset = start
        one.sys_flag = load_i32(buffer, start + _SYS_FLAG_AT)
        one.body_at, one.body_length = body, body_length
        one.topic_at, one.topic_length = topic, topic_length
        one.properties_at, one.properties_length = found, found_length
