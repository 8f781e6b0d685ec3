"""Judge and walk the records of a window (`mqlake.formats.record.check`).

A window is the first `length` bytes of `buffer`; SLACK more can be loaded. All positions are
relative to the buffer, whose first byte lies at physical offset `base`. The log's data end at
position `data_end`, which may lie beyond the window. Nothing is loaded before it is known to lie
within the window.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.verdict import MORE, NOTHING
from mqlake.formats import host, record, sys_flag
from mqlake.formats.file_name import MAX_NAME_BYTES
from mqlake.formats.record import Fault
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import (
    BLOCK,
    below_mask,
    borrow,
    equal_mask,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    lowest_bit,
)
from mqlake.kernels.utf8 import first_bytes, is_valid

GOOD, UNWRITTEN, BLANK, MAGIC, SIZE, LENGTHS, OFFSET, CRC, SHORT, TOPIC, _ = (
    int(fault) for fault in Fault
)
_V6_EXTRA = host.V6_SIZE - host.V4_SIZE
_V4_BORN_END = record.BORN_HOST_AT + host.V4_SIZE
_V4_BODY_AT = record.MIN_SIZE - 1 - 2
_V1_MAGIC, _V2_MAGIC, _BLANK_MAGIC = record.V1_MAGIC, record.V2_MAGIC, record.BLANK_MAGIC
_BLANK_FIRST, _MAGIC_FIRST = _BLANK_MAGIC >> 24, _V1_MAGIC >> 24
_FRAME_SIZE, _MIN_SIZE, _MAX_PROPERTIES = record.FRAME_SIZE, record.MIN_SIZE, record.MAX_PROPERTIES
_MAX_TOPIC_V1, _MAX_TOPIC_V2 = record.MAX_TOPIC_V1, record.MAX_TOPIC_V2
_MAGIC_AT, _BODY_CRC_AT, _SYS_FLAG_AT = record.MAGIC_AT, record.BODY_CRC_AT, record.SYS_FLAG_AT
_QUEUE_ID_AT, _QUEUE_OFFSET_AT = record.QUEUE_ID_AT, record.QUEUE_OFFSET_AT
_PHYSICAL_OFFSET_AT, _CRC_MASK = record.PHYSICAL_OFFSET_AT, record.CRC_MASK
_BORN_HOST_V6, _STORE_HOST_V6 = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_FIRST_PRINTABLE, _DELETE, _SLASH, _BACKSLASH, _DOT = 0x20, 0x7F, ord("/"), ord("\\"), ord(".")


@inlined
def judge_frame(buffer, at, length, data_end):
    """Judge size and magic; GOOD says that the whole record lies within the window."""
    if data_end - at < _FRAME_SIZE:
        return SHORT
    if length - at < _FRAME_SIZE:
        return MORE
    size, magic = load_i32(buffer, at), load_u32(buffer, at + _MAGIC_AT)
    if size == 0:
        return UNWRITTEN
    if magic == _BLANK_MAGIC:
        return BLANK
    if magic not in (_V1_MAGIC, _V2_MAGIC):
        return MAGIC
    if size < _MIN_SIZE or size > data_end - at:
        return SIZE
    return MORE if size > length - at else GOOD


@inlined
def lay_out(buffer, at):
    """Return (fault, body at, its length, topic at, its length, properties at, their length).

    GOOD or LENGTHS. The record's whole size lies within the window.
    """
    end = at + load_i32(buffer, at)
    topic_length_size, longest = 1, _MAX_TOPIC_V1
    if load_u32(buffer, at + _MAGIC_AT) == _V2_MAGIC:
        topic_length_size, longest = 2, _MAX_TOPIC_V2
    flags = load_i32(buffer, at + _SYS_FLAG_AT)
    body_at = at + _V4_BODY_AT
    if flags & _BORN_HOST_V6:
        body_at += _V6_EXTRA
    if flags & _STORE_HOST_V6:
        body_at += _V6_EXTRA
    left = end - body_at - topic_length_size - 2
    if left < 0:
        return LENGTHS, 0, 0, 0, 0, 0, 0
    body_length = load_i32(buffer, body_at - 4)
    if body_length < 0 or body_length > left:
        return LENGTHS, 0, 0, 0, 0, 0, 0
    topic_at = body_at + body_length + topic_length_size
    if topic_length_size == 1:
        topic_length = load_u8(buffer, topic_at - 1)
    else:
        topic_length = load_u16(buffer, topic_at - 2)
    left -= body_length
    if topic_length > left or topic_length > longest:
        return LENGTHS, 0, 0, 0, 0, 0, 0
    properties_at = topic_at + topic_length + 2
    properties_length = load_u16(buffer, properties_at - 2)
    if properties_length != left - topic_length or properties_length > _MAX_PROPERTIES:
        return LENGTHS, 0, 0, 0, 0, 0, 0
    return GOOD, body_at, body_length, topic_at, topic_length, properties_at, properties_length


@inlined
def is_safe_topic(buffer, at, length):
    """Say what `mqlake.formats.file_name.is_safe_topic` says."""
    if length == 0 or length > MAX_NAME_BYTES:
        return False
    if load_u8(buffer, at) == _DOT and (
        length == 1 or (length == 2 and load_u8(buffer, at + 1) == _DOT)
    ):
        return False
    for block in range(at, at + length, BLOCK):
        unsafe = (
            below_mask(buffer, block, _FIRST_PRINTABLE)
            | equal_mask(buffer, block, _DELETE)
            | equal_mask(buffer, block, _SLASH)
            | equal_mask(buffer, block, _BACKSLASH)
        )
        if first_bytes(unsafe, at + length - block) != 0:
            return False
    return is_valid(buffer, at, at + length)


@inlined
def has_good_body(buffer, at, body_at, body_length):
    """Return whether the body's CRC is the stated one; RocketMQ asks of an empty body nothing."""
    if body_length == 0:
        return True
    stated = load_i32(buffer, at + _BODY_CRC_AT)
    return crc32(buffer, body_at, body_length) & _CRC_MASK == stated


