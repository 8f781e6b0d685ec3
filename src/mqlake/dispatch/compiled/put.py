"""Write one message as a record, at its final position (`mqlake.dispatch.writing.plain_put`).

Its readable twin is `mqlake.store.append.appender.Appender`, which puts what this kernel refuses.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.record_crc import put_record_crc
from mqlake.formats import host, properties, record, sys_flag
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.memory import (
    borrow,
    copy,
    copy_text,
    load_i64,
    publish_i32,
    store_i32,
    store_i64,
    store_u8,
    text_has,
)

REFUSED = -1
HEAD_SIZE, _HOST = record.HEAD_SIZES[0], host.V4_SIZE
_CRC_MASK = record.CRC_MASK
_INT_SIZE, LENGTH_SIZE = 4, 2
MAX_PROPERTIES = properties.MAX_LENGTH
PAIR_END = ord(properties.PROPERTY_SEPARATOR)
KEYS, TAGS = (
    np.frombuffer(f"{name}{properties.NAME_VALUE_SEPARATOR}".encode(), np.uint8)
    for name in (properties.KEYS, properties.TAGS)
)
UNUSUAL = sys_flag.TRANSACTION_MASK | sys_flag.INNER_BATCH
_HOST_BITS = sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1

# Positions in a route, bytes.
QUEUE_ID_AT, MAGIC_AT, LONGEST_BODY_AT, CRC_SIZE_AT, PART_LENGTH_AT, _BORN_HOST_AT = range(0, 48, 8)
_STORE_HOST_AT = _BORN_HOST_AT + _HOST
PART_AT = _STORE_HOST_AT + _HOST


@inlined
def is_int(number):
    """Return whether a number fits into 32 bits."""
    return _INT_MIN <= number <= _INT_MAX


@inlined
def _pair_size(name, text):
    """Return the bytes of a property, REFUSED if its value cannot be written as it is."""
    length = len(text)
    if length == 0:
        return 0
    if not text._is_ascii or text_has(text, length, PAIR_END):
        return REFUSED
    return len(name) + length + 1


@inlined
def _put_pair(target, to, name, text):
    length = len(text)
    if length == 0:
        return to
    copy(target, to, name, 0, len(name))
    to += len(name)
    copy_text(target, to, text, length)
    store_u8(target, to + length, PAIR_END)
    return to + length + 1


@inlined
def put_start(target, start, size, route, physical_offset, queue_offset, now, body, span, numbers):
    """Write a record up to its properties; return the position of these.

    Args:
        span: where its body is in `body`: (position, length).
        numbers: flag, system flag, born timestamp, reconsume times, bytes of properties.
    """
    flag, flags, born_timestamp, reconsume_times, properties_size = numbers
    body_at, body_size = span
    part = load_i64(route, PART_LENGTH_AT)
    store_i32(target, start, size)
    store_i32(target, start + 4, load_i64(route, MAGIC_AT))
    store_i32(target, start + 8, crc32(body, body_at, body_size) & _CRC_MASK)
    store_i32(target, start + 12, load_i64(route, QUEUE_ID_AT))
    store_i32(target, start + 16, flag)
    store_i64(target, start + 20, queue_offset)
    store_i64(target, start + 28, physical_offset)
    store_i32(target, start + 36, flags & ~_HOST_BITS)
    store_i64(target, start + 40, born_timestamp if born_timestamp != 0 else now)
    copy(target, start + 48, route, _BORN_HOST_AT, _HOST)
    store_i64(target, start + 56, now)
    copy(target, start + 64, route, _STORE_HOST_AT, _HOST)
    store_i32(target, start + 72, reconsume_times)
    store_i64(target, start + 76, 0)
    store_i32(target, start + 84, body_size)
    to = start + HEAD_SIZE
    copy(target, to, body, body_at, body_size)
    to += body_size
    copy(target, to, route, PART_AT, part)
    to += part
    store_u8(target, to, properties_size >> 8)
    store_u8(target, to + 1, properties_size)
    return to + LENGTH_SIZE


@inlined
def publish(buffer, at, record, size):
    """Copy a record into the log. Its size is stored last: without it, this is not a record."""
    copy(buffer, at + _INT_SIZE, record, _INT_SIZE, size - _INT_SIZE)
    publish_i32(buffer, at, size)


@inlined
def _write(target, size, route, physical_offset, queue_offset, now, body, keys, tags, numbers):
    span = 0, len(body)
    to = put_start(target, 0, size, route, physical_offset, queue_offset, now, body, span, numbers)
    to = _put_pair(target, to, KEYS, keys)
    to = _put_pair(target, to, TAGS, tags)
    if load_i64(route, CRC_SIZE_AT) != 0:
        put_record_crc(target, 0, to)


@brief_kernel
def put(
    buffer,
    at,
    end,
    base,
    scratch,
    route,
    queue_offset,
    now,
    body,
    keys,
    tags,
    flag,
    flags,
    born_timestamp,
    reconsume_times,
):
    """Write a message as a record at `at`; return its size, or REFUSED if nothing was written.

    It is refused if it does not end before `end`, or is longer than `scratch`, or is not plain, or
    not valid. It is made in `scratch`: its last property is the CRC of all of it, the size
    included, and the size must reach its place last. Without it, the bytes are not a record.
    """
    buffer, scratch = borrow(buffer), borrow(scratch)
    keys_size, tags_size = _pair_size(KEYS, keys), _pair_size(TAGS, tags)
    if keys_size < 0 or tags_size < 0 or flags & UNUSUAL != 0:
        return REFUSED
    if not (is_int(flag) and is_int(flags) and is_int(reconsume_times)):
        return REFUSED
    properties_size = keys_size + tags_size + load_i64(route, CRC_SIZE_AT)
    part, body_size = load_i64(route, PART_LENGTH_AT), len(body)
    size = HEAD_SIZE + body_size + part + LENGTH_SIZE + properties_size
    if (
        size > min(end - at, len(scratch))
        or body_size > load_i64(route, LONGEST_BODY_AT)
        or properties_size > MAX_PROPERTIES
    ):
        return REFUSED
    numbers = flag, flags, born_timestamp, reconsume_times, properties_size
    _write(scratch, size, route, base + at, queue_offset, now, body, keys, tags, numbers)
    publish(buffer, at, scratch, size)
    return size
