"""Read a message (`mqlake.store.append.message`) that this process has packed as MessagePack.

The MessagePack comes from `msgspec` and is assumed to be well-formed.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.packed_values import (
    BYTES,
    INT,
    LIST,
    MAP,
    NIL,
    NOTHING,
    SMALL_NUMBERS,
    TEXT,
    behind,
    value,
)
from mqlake.dispatch.compiled.record_crc import may_hold_crc
from mqlake.dispatch.writing.packed_layout import FIELDS
from mqlake.formats import properties, sys_flag
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import copy, load_u8, store_u8
from mqlake.kernels.text_search import holds

_KEYS, _TAGS, _DELAY, _INNER_NUM = (
    np.frombuffer(name.encode(), np.uint8)
    for name in (properties.KEYS, properties.TAGS, properties.DELAY, properties.INNER_NUM)
)
_RARE = properties.INNER_NUM.index("M")
_NAME_END, _PAIR_END = ord(properties.NAME_VALUE_SEPARATOR), ord(properties.PROPERTY_SEPARATOR)
_SPACE = ord(properties.KEY_SEPARATOR)
_INNER_BATCH = sys_flag.INNER_BATCH
_MIN_I32, _MAX_I32 = -(1 << 31), (1 << 31) - 1

FIELD_COUNT = len(FIELDS)
(
    TOPIC,
    BODY,
    TAGS_FIELD,
    KEYS_FIELD,
    PROPERTIES,
    QUEUE_ID,
    FLAG,
    SYS_FLAG,
    BORN_TIMESTAMP,
    BORN_HOST,
    RECONSUME_TIMES,
    PREPARED,
    DELAY_LEVEL,
    ENCODED,
) = range(FIELD_COUNT)
_INTS = (QUEUE_ID, FLAG, SYS_FLAG, RECONSUME_TIMES)
_LONGS = (BORN_TIMESTAMP, PREPARED, DELAY_LEVEL)


@inlined
def _holds(source, at, length, byte):
    for place in range(at, at + length):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(source, place) == byte:
            return True
    return False


@inlined
def _put_name(texts, to, name):
    copy(texts, to, name, 0, len(name))
    store_u8(texts, to + len(name), _NAME_END)
    return to + len(name) + 1


@inlined
def _put_span(texts, to, source, at, length):
    copy(texts, to, source, at, length)
    return to + length


@inlined
def _put_byte(texts, to, byte):
    store_u8(texts, to, byte)
    return to + 1


@outlined
def _put_number(texts, to, number):
    if number < 0:
        # Of the smallest number there is no positive one.
        return to, False
    return put_decimal(texts, to, number), True


@outlined
def _put_map(texts, to, source, at, pairs):
    """Write name and value pairs; (position after them, whether all can be stored)."""
    for _ in range(pairs):
        kind, name_at, name_length, at = value(source, at)
        if kind != TEXT or name_length == 0 or _holds(source, name_at, name_length, _NAME_END):
            return to, False
        value_kind, value_at, value_length, at = value(source, at)
        if value_kind != TEXT or value_length == 0:
            return to, False
        start = to
        to = _put_span(texts, to, source, name_at, name_length)
        to = _put_byte(texts, to, _NAME_END)
        to = _put_span(texts, to, source, value_at, value_length)
        if _holds(texts, start, to - start, _PAIR_END):
            return to, False
        to = _put_byte(texts, to, _PAIR_END)
    return to, True


@outlined
def _put_list(texts, to, source, at, count):
    """Write keys, parted by spaces; (position after them, whether all are texts)."""
    for number in range(count):
        kind, key_at, length, at = value(source, at)
        if kind != TEXT:
            return to, False
        if number:
            to = _put_byte(texts, to, _SPACE)
        to = _put_span(texts, to, source, key_at, length)
    return to, True


@outlined
def _may_be_odd(texts, start, end):
    """Return whether the name of an inner batch's property stands anywhere, or a record CRC
    does.
    """
    return holds(texts, start, end, _INNER_NUM, _RARE) or may_hold_crc(texts, start, end)


@inlined
def read_fields(source, at, kinds, starts, numbers):
    """Note what the fields of the message at `at` are; (whether it is one, position behind)."""
    kind, _, fields, inside = value(source, at)
    if kind != LIST or fields != FIELD_COUNT:
        return False, behind(source, at, 1)
    at = inside
    for field in range(FIELD_COUNT):
        byte = load_u8(source, at)
        if byte < SMALL_NUMBERS or byte == NOTHING:  # most fields of most messages
            kinds[field], numbers[field] = (INT, byte) if byte < SMALL_NUMBERS else (NIL, 0)
            at += 1
            continue
        kinds[field], starts[field], numbers[field], inside = value(source, at)
        at = behind(source, at, 1) if kinds[field] in (LIST, MAP) else inside
    return True, at


@inlined
def are_usual(kinds, numbers, longest_body):
    """Return whether a message has the kinds of values, and the numbers, that most have."""
    usual = kinds[TOPIC] == TEXT and kinds[BODY] == BYTES and kinds[BORN_HOST] == TEXT
    usual &= numbers[BODY] <= longest_body and numbers[QUEUE_ID] >= 0
    for field in _INTS:
        usual &= kinds[field] == INT and _MIN_I32 <= numbers[field] <= _MAX_I32
    for field in _LONGS:
        usual &= kinds[field] == INT
    return usual and numbers[SYS_FLAG] & _INNER_BATCH == 0


@outlined
def put_properties(texts, to, source, kinds, starts, numbers):
    """Write a message's properties; (position after them, whether they are as most are)."""
    start, ok = to, True
    if kinds[ENCODED] == BYTES:
        to = _put_span(texts, to, source, starts[ENCODED], numbers[ENCODED])
        return to, not _may_be_odd(texts, start, to)
    if kinds[ENCODED] != NIL:
        return to, False
    if kinds[PROPERTIES] == MAP:
        to, ok = _put_map(texts, to, source, starts[PROPERTIES], numbers[PROPERTIES])
        ok = ok and not _may_be_odd(texts, start, to)
    elif kinds[PROPERTIES] != NIL:
        return to, False
    value_at = _put_name(texts, to, _KEYS)
    if kinds[KEYS_FIELD] == TEXT:
        end = _put_span(texts, value_at, source, starts[KEYS_FIELD], numbers[KEYS_FIELD])
    elif kinds[KEYS_FIELD] == LIST:
        end, are_texts = _put_list(texts, value_at, source, starts[KEYS_FIELD], numbers[KEYS_FIELD])
        ok &= are_texts
    else:
        return to, False
    ok &= not _holds(texts, value_at, end - value_at, _PAIR_END)
    if end > value_at:
        to = _put_byte(texts, end, _PAIR_END)
    if kinds[TAGS_FIELD] == TEXT and numbers[TAGS_FIELD] > 0:
        value_at = _put_name(texts, to, _TAGS)
        end = _put_span(texts, value_at, source, starts[TAGS_FIELD], numbers[TAGS_FIELD])
        ok &= not _holds(texts, value_at, end - value_at, _PAIR_END)
        to = _put_byte(texts, end, _PAIR_END)
    elif kinds[TAGS_FIELD] not in (TEXT, NIL):
        return to, False
    if numbers[DELAY_LEVEL] != 0:
        to, fits = _put_number(texts, _put_name(texts, to, _DELAY), numbers[DELAY_LEVEL])
        ok &= fits
        to = _put_byte(texts, to, _PAIR_END)
    return to, ok
