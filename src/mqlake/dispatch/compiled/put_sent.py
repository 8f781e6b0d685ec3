"""Write one message that a client sent as a record (`mqlake.dispatch.writing.plain_put`).

Its readable twin is `mqlake.store.append.appender.Appender`, which puts all that this refuses.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.dispatch.compiled.put import (
    CRC_SIZE_AT,
    HEAD_SIZE,
    LENGTH_SIZE,
    LONGEST_BODY_AT,
    MAX_PROPERTIES,
    PAIR_END,
    PART_LENGTH_AT,
    REFUSED,
    UNUSUAL,
    is_int,
    publish,
    put_start,
)
from mqlake.dispatch.compiled.record_crc import put_record_crc
from mqlake.kernels.jit import brief_kernel
from mqlake.kernels.memory import borrow, copy, load_i64, load_u8

BODY_AT, BODY_SIZE, PROPERTIES_SIZE, FLAG, SYS_FLAG, BORN_TIMESTAMP, RECONSUME_TIMES = range(7)
NUMBERS = 7
"""The numbers of a message: where its body begins in the received data, its size, the size of its
properties, and four fields of its record."""


@brief_kernel
def put_sent(buffer, at, end, base, scratch, route, queue_offset, now, data, properties, numbers):
    """Write a message as a record at `at`; return its size, or REFUSED if nothing was written.

    It is refused if it does not end before `end`, is longer than `scratch`, is too long for the
    store, or belongs to a transaction. It is made in `scratch`, for the reason that `put` has.

    Args:
        data: contains the body.
        properties: as they are stored, from the first byte on; none of them is a record CRC.
        numbers: i8[NUMBERS].
    """
    buffer, scratch, properties = borrow(buffer), borrow(scratch), borrow(properties)
    numbers = borrow(numbers)
    body_at, body_size, stored = numbers[BODY_AT], numbers[BODY_SIZE], numbers[PROPERTIES_SIZE]
    flag, flags, reconsume_times = numbers[FLAG], numbers[SYS_FLAG], numbers[RECONSUME_TIMES]
    if body_at < 0 or body_size < 0 or body_at + body_size > len(data):
        return REFUSED
    if stored < 1 or stored > len(properties) or load_u8(properties, stored - 1) != PAIR_END:
        return REFUSED
    if flags & UNUSUAL != 0 or not (is_int(flag) and is_int(flags) and is_int(reconsume_times)):
        return REFUSED
    crc_size, part = load_i64(route, CRC_SIZE_AT), load_i64(route, PART_LENGTH_AT)
    properties_size = stored + crc_size
    size = HEAD_SIZE + body_size + part + LENGTH_SIZE + properties_size
    if (
        size > min(end - at, len(scratch))
        or body_size > load_i64(route, LONGEST_BODY_AT)
        or properties_size > MAX_PROPERTIES
    ):
        return REFUSED
    span = body_at, body_size
    written = flag, flags, numbers[BORN_TIMESTAMP], reconsume_times, properties_size
    to = put_start(scratch, 0, size, route, base + at, queue_offset, now, data, span, written)
    copy(scratch, to, properties, 0, stored)
    if crc_size != 0:
        put_record_crc(scratch, 0, to + stored)
    publish(buffer, at, scratch, size)
    return size
