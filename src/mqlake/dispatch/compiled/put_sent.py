"""Write one message that a client sent as a record, at the end of a log.

What this refuses is put by `mqlake.store.append.appender.Appender`.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.dispatch.compiled.put import (
    BORN_HOST_AT,
    BORN_SIZE_AT,
    CRC_SIZE_AT,
    LONGEST_BODY_AT,
    MAGIC_AT,
    MAX_PROPERTIES,
    PAIR_END,
    PART_AT,
    PART_LENGTH_AT,
    QUEUE_ID_AT,
    REFUSED,
    STORE_HOST_AT,
    STORE_SIZE_AT,
    is_int,
    prefix_size,
    publish,
    record_size,
    write_record,
)
from mqlake.formats import sys_flag
from mqlake.kernels.jit import brief_kernel
from mqlake.kernels.memory import borrow, load_i64, load_u8

BODY_AT, BODY_SIZE, PROPERTIES_SIZE, FLAG, SYS_FLAG, BORN_TIMESTAMP, RECONSUME_TIMES = range(7)
NUMBERS = 7
"""The numbers of a message: where its body begins in the received data, its size, the size of its
properties, and four fields of its record."""
_UNUSUAL = sys_flag.TRANSACTION_MASK | sys_flag.INNER_BATCH


@brief_kernel
def put_sent(buffer, at, end, base, scratch, route, queue_offset, now, data, properties, numbers):
    """Write a message as a record at `at`; return its size, or REFUSED if nothing was written.

    It is refused if it does not end before `end`, is longer than `scratch`, is too long for the
    store, or belongs to a transaction. It is made in `scratch`: its last property is the CRC of all
    of it, the size included, and the size must reach its place last.

    Args:
        route: see `mqlake.dispatch.writing.route.make_route`.
        data: contains the body.
        properties: as they are stored, from the first byte on; none of them is a record CRC.
        numbers: i8[NUMBERS].
    """
    buffer, scratch, properties = borrow(buffer), borrow(scratch), borrow(properties)
    numbers, route, data = borrow(numbers), borrow(route), borrow(data)
    body_at, body_size, stored = numbers[BODY_AT], numbers[BODY_SIZE], numbers[PROPERTIES_SIZE]
    flag, flags, reconsume_times = numbers[FLAG], numbers[SYS_FLAG], numbers[RECONSUME_TIMES]
    if body_at < 0 or body_size < 0 or body_at + body_size > len(data):
        return REFUSED
    if stored < 1 or stored > len(properties) or load_u8(properties, stored - 1) != PAIR_END:
        return REFUSED
    if flags & _UNUSUAL != 0 or not (is_int(flag) and is_int(flags) and is_int(reconsume_times)):
        return REFUSED
    crc_size, magic = load_i64(route, CRC_SIZE_AT), load_i64(route, MAGIC_AT)
    prefix = prefix_size(magic)
    topic_size = load_i64(route, PART_LENGTH_AT) - prefix
    born_size, own_size = load_i64(route, BORN_SIZE_AT), load_i64(route, STORE_SIZE_AT)
    size = record_size(born_size + own_size, body_size, magic, topic_size, stored + crc_size)
    if (
        size > min(end - at, len(scratch))
        or body_size > load_i64(route, LONGEST_BODY_AT)
        or stored + crc_size > MAX_PROPERTIES
    ):
        return REFUSED
    fields = (
        magic,
        load_i64(route, QUEUE_ID_AT),
        flag,
        queue_offset,
        base + at,
        flags,
        numbers[BORN_TIMESTAMP],
        now,
        reconsume_times,
        0,
    )
    hosts = route, BORN_HOST_AT, born_size, route, STORE_HOST_AT, own_size
    topic, body = (route, PART_AT + prefix, topic_size), (data, body_at, body_size)
    texts, crc = (properties, 0, stored), 1 if crc_size != 0 else 0
    write_record(scratch, 0, size, fields, hosts, topic, body, texts, crc)
    publish(buffer, at, scratch, 0, size)
    return size
