"""Follow consume-queue entries to their records (`mqlake.dispatch.queue_read`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.dispatch.compiled.queues import equal_bytes
from mqlake.dispatch.compiled.record import has_good_body, judge_frame, lay_out
from mqlake.dispatch.queue_read import AT, FAULT, QUEUE_OFFSET, SIZE
from mqlake.dispatch.verdict import MORE, OTHER
from mqlake.formats import record
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.record import Fault
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import BLOCK, borrow, copy, load_i32, load_i64, prefetch_read

_GOOD, _WRONG_SIZE, _OFFSET, _CRC, _SHORT = (
    int(fault) for fault in (Fault.GOOD, Fault.SIZE, Fault.OFFSET, Fault.CRC, Fault.SHORT)
)
_QUEUE_ID_AT, _QUEUE_OFFSET_AT = record.QUEUE_ID_AT, record.QUEUE_OFFSET_AT
_PHYSICAL_OFFSET_AT = record.PHYSICAL_OFFSET_AT
_ENTRY_SIZE, _SIZE_AT, _TAGS_CODE_AT = ENTRY_SIZE, 8, 8 + 4
_HALF_INT = 1 << 31
_AHEAD = 4
"""Records between the one that is judged and the one that is fetched into the core's cache."""
_FETCHED = 8 * BLOCK
"""Bytes of a record that are fetched ahead. The CPU itself fetches what follows them."""
_QUEUE_OFFSET, _AT, _SIZE, _FAULT = QUEUE_OFFSET, AT, SIZE, FAULT


@inlined
def may_match(code, codes):
    """Return whether the tags code of an entry can be that of a chosen tag."""
    if code < -_HALF_INT or code >= _HALF_INT:
        return True
    for place in range(len(codes)):  # noqa: SIM110 (Numba knows no generators)
        if codes[place] == code:
            return True
    return False


@inlined
def _fetch(log, base, entries, number, count):
    """Begin to load the record of an entry: records of one queue are scattered over the log."""
    if number < count:
        place = number * _ENTRY_SIZE
        at = load_i64(entries, place) - base
        size = min(load_i32(entries, place + _SIZE_AT), _FETCHED)
        for block in range(0, size + BLOCK, BLOCK):
            prefetch_read(log, at + block)


@inlined
def judge_record(log, at, end, offset, size, topic, lead, queue_id, queue_offset, check_crc):
    """Judge the record at position `at`; `topic` is the expected one, behind `lead` bytes."""
    fault = judge_frame(log, at, end, end)
    if fault != _GOOD:
        return fault
    fault, body_at, body_length, topic_at, topic_length, _, _ = lay_out(log, at)
    if fault != _GOOD:
        return fault
    if load_i64(log, at + _PHYSICAL_OFFSET_AT) != offset:
        return _OFFSET
    if load_i32(log, at) != size:
        return _WRONG_SIZE
    if (
        topic_length != len(topic) - lead
        or not equal_bytes(log, topic_at, topic, lead, topic_length)
        or load_i32(log, at + _QUEUE_ID_AT) != queue_id
        or load_i64(log, at + _QUEUE_OFFSET_AT) != queue_offset
    ):
        return OTHER
    if check_crc and not has_good_body(log, at, body_at, body_length):
        return _CRC
    return _GOOD


@kernel
def follow(
    entries,
    first,
    log,
    base,
    low,
    high,
    topic,
    lead,
    queue_id,
    by_code,
    codes,
    messages,
    total,
    most,
    most_bytes,
    check_crc,
    rows,
):
    """Return (entries gone through, rows filled, messages, bytes, GOOD or MORE)."""
    entries, log, topic = borrow(entries), borrow(log), borrow(topic)
    codes, rows = borrow(codes), borrow(rows)
    filled, segment_end = 0, base + len(log)
    end = min(segment_end, high) - base
    count = len(entries) // _ENTRY_SIZE
    for number in range(count):
        _fetch(log, base, entries, number + _AHEAD, count)
        place = number * _ENTRY_SIZE
        offset = load_i64(entries, place)
        size = load_i32(entries, place + _SIZE_AT)
        if messages > 0 and (messages >= most or total + size > most_bytes):
            return number, filled, messages, total, _GOOD
        if by_code and not may_match(load_i64(entries, place + _TAGS_CODE_AT), codes):
            continue
        if offset < low or offset >= high:
            fault = _SHORT
        elif offset < base or offset >= segment_end:
            return number, filled, messages, total, MORE
        else:
            fault = judge_record(
                log,
                offset - base,
                end,
                offset,
                size,
                topic,
                lead,
                queue_id,
                first + number,
                check_crc,
            )
        rows[_QUEUE_OFFSET, filled] = first + number
        rows[_AT, filled] = offset - base if fault == _GOOD else offset
        rows[_SIZE, filled], rows[_FAULT, filled] = size, fault
        filled += 1
        if fault == _GOOD:
            messages += 1
            total += size
    return count, filled, messages, total, _GOOD


@kernel
def copy_records(target, buffer, at, sizes):
    """Copy records consecutively to the start of `target`; all lie in `buffer` and fit."""
    target, buffer = borrow(target), borrow(buffer)
    to = 0
    for number in range(len(at)):
        copy(target, to, buffer, at[number], sizes[number])
        to += sizes[number]
