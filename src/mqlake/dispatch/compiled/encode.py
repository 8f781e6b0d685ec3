"""Write drafts as records (`mqlake.formats.record`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.record_crc import missing_separator, put_record_crc
from mqlake.formats import host, properties, record, record_crc, sys_flag
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, copy, store_i32, store_i64, store_u8

_HEAD_SIZE = record.HEAD_SIZES[0] - 2 * host.V4_SIZE
_V6_SIZE = host.V6_SIZE
_BORN_BIT, _STORE_BIT = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_UNQUEUED_BIT = sys_flag.TRANSACTION_PREPARED & sys_flag.TRANSACTION_ROLLBACK
_CRC_MASK = record.CRC_MASK
_LENGTH_SIZE = 2
_MAX_PROPERTIES = properties.MAX_LENGTH
_RECORD_CRC_SIZE, _SEPARATOR = record_crc.SIZE, record_crc.SEPARATOR


@inlined
def _put_i32(target, to, number):
    store_i32(target, to, number)
    return to + 4


@inlined
def _put_i64(target, to, number):
    store_i64(target, to, number)
    return to + 8


@inlined
def _put_span(target, to, source, at, length):
    copy(target, to, source, at, length)
    return to + length


@kernel
def write_records(
    target, to, end, base, source, texts, drafts, first, queues, hosts, parts, now, append_crc
):
    """Write the drafts from row `first` on, until one is not regular or does not fit before `end`.

    Each states its CRC if `append_crc` is 1; then one is not regular either whose properties become
    too long by that.

    Returns (the row that comes next, position after the records). `base` is the physical offset of
    the first byte of `target`.
    """
    target, source, texts, parts = borrow(target), borrow(source), borrow(texts), borrow(parts)
    own = hosts[len(hosts) - 1]
    store_bit = _STORE_BIT if own.part_length == _V6_SIZE else 0
    for row in range(first, len(drafts)):
        draft = drafts[row]
        if draft.regular == 0:
            return row, to
        queue, born = queues[draft.queue], hosts[draft.host]
        own_length = np.int64(draft.properties_length)
        separator, length = np.int64(0), own_length
        if append_crc != 0:
            separator = missing_separator(texts, draft.properties_at, own_length)
            length += separator + _RECORD_CRC_SIZE
            if length > _MAX_PROPERTIES:
                return row, to
        size = (
            _HEAD_SIZE
            + born.part_length
            + own.part_length
            + draft.body_length
            + queue.part_length
            + _LENGTH_SIZE
            + length
        )
        if queue.part_length < 0 or born.part_length < 0 or size > end - to:
            return row, to
        flags = draft.sys_flag & ~(_BORN_BIT | _STORE_BIT) | store_bit
        if born.part_length == _V6_SIZE:
            flags |= _BORN_BIT
        queue_offset = np.int64(0)
        if flags & _UNQUEUED_BIT == 0:
            queue_offset = queue.next_offset
            queue.next_offset = queue_offset + 1
        draft.physical_offset, draft.queue_offset, draft.size = base + to, queue_offset, size
        start = to
        to = _put_i32(target, to, size)
        to = _put_i32(target, to, queue.magic)
        to = _put_i32(
            target, to, crc32(source, draft.body_at, np.int64(draft.body_length)) & _CRC_MASK
        )
        to = _put_i32(target, to, draft.queue_id)
        to = _put_i32(target, to, draft.flag)
        to = _put_i64(target, to, queue_offset)
        to = _put_i64(target, to, draft.physical_offset)
        to = _put_i32(target, to, flags)
        to = _put_i64(target, to, now if draft.born_timestamp == 0 else draft.born_timestamp)
        to = _put_span(target, to, parts, np.int64(born.part_at), np.int64(born.part_length))
        to = _put_i64(target, to, now)
        to = _put_span(target, to, parts, np.int64(own.part_at), np.int64(own.part_length))
        to = _put_i32(target, to, draft.reconsume_times)
        to = _put_i64(target, to, draft.prepared_transaction_offset)
        to = _put_i32(target, to, draft.body_length)
        to = _put_span(target, to, source, draft.body_at, np.int64(draft.body_length))
        to = _put_span(target, to, parts, np.int64(queue.part_at), np.int64(queue.part_length))
        store_u8(target, to, length >> 8)
        store_u8(target, to + 1, length)
        to += _LENGTH_SIZE
        to = _put_span(target, to, texts, draft.properties_at, own_length)
        if append_crc != 0:
            if separator != 0:
                store_u8(target, to, _SEPARATOR)
            to = put_record_crc(target, start, to + separator)
    return len(drafts), to
