"""Write the messages of one batch that a client sent as records, at the end of a log.

What this refuses is put by `mqlake.store.append.batch_puts.BatchPuts`.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.broker.lane.compiled.spans import text_bytes
from mqlake.dispatch.compiled.put import (
    BORN_HOST_AT,
    BORN_SIZE_AT,
    CRC_SIZE_AT,
    LONGEST_BODY_AT,
    MAGIC_AT,
    MAX_PROPERTIES,
    PART_AT,
    PART_LENGTH_AT,
    QUEUE_ID_AT,
    REFUSED,
    STORE_HOST_AT,
    STORE_SIZE_AT,
    prefix_size,
    publish,
    record_size,
    stored_size,
    write_record,
)
from mqlake.dispatch.compiled.put_sent import (
    BODY_AT,
    BODY_SIZE,
    BORN_TIMESTAMP,
    RECONSUME_TIMES,
    SYS_FLAG,
)
from mqlake.dispatch.compiled.record_crc import may_hold_crc
from mqlake.formats import message_batch, properties
from mqlake.formats.own_properties import LONGEST_SENT, POP_RECEIPT
from mqlake.kernels.jit import brief_kernel
from mqlake.kernels.memory import borrow, load_i32, load_i64, load_u16
from mqlake.kernels.text_search import holds

_HEAD_SIZE, _LENGTH_SIZE = message_batch.HEAD.size, message_batch.LENGTH.size
_FLAG_AT, _BODY_LENGTH_AT = message_batch.FLAG_AT, message_batch.BODY_LENGTH_AT
_PAIR = properties.NAME_VALUE_SEPARATOR
_RECEIPT, _CANCEL = text_bytes(f"{POP_RECEIPT}{_PAIR}"), text_bytes(f"{properties.CANCEL}{_PAIR}")
_LIGHT = text_bytes("INNER_MULTI_")
"""Begins both properties that say which light queues a message is in."""
# In texts of hexadecimal digits, and in the names of usual properties, these letters are rare.
_RARE_P, _RARE_M, _RARE_L = POP_RECEIPT.index("P"), properties.CANCEL.index("M"), 8


@brief_kernel
def put_batch(buffer, at, end, base, scratch, route, queue_offset, now, data, message):
    """Write the messages of a batch as records at `at`; return (bytes of them, how many they are).

    The bytes are REFUSED if nothing was written: the batch is malformed, its records do not end
    before `end`, or are longer than `scratch`, a message is too long for the store, or the body has
    a property that clients must not send. The records are made in `scratch`, where they remain. The
    size of the first one is stored last, so that the log has all of them or none.

    Args:
        route: see `mqlake.dispatch.writing.route.make_route`.
        queue_offset: of the first message.
        data: contains the body.
        message: i8[NUMBERS]: where the body is, and what all messages have in common.
    """
    buffer, scratch, route = borrow(buffer), borrow(scratch), borrow(route)
    data, message = borrow(data), borrow(message)
    place, body_size = message[BODY_AT], message[BODY_SIZE]
    following, crc = place + body_size, 1 if load_i64(route, CRC_SIZE_AT) != 0 else 0
    if place < 0 or body_size <= 0 or following > len(data):
        return REFUSED, 0
    if (
        body_size > load_i64(route, LONGEST_BODY_AT)
        or holds(data, place, following, _RECEIPT, _RARE_P)
        or holds(data, place, following, _CANCEL, _RARE_M)
        or holds(data, place, following, _LIGHT, _RARE_L)
        or may_hold_crc(data, place, following)
    ):
        return REFUSED, 0
    magic, queue_id = load_i64(route, MAGIC_AT), load_i64(route, QUEUE_ID_AT)
    prefix = prefix_size(magic)
    topic = route, PART_AT + prefix, load_i64(route, PART_LENGTH_AT) - prefix
    born_size, own_size = load_i64(route, BORN_SIZE_AT), load_i64(route, STORE_SIZE_AT)
    hosts = route, BORN_HOST_AT, born_size, route, STORE_HOST_AT, own_size
    flags, born, times = message[SYS_FLAG], message[BORN_TIMESTAMP], message[RECONSUME_TIMES]
    room, to, count = min(end - at, len(scratch)), 0, 0
    while place < following:
        text_at = place + _HEAD_SIZE
        if following - text_at < _LENGTH_SIZE:
            return REFUSED, 0
        length = load_i32(data, place + _BODY_LENGTH_AT)
        if length < 0 or length > following - text_at - _LENGTH_SIZE:
            return REFUSED, 0
        texts_size = load_u16(data, text_at + length)
        texts_at = text_at + length + _LENGTH_SIZE
        if texts_size > min(LONGEST_SENT, following - texts_at):
            return REFUSED, 0
        stored = stored_size(data, texts_at, texts_size, crc)
        size = record_size(born_size + own_size, length, magic, topic[2], stored)
        if stored > MAX_PROPERTIES or size > room - to:
            return REFUSED, 0
        flag, offset = load_i32(data, place + _FLAG_AT), queue_offset + count
        numbers = magic, queue_id, flag, offset, base + at + to, flags, born, now, times, 0
        body, texts = (data, text_at, length), (data, texts_at, texts_size)
        write_record(scratch, to, size, numbers, hosts, topic, body, texts, crc)
        to, count, place = to + size, count + 1, texts_at + texts_size
    publish(buffer, at, scratch, 0, to)
    return to, count
