"""Read the headers of pulls, and write those of their answers.

Of a header, only the numbers are read, and the signature is found. What is around them is a key: a
header with the same key is read as the same pull with other numbers.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.pull_layout import (
    ANSWER_SIZE,
    COMMIT_OFFSET,
    COUNTED,
    DIGITS,
    GAPS,
    KEY_AT,
    LONGEST_HEADER,
    OPAQUE,
    PLACES,
    QUEUE_ID,
    QUEUE_OFFSET,
    RAW,
    REST,
    SIGNATURE,
    SIGNATURE_SIZE,
)
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import (
    copy,
    load_i32,
    load_u8,
    load_u16,
    load_word,
    store_i32,
    store_u8,
)
from mqlake.protocol.binary_fields import START_SIZE
from mqlake.protocol.command import Serialization

_BINARY = int(Serialization.ROCKETMQ)
_JSON = int(Serialization.JSON)
_MOST_DIGITS = 18
_MAX_I32 = (1 << 31) - 1
_ZERO, _QUOTE, _BACKSLASH = ord("0"), ord('"'), ord("\\")
_FIRST_PRINTABLE, _LAST_PRINTABLE = 32, 126
_OPAQUE_AT = 5
_QUEUE_ID_NAME, _QUEUE_OFFSET_NAME, _COMMIT_NAME, _OPAQUE_NAME, _SIGNATURE_NAME = (
    np.frombuffer(name, np.uint64)[0]
    for name in (b'queueId"', b"queueOff", b"commitOf", b'opaque":', b"Signatur")
)
_QUEUE_OFFSET_REST = np.frombuffer(b'set":"', np.uint8)
_COMMIT_REST = np.frombuffer(b'fset":"', np.uint8)
_QUEUE_ID_REST = np.frombuffer(b':"', np.uint8)
_SIGNATURE_REST = np.frombuffer(b'e":"', np.uint8)
_NAMES = tuple(
    np.frombuffer(name, np.uint8)
    for name in (b"queueId", b"queueOffset", b"commitOffset", b"Signature")
)
_NAME_0, _NAME_1, _NAME_2, _NAME_3 = _NAMES
_NAMED = 3
_END_PLACE = 5
"""The place of the length of the fields."""


@inlined
def read_number(data, at, end):
    """Return the number whose digits begin at a position, and the position after it.

    The number is -1 if it is not written typically.
    """
    start, number = at, np.int64(0)
    while at < end and at - start <= _MOST_DIGITS:
        digit = load_u8(data, at) - _ZERO
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        at += 1
    digits = at - start
    if digits == 0 or digits > _MOST_DIGITS or (digits > 1 and load_u8(data, start) == _ZERO):
        return np.int64(-1), at
    return number, at


@inlined
def _has(data, at, end, text):
    if end - at < len(text):
        return False
    for place in range(len(text)):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(data, at + place) != text[place]:
            return False
    return True


@inlined
def _json_name(data, at, end):
    """Return (which number follows the quote at a position, where its digits begin); -1 if none."""
    word = load_word(data, at + 1)
    following = at + 9
    if word == _QUEUE_ID_NAME and _has(data, following, end, _QUEUE_ID_REST):
        return QUEUE_ID, following + len(_QUEUE_ID_REST)
    if word == _QUEUE_OFFSET_NAME and _has(data, following, end, _QUEUE_OFFSET_REST):
        return QUEUE_OFFSET, following + len(_QUEUE_OFFSET_REST)
    if word == _COMMIT_NAME and _has(data, following, end, _COMMIT_REST):
        return COMMIT_OFFSET, following + len(_COMMIT_REST)
    if word == _OPAQUE_NAME:
        return OPAQUE, following
    if word == _SIGNATURE_NAME and _has(data, following, end, _SIGNATURE_REST):
        return SIGNATURE, following + len(_SIGNATURE_REST)
    return -1, at


@inlined
def _signature_end(data, at, end):
    """Return the position after a signature in JSON, -1 if the text is not typical."""
    after = at + SIGNATURE_SIZE
    if after >= end:
        return -1
    for place in range(at, after):
        byte = load_u8(data, place)
        if byte < _FIRST_PRINTABLE or byte > _LAST_PRINTABLE:
            return -1
        if byte in (_QUOTE, _BACKSLASH):
            return -1
    return after


@inlined
def _read_json(data, at, end, key, places, numbers):
    """Return the position after the text in the key, -1 if the header is not typical."""
    to, begin, found = KEY_AT + 1, at, 0
    while at < end - 9:
        if load_u8(data, at) != _QUOTE:
            at += 1
            continue
        number, digits_at = _json_name(data, at, end)
        if number < 0:
            at += 1
            continue
        if number == SIGNATURE:
            value, after = digits_at, _signature_end(data, digits_at, end)
        else:
            value, after = read_number(data, digits_at, end)
        if value < 0 or after < 0 or places[number] >= 0:
            return -1
        if number != OPAQUE and (after >= end or load_u8(data, after) != _QUOTE):
            return -1
        copy(key, to, data, begin, digits_at - begin)
        to += digits_at - begin
        places[number], numbers[number] = to, value
        begin, found = after, found + (number != SIGNATURE)
        at = after + 1
    if found != OPAQUE + 1:
        return -1
    copy(key, to, data, begin, end - begin)
    return to + end - begin


@inlined
def _binary_name(data, at, size):
    """Return which number has the name at a position; -1 if none."""
    if size == len(_NAME_0) and _has(data, at, at + size, _NAME_0):
        return QUEUE_ID
    if size == len(_NAME_1) and _has(data, at, at + size, _NAME_1):
        return QUEUE_OFFSET
    if size == len(_NAME_2) and _has(data, at, at + size, _NAME_2):
        return COMMIT_OFFSET
    if size == len(_NAME_3) and _has(data, at, at + size, _NAME_3):
        return SIGNATURE
    return -1


@inlined
def _binary_value(data, number, at, after):
    """Return (a number, or the position of a signature; the position from which on it is left out),
    of the field whose value, after its length, begins at a position; -1 if it is not typical.
    """
    if number == SIGNATURE:
        return (at + 4 if after - at - 4 == SIGNATURE_SIZE else -1), at + 4
    value, stop = read_number(data, at + 4, after)
    return (value if stop == after else np.int64(-1)), at


@inlined
def _read_binary(data, at, end, key, places, numbers):
    """Return the position after the text in the key, -1 if the header is not typical."""
    if end - at < START_SIZE + 4:
        return -1
    fields_at = at + START_SIZE + load_i32(data, at + START_SIZE - 4)
    if fields_at < at + START_SIZE or fields_at > end - 4:
        return -1
    if load_i32(data, fields_at) != end - fields_at - 4:
        return -1
    to = KEY_AT + 1
    numbers[OPAQUE], places[OPAQUE] = load_i32(data, at + _OPAQUE_AT), to + _OPAQUE_AT
    copy(key, to, data, at, _OPAQUE_AT)
    copy(key, to + _OPAQUE_AT, data, at + _OPAQUE_AT + 4, fields_at - at - _OPAQUE_AT - 4)
    to += fields_at - at - 4
    places[_END_PLACE] = to
    at, found = fields_at + 4, 0
    begin = at
    while at < end:
        if end - at < 2:
            return -1
        size = load_u16(data, at)
        value_at = at + 2 + size
        if value_at > end - 4:
            return -1
        length = load_i32(data, value_at)
        after = value_at + 4 + length
        if length < 0 or after > end:
            return -1
        number = _binary_name(data, at + 2, size)
        if number >= 0:
            value, left_out = _binary_value(data, number, value_at, after)
            if value < 0 or places[number] >= 0:
                return -1
            copy(key, to, data, begin, left_out - begin)
            to += left_out - begin
            places[number], numbers[number] = to, value
            begin, found = after, found + (number != SIGNATURE)
        at = after
    if found != _NAMED:
        return -1
    copy(key, to, data, begin, end - begin)
    return to + end - begin


@inlined
def read_pull(data, at, end, kind, key, places, numbers):
    """Read the header of a pull; return the bytes of its key, -1 if it is not typical.

    Args:
        kind: the serialization of the header.
        key: u1[KEY_SIZE], gets from KEY_AT on the kind, the header without its numbers and its
            signature, and where these are.
        places: i8[PLACES], for these positions.
        numbers: i8[NUMBERS], gets the numbers, and the position of the signature, -1 without one.
    """
    if end - at > LONGEST_HEADER:
        return -1
    places[:] = -1
    numbers[SIGNATURE] = -1
    if kind == _BINARY:
        to = _read_binary(data, at, end, key, places, numbers)
    elif kind == _JSON:
        to = _read_json(data, at, end, key, places, numbers)
    else:
        return -1
    if to < 0 or not 0 <= numbers[OPAQUE] <= _MAX_I32 or numbers[QUEUE_ID] > _MAX_I32:
        return -1
    store_u8(key, KEY_AT, kind)
    for place in range(PLACES):
        store_i32(key, to + 4 * place, places[place])
    return to + 4 * PLACES - KEY_AT


@inlined
def put_header(target, to, texts, parts, row, numbers):
    """Write the header of an answer; return the position after it.

    Args:
        texts, parts: u1[n], i8[n, GAPS + 1, 4]: see `PullTables`.
        row: which of these.
    """
    rest, text = np.int64(-1), row * ANSWER_SIZE
    for part in range(GAPS + 1):
        copy(target, to, texts, text + parts[row, part, 0], parts[row, part, 1])
        to += parts[row, part, 1]
        number, form = numbers[parts[row, part, 2]], parts[row, part, 3]
        if form == DIGITS:
            to = put_decimal(target, to, number)
        elif form == COUNTED:
            following = put_decimal(target, to + 4, number)
            store_i32(target, to, following - to - 4)
            to = following
        elif form == RAW:
            store_i32(target, to, number)
            to += 4
        elif form == REST:
            rest = to
            to += 4
    if rest >= 0:
        store_i32(target, rest, to - rest - 4)
    return to
