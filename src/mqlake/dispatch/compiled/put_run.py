"""Write plain messages of one queue, from MessagePack, as records (`dispatch.writing.plain_put`).

Its readable twin is `mqlake.store.append.appender.Appender`, which puts what this kernel refuses.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.encode_draft import (
    BODY,
    BORN_HOST,
    BORN_TIMESTAMP,
    DELAY_LEVEL,
    ENCODED,
    FIELD_COUNT,
    FLAG,
    KEYS_FIELD,
    PREPARED,
    PROPERTIES,
    QUEUE_ID,
    RECONSUME_TIMES,
    SYS_FLAG,
    TAGS_FIELD,
    TOPIC,
    are_usual,
    read_fields,
)
from mqlake.dispatch.compiled.encode_packed import LIST, MAP, NIL, TEXT, value
from mqlake.dispatch.compiled.put import (
    CRC_SIZE_AT,
    HEAD_SIZE,
    KEYS,
    LENGTH_SIZE,
    LONGEST_BODY_AT,
    MAGIC_AT,
    MAX_PROPERTIES,
    PAIR_END,
    PART_AT,
    PART_LENGTH_AT,
    QUEUE_ID_AT,
    REFUSED,
    TAGS,
    UNUSUAL,
    put_start,
)
from mqlake.dispatch.compiled.record_crc import put_record_crc
from mqlake.formats import record
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.memory import borrow, copy, load_i64, load_u8, load_word, store_u8

_V2_MAGIC = record.V2_MAGIC
_WORD = 8


@inlined
def _are_equal(a, at, b, to, length):
    whole = length // _WORD * _WORD
    for word in range(0, whole, _WORD):
        if load_word(a, at + word) != load_word(b, to + word):
            return False
    for place in range(whole, length):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(a, at + place) != load_u8(b, to + place):
            return False
    return True


@inlined
def _has_pair_end(packed, at, length):
    found = False
    for place in range(at, at + length):
        found |= load_u8(packed, place) == PAIR_END
    return found


@inlined
def _pair_size(name, packed, kind, at, length):
    """Return the bytes of a property, REFUSED if its value cannot be written as it is."""
    if kind == NIL or (kind == LIST and length == 0):
        return 0
    if kind != TEXT or _has_pair_end(packed, at, length):
        return REFUSED
    return len(name) + length + 1 if length > 0 else 0


@inlined
def _put_pair(target, to, name, packed, size, at):
    """Write a property of `size` bytes, 0 for none; return the position after it."""
    if size == 0:
        return to
    copy(target, to, name, 0, len(name))
    copy(target, to + len(name), packed, at, size - len(name) - 1)
    store_u8(target, to + size - 1, PAIR_END)
    return to + size


@inlined
def _is_plain(packed, kinds, starts, numbers, route):
    """Return whether a message is plain, and of the route's queue."""
    if not are_usual(kinds, numbers, load_i64(route, LONGEST_BODY_AT)):
        return False
    is_plain = kinds[ENCODED] == NIL and numbers[BORN_HOST] == 0
    is_plain &= kinds[PROPERTIES] == NIL or (kinds[PROPERTIES] == MAP and numbers[PROPERTIES] == 0)
    is_plain &= numbers[PREPARED] == 0 and numbers[DELAY_LEVEL] == 0
    is_plain &= numbers[SYS_FLAG] & UNUSUAL == 0
    is_plain &= numbers[QUEUE_ID] == load_i64(route, QUEUE_ID_AT)
    part = load_i64(route, PART_LENGTH_AT)
    prefix = 2 if load_i64(route, MAGIC_AT) == _V2_MAGIC else 1
    return (
        is_plain
        and numbers[TOPIC] == part - prefix
        and _are_equal(packed, starts[TOPIC], route, PART_AT + prefix, part - prefix)
    )


@brief_kernel
def put_run(target, end, base, packed, at, most, route, queue_offset, now, rows):
    """Write messages as records from the first byte of `target` on, up to `most` of them.

    Ends before the first that is not plain, or of another queue than the route's, or that does not
    end before `end`. `rows`, i8[2, n], gets the physical offset and the size of each record.

    Args:
        at: position of the first message in `packed`; 0 for the first of all.
        base: physical offset of the first byte of `target`.

    Returns:
        (messages, position of the next one in `packed`, position after the records)
    """
    target, packed, route = borrow(target), borrow(packed), borrow(route)
    kinds, starts, numbers = (
        np.empty(FIELD_COUNT, np.int64),
        np.empty(FIELD_COUNT, np.int64),
        np.empty(FIELD_COUNT, np.int64),
    )
    if at == 0:
        _, _, _, at = value(packed, 0)
    crc_size, part = load_i64(route, CRC_SIZE_AT), load_i64(route, PART_LENGTH_AT)
    to = np.int64(0)
    for row in range(most):
        is_message, following = read_fields(packed, at, kinds, starts, numbers)
        if not is_message or not _is_plain(packed, kinds, starts, numbers, route):
            return row, at, to
        keys_at, tags_at, body_size = starts[KEYS_FIELD], starts[TAGS_FIELD], numbers[BODY]
        keys = _pair_size(KEYS, packed, kinds[KEYS_FIELD], keys_at, numbers[KEYS_FIELD])
        tags = _pair_size(TAGS, packed, kinds[TAGS_FIELD], tags_at, numbers[TAGS_FIELD])
        properties_size = keys + tags + crc_size
        size = HEAD_SIZE + body_size + part + LENGTH_SIZE + properties_size
        if keys < 0 or tags < 0 or properties_size > MAX_PROPERTIES or size > end - to:
            return row, at, to
        start, span = to, (starts[BODY], body_size)
        numbers_written = (
            numbers[FLAG],
            numbers[SYS_FLAG],
            numbers[BORN_TIMESTAMP],
            numbers[RECONSUME_TIMES],
            properties_size,
        )
        offset = queue_offset + row
        to = put_start(
            target, start, size, route, base + start, offset, now, packed, span, numbers_written
        )
        to = _put_pair(target, to, KEYS, packed, keys, keys_at)
        to = _put_pair(target, to, TAGS, packed, tags, tags_at)
        if crc_size != 0:
            to = put_record_crc(target, start, to)
        rows[0, row], rows[1, row] = base + start, size
        at = following
    return most, at, to
