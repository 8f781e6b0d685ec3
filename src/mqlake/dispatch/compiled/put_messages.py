"""Write packed messages as records, and publish them at the end of a log.

The readable twin is `mqlake.store.append.appender.Appender`, which puts what this kernel leaves.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.known_keys import TOO_LONG, find_row
from mqlake.dispatch.compiled.packed_message import (
    BODY,
    BORN_HOST,
    BORN_TIMESTAMP,
    DELAY_LEVEL,
    ENCODED,
    FIELD_COUNT,
    FLAG,
    PREPARED,
    PROPERTIES,
    QUEUE_ID,
    RECONSUME_TIMES,
    SYS_FLAG,
    TOPIC,
    are_usual,
    put_properties,
    read_fields,
)
from mqlake.dispatch.compiled.packed_values import BYTES, MAP
from mqlake.dispatch.compiled.put import (
    MAX_PROPERTIES,
    UNQUEUED_BIT,
    publish,
    record_size,
    stored_size,
    write_record,
)
from mqlake.dispatch.writing.packed_layout import (
    APPENDS_CRC_AT,
    COUNT,
    DONE,
    FIELDS_AT,
    FOLLOWING,
    HOSTS,
    IS_PUBLISHED,
    LONGEST_BODY_AT,
    MAY_WAIT,
    MORE_AT,
    NEW_ROW,
    NO_ROOM,
    OFFSETS,
    PENDING,
    POSITION,
    QUEUE_NUMBERS,
    QUEUE_OFFSETS,
    QUEUES,
    REASON,
    RECORDS_AT,
    ROW,
    SEED_AT,
    SIZE,
    SIZES,
    STORE_HOST_AT,
    STORE_SIZE_AT,
    TABLE_FULL,
    TEXTS,
    TEXTS_AT,
    UNUSABLE,
    UNUSUAL,
    VALUE_AT,
)
from mqlake.kernels.entry_point import BYTES as BYTE_ARRAY
from mqlake.kernels.entry_point import LONGS
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.kept_arguments import kept_arguments, tuple_kind
from mqlake.kernels.memory import borrow, load_i64, load_word
from mqlake.kernels.text_search import holds

ARRAYS = tuple_kind(BYTE_ARRAY, LONGS, BYTE_ARRAY, LONGS)
"""The type of (log, ends, state, out)."""
_arrays_at = kept_arguments(ARRAYS)
_QUEUES, _HOSTS = tuple(QUEUES), tuple(HOSTS)
_DELAY = np.frombuffer(b"DEL", np.uint8)
"""In the names of all properties that ask for a delay, and of few others."""
_RARE = 0
_SPARE = 64
"""Bytes of properties that a message may have beyond those packed: names, signs, digits."""
_MOST_BY_MAPPING = 16 << 10
"""Bytes of records; more are faster written by a call."""


@inlined
def _known(state, packed, starts, numbers, out):
    """Return (why the message cannot be put, row of its queue, row of its host)."""
    seed = load_word(state, SEED_AT)
    queue = find_row(state, _QUEUES, packed, starts[TOPIC], numbers[TOPIC], numbers[QUEUE_ID], seed)
    if numbers[BORN_HOST] == 0:
        starts[BORN_HOST] = starts[TOPIC]  # A text without bytes may be anywhere.
    host = find_row(state, _HOSTS, packed, starts[BORN_HOST], numbers[BORN_HOST], 0, seed)
    if queue < 0 or host < 0:
        is_full = queue != TOO_LONG and host != TOO_LONG
        return TABLE_FULL if is_full else UNUSUAL, queue, host
    queue_value, host_value = load_i64(state, queue + VALUE_AT), load_i64(state, host + VALUE_AT)
    if queue_value == UNUSABLE or host_value == UNUSABLE:
        return UNUSUAL, queue, host
    if queue_value == PENDING or host_value == PENDING:
        out[ROW] = queue if queue_value == PENDING else host
        return NEW_ROW, queue, host
    return DONE, queue, host


@inlined
def _reason(state, packed, at, following, kinds, starts, numbers, delays):
    """Return (why a message is left, DONE if it is not; position after its properties)."""
    if not are_usual(kinds, numbers, load_i64(state, LONGEST_BODY_AT)):
        return UNUSUAL, np.int64(0)
    if following - at - numbers[BODY] + _SPARE > TEXTS:
        return UNUSUAL, np.int64(0)
    end, ok = put_properties(state, np.int64(TEXTS_AT), packed, kinds, starts, numbers)
    if not ok:
        return UNUSUAL, end
    if delays == 0:
        # A delay is never in keys or tags.
        has_others = kinds[ENCODED] == BYTES or kinds[PROPERTIES] == MAP
        if numbers[DELAY_LEVEL] != 0 or (
            has_others and holds(state, np.int64(TEXTS_AT), end, _DELAY, _RARE)
        ):
            return MAY_WAIT, end
    return DONE, end


@brief_kernel
def put_messages(address, at, room_end, base, room, packed, position, most, now, delays):
    """Put messages until one must be left; return how many were put.

    Their records are written to the end of `state`. If they are few bytes, they are then published
    in the log, else that is left to the caller: `out` tells. The ends of their queues are counted
    up in any case.

    Args:
        address: of the kept arguments, of the type ARRAYS: the file of the log to which records are
            appended, u1[n]; next queue offsets, i8[n], below 0 for a queue without messages;
            `state` and `out`, see `packed_layout`.
        at: the position of the next record in the file.
        room_end: the position before which records may be published.
        base: the physical offset of the file's first byte.
        room: maximum bytes of records; there are never more than fit before `room_end`.
        packed, position: messages, and where the next one begins.
        most: up to MOST messages.
        now: the store timestamp, in milliseconds.
        delays: whether messages that may ask for a delay are put, too: 0 or 1.
    """
    packed, (log, ends, state, out) = borrow(packed), _arrays_at(address)
    kinds = borrow(out[FIELDS_AT : FIELDS_AT + FIELD_COUNT])
    starts = borrow(out[FIELDS_AT + FIELD_COUNT : FIELDS_AT + 2 * FIELD_COUNT])
    numbers = borrow(out[FIELDS_AT + 2 * FIELD_COUNT : FIELDS_AT + 3 * FIELD_COUNT])
    crc, own_size = load_i64(state, APPENDS_CRC_AT), load_i64(state, STORE_SIZE_AT)
    room = min(room, room_end - at)
    to, count, reason = np.int64(0), np.int64(0), np.int64(DONE)
    while count < most:
        is_message, following = read_fields(packed, position, kinds, starts, numbers)
        out[FOLLOWING] = following
        if not is_message:
            reason = UNUSUAL
            break
        reason, end = _reason(state, packed, position, following, kinds, starts, numbers, delays)
        if reason != DONE:
            break
        reason, queue, host = _known(state, packed, starts, numbers, out)
        if reason != DONE:
            break
        texts = state, np.int64(TEXTS_AT), end - TEXTS_AT
        magic, born_size = load_i64(state, queue + VALUE_AT), load_i64(state, host + VALUE_AT)
        stored = stored_size(state, texts[1], texts[2], crc)
        size = record_size(born_size + own_size, numbers[BODY], magic, numbers[TOPIC], stored)
        if stored > MAX_PROPERTIES:
            reason = UNUSUAL
            break
        if size > room - to:
            reason = NO_ROOM
            break
        queue_number, queue_offset = np.int64(-1), np.int64(0)
        if numbers[SYS_FLAG] & UNQUEUED_BIT == 0:
            queue_number = load_i64(state, queue + MORE_AT)
            queue_offset = max(ends[queue_number], 0)
            ends[queue_number] = queue_offset + 1
        offset = base + at + to
        fields = (
            magic,
            numbers[QUEUE_ID],
            numbers[FLAG],
            queue_offset,
            offset,
            numbers[SYS_FLAG],
            numbers[BORN_TIMESTAMP],
            now,
            numbers[RECONSUME_TIMES],
            numbers[PREPARED],
        )
        hosts = state, host + MORE_AT, born_size, state, np.int64(STORE_HOST_AT), own_size
        topic = packed, starts[TOPIC], numbers[TOPIC]
        body = packed, starts[BODY], numbers[BODY]
        write_record(state, RECORDS_AT + to, size, fields, hosts, topic, body, texts, crc)
        out[OFFSETS + count], out[SIZES + count] = offset, size
        out[QUEUE_OFFSETS + count], out[QUEUE_NUMBERS + count] = queue_offset, queue_number
        to += size
        count += 1
        position = following
    out[REASON], out[POSITION], out[COUNT] = reason, position, count
    out[SIZE], out[IS_PUBLISHED] = to, 0
    if 0 < to <= _MOST_BY_MAPPING:
        publish(log, at, state, np.int64(RECORDS_AT), to)
        out[IS_PUBLISHED] = 1
    return count