@kernel
def walk(buffer, at, length, stop, data_end, base, check_crc, records):
    """Describe the records from `at` on that start before `stop`, up to len(records) of them.

    Returns (position after the last, how many, how many of them with a CRC fault, verdict on that
    position): GOOD where the walk ended because it reached `stop` or filled `records`.
    """
    buffer = borrow(buffer)
    records = borrow(records)
    count, damaged = 0, 0
    while at < stop and count < len(records):
        fault = judge_frame(buffer, at, length, data_end)
        if fault != GOOD:
            return at, count, damaged, fault
        fault, body_at, body_length, topic_at, topic_length, properties_at, properties_length = (
            lay_out(buffer, at)
        )
        if fault != GOOD:
            return at, count, damaged, fault
        if load_i64(buffer, at + _PHYSICAL_OFFSET_AT) != base + at:
            return at, count, damaged, OFFSET
        if not is_safe_topic(buffer, topic_at, topic_length):
            return at, count, damaged, TOPIC
        if check_crc and not has_good_body(buffer, at, body_at, body_length):
            fault = CRC
            damaged += 1
        size, flags = load_i32(buffer, at), load_i32(buffer, at + _SYS_FLAG_AT)
        store_timestamp_at = at + _V4_BORN_END
        if flags & _BORN_HOST_V6:
            store_timestamp_at += _V6_EXTRA
        row = records[count]
        row.physical_offset = base + at
        row.queue_offset = load_i64(buffer, at + _QUEUE_OFFSET_AT)
        row.store_timestamp = load_i64(buffer, store_timestamp_at)
        row.size = size
        row.body_at = body_at
        row.body_length = body_length
        row.topic_at = topic_at
        row.topic_length = topic_length
        row.properties_at = properties_at
        row.properties_length = properties_length
        row.queue_id = load_i32(buffer, at + _QUEUE_ID_AT)
        row.sys_flag = flags
        row.fault = fault
        at += size
        count += 1
    return at, count, damaged, GOOD


@inlined
def _judge_candidate(buffer, at, length, data_end, segment_end, base, allowance):
    """Judge a position met by searching; (verdict, bytes of body that were read for it)."""
    fault = judge_frame(buffer, at, length, data_end)
    if fault == BLANK:
        return (BLANK if load_i32(buffer, at) == segment_end - at else MAGIC), 0
    if fault not in (GOOD, MORE) or length - at < _MIN_SIZE:
        return fault, 0
    if load_i64(buffer, at + _PHYSICAL_OFFSET_AT) != base + at:
        return OFFSET, 0
    if fault == MORE:
        return (MORE if load_i32(buffer, at) <= allowance else SIZE), 0
    fault, body_at, body_length, topic_at, topic_length, _, _ = lay_out(buffer, at)
    if fault != GOOD:
        return fault, 0
    if not is_safe_topic(buffer, topic_at, topic_length) or body_length > allowance:
        return TOPIC, 0
    return (GOOD if has_good_body(buffer, at, body_at, body_length) else CRC), body_length


@kernel
def search(buffer, at, length, stop, data_end, segment_end, base, allowance):
    """Find the first record, or blank record up to the segment's end, that starts before `stop`.

    Returns (position, verdict, bytes of bodies read in vain). The verdict is GOOD; BLANK; MORE for
    a record that may be good but crosses the window's end; or NOTHING: then the search continues at
    the position. Candidates whose bodies exceed what is left of `allowance` are passed over.
    """
    buffer = borrow(buffer)
    spent = 0
    last = min(stop - 1, length - _FRAME_SIZE) + _MAGIC_AT
    for block in range(at + _MAGIC_AT, last + 1, BLOCK):
        bits = equal_mask(buffer, block, _MAGIC_FIRST) | equal_mask(buffer, block, _BLANK_FIRST)
        bits = first_bytes(bits, last + 1 - block)
        while bits != 0:
            candidate = block + lowest_bit(bits) - _MAGIC_AT
            bits &= bits - np.uint64(1)
            verdict, read = _judge_candidate(
                buffer, candidate, length, data_end, segment_end, base, allowance - spent
            )
            if verdict in (GOOD, BLANK, MORE):
                return candidate, verdict, spent
            spent += read
    if length >= data_end:
        return stop, NOTHING, spent
    return min(stop, max(at, length - _FRAME_SIZE + 1)), NOTHING, spent
