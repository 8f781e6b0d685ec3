"""Lay a run of frames out as drafts of records: sends with binary headers, to one topic."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.jit import inlined, kernel
from mqlake.dispatch.compiled.memory import (
    borrow,
    copy,
    load_i32,
    load_u8,
    load_u16,
    load_u32,
    store_u8,
)
from mqlake.formats import properties, sys_flag
from mqlake.remoting.binary_header import START_SIZE
from mqlake.remoting.codes import RequestCode
from mqlake.remoting.command import Serialization

_BINARY = int(Serialization.ROCKETMQ)
_CODE = int(RequestCode.SEND_MESSAGE_V2)
_HEADER_AT = 8
_OPAQUE_AT, _FLAG_AT, _REMARK_AT = 5, 9, 13
_FIELDS_AT = START_SIZE + 4
_VALUE_AT = 2 + 1 + 4  # a field whose name has one letter

_LETTERS = 14
_FIRST_LETTER = ord("a")
_TOPIC, _TOPIC_QUEUES, _QUEUE_ID, _SYS_FLAG, _BORN, _FLAG, _PROPERTIES, _TIMES = (
    ord(letter) - _FIRST_LETTER for letter in "bdefghij"
)
_UNIT, _MOST_TIMES, _BATCH = (ord(letter) - _FIRST_LETTER for letter in "klm")
_REQUIRED = 8
_UNUSUAL = sys_flag.TRANSACTION_MASK | sys_flag.INNER_BATCH
_MIN_I32, _MAX_I32 = -(1 << 31), (1 << 31) - 1
_MOST_DIGITS = 18

_NAME_END, _PAIR_END = ord(properties.NAME_VALUE_SEPARATOR), ord(properties.PROPERTY_SEPARATOR)
_MAX_PROPERTIES = properties.MAX_LENGTH


def _bytes(text):
    return np.frombuffer(text.encode(), np.uint8)


_UNIQUE_KEY = _bytes(f"{properties.UNIQ_KEY}{properties.NAME_VALUE_SEPARATOR}")
# Names, or how they begin, of properties with which more is to be done than to store them.
_DELAY, _TIMER, _HALF, _POP, _INNER = (
    _bytes(name)
    for name in (properties.DELAY, "TIMER_DEL", properties.TRAN_MSG, "POP_CK", properties.INNER_NUM)
)
_TRUE, _FALSE = _bytes("true"), _bytes("false")
_ZERO, _NINE, _MINUS = ord("0"), ord("9"), ord("-")


@inlined
def _begins(data, at, end, text):
    size = len(text)
    if end - at < size:
        return False
    for place in range(size):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(data, at + place) != text[place]:
            return False
    return True


@inlined
def _is(data, at, length, text):
    return length == len(text) and _begins(data, at, at + length, text)


@inlined
def _number(data, at, length):
    """Return (whether these are the digits of a number as most are written, the number)."""
    end, sign = at + length, 1
    if length > 0 and load_u8(data, at) == _MINUS:
        sign = -1
        at += 1
    digits, number = end - at, np.int64(0)
    if digits < 1 or digits > _MOST_DIGITS:
        return False, number
    if load_u8(data, at) == _ZERO and (digits > 1 or sign < 0):
        return False, number
    for place in range(at, end):
        byte = load_u8(data, place)
        if byte < _ZERO or byte > _NINE:
            return False, number
        number = number * 10 + (byte - _ZERO)
    return True, sign * number


@inlined
def _small_number(data, at, length):
    ok, number = _number(data, at, length)
    return ok and _MIN_I32 <= number <= _MAX_I32, number


@inlined
def _read_fields(data, at, end, starts, lengths):
    """Note where the values of fields named by one letter are; whether there are no others."""
    lengths[:] = -1
    while at < end:
        if end - at < _VALUE_AT or load_u16(data, at) != 1:
            return False
        letter = load_u8(data, at + 2) - _FIRST_LETTER
        length = load_i32(data, at + 3)
        at += _VALUE_AT
        if letter < 0 or letter >= _LETTERS or length < 0 or length > end - at:
            return False
        if lengths[letter] >= 0:
            return False
        starts[letter], lengths[letter] = at, length
        at += length
    for letter in range(_REQUIRED):
        if lengths[letter] < 0:
            return False
    return lengths[_PROPERTIES] > 0


@inlined
def _read_numbers(data, starts, lengths, numbers):
    """Read the fields that are numbers or yes and no; whether all are as most are written."""
    numbers[_TIMES] = 0
    for letter in (_TOPIC_QUEUES, _QUEUE_ID, _SYS_FLAG, _FLAG, _TIMES, _MOST_TIMES):
        if lengths[letter] >= 0:
            ok, numbers[letter] = _small_number(data, starts[letter], lengths[letter])
            if not ok:
                return False
    ok, numbers[_BORN] = _number(data, starts[_BORN], lengths[_BORN])
    unit, batch = lengths[_UNIT], lengths[_BATCH]
    ok &= (
        unit < 0 or _is(data, starts[_UNIT], unit, _TRUE) or _is(data, starts[_UNIT], unit, _FALSE)
    )
    return ok and (batch < 0 or _is(data, starts[_BATCH], batch, _FALSE))


@inlined
def _is_plain(byte):
    return 48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122


@inlined
def _find_key(data, at, end):
    """Return (position, length) of the unique key in properties; -1 where they are not as most are.

    So are ASCII, have such a key of letters and digits, and ask for nothing.
    """
    key_at, key_length = np.int64(-1), np.int64(0)
    while at < end:
        if (
            _begins(data, at, end, _DELAY)
            or _begins(data, at, end, _TIMER)
            or _begins(data, at, end, _HALF)
            or _begins(data, at, end, _POP)
            or _begins(data, at, end, _INNER)
        ):
            return np.int64(-1), key_length
        is_key = _begins(data, at, end, _UNIQUE_KEY)
        start = at + len(_UNIQUE_KEY) if is_key else at
        at = start
        plain = True
        while at < end:
            byte = load_u8(data, at)
            if byte == _PAIR_END:
                break
            if byte >= 128:
                return np.int64(-1), key_length
            plain &= _is_plain(byte)
            at += 1
        if is_key:
            if not plain or at == start:
                return np.int64(-1), key_length
            key_at, key_length = start, at - start
        at += 1
    return key_at, key_length


@kernel
def draft_sends(data, at, topic, own, queues, most, numbers, queue_ids, drafts, sends, texts):
    """Fill a draft and a send for each frame from `at` on; (how many, how many queues, behind).

    Ends before the first frame that is not whole, or not a send as most are to `topic`.

    Args:
        own: what is stored behind the properties of each.
        queues: queue ids are below it.
        most: bytes of a frame, a header and a body.
        numbers: for each queue id -1; gets the number of each that occurs.
        queue_ids: gets the queue id of each number.
        texts: has room for all of `data`, and of `own` one more byte a row.
    """
    data, topic, own, texts = borrow(data), borrow(topic), borrow(own), borrow(texts)
    starts, lengths = np.empty(_LETTERS, np.int64), np.empty(_LETTERS, np.int64)
    values = np.empty(_LETTERS, np.int64)
    to = found = row = np.int64(0)
    while row < len(drafts) and len(data) - at > _HEADER_AT + _FIELDS_AT:
        length, header_length = load_u32(data, at), load_u32(data, at + 4)
        kind, header_length = header_length >> 24, header_length & 0xFFFFFF
        header_at, following = at + _HEADER_AT, at + 4 + length
        body_at = header_at + header_length
        body_length = following - body_at
        if kind != _BINARY or length > most[0] or header_length > most[1]:
            break
        if header_length < _FIELDS_AT or body_length < 0 or following > len(data):
            break
        if body_length == 0 or body_length > most[2]:
            break
        if (
            load_u16(data, header_at) != _CODE
            or load_i32(data, header_at + _FLAG_AT) != 0
            or load_i32(data, header_at + _REMARK_AT) != 0
            or load_i32(data, header_at + START_SIZE) != header_length - _FIELDS_AT
            or not _read_fields(data, header_at + _FIELDS_AT, body_at, starts, lengths)
            or not _read_numbers(data, starts, lengths, values)
            or not _is(data, starts[_TOPIC], lengths[_TOPIC], topic)
        ):
            break
        queue_id = values[_QUEUE_ID]
        if queue_id < 0 or queue_id >= queues or values[_SYS_FLAG] & _UNUSUAL != 0:
            break
        text_at, text_length = starts[_PROPERTIES], lengths[_PROPERTIES]
        key_at, key_length = _find_key(data, text_at, text_at + text_length)
        stored = text_length + 1 + len(own)
        if key_at < 0 or stored > _MAX_PROPERTIES:
            break
        draft, send = drafts[row], sends[row]
        draft.properties_at = to
        copy(texts, to, data, text_at, text_length)
        to += text_length
        if load_u8(data, text_at + text_length - 1) != _PAIR_END:
            store_u8(texts, to, _PAIR_END)
            to += 1
        copy(texts, to, own, 0, len(own))
        to += len(own)
        draft.properties_length = to - draft.properties_at
        draft.body_at, draft.body_length = body_at, body_length
        draft.queue_id, draft.flag = queue_id, values[_FLAG]
        draft.sys_flag, draft.reconsume_times = values[_SYS_FLAG], values[_TIMES]
        draft.born_timestamp, draft.prepared_transaction_offset = values[_BORN], 0
        if numbers[queue_id] < 0:
            numbers[queue_id], queue_ids[found] = found, queue_id
            found += 1
        draft.queue, draft.host, draft.regular = numbers[queue_id], 0, 1
        send.frame_at, send.key_at, send.key_length = at, key_at, key_length
        send.opaque = load_i32(data, header_at + _OPAQUE_AT)
        at = following
        row += 1
    return row, found, at
