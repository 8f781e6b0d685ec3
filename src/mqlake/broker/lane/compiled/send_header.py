"""Parse the frame of a typical send: whole with a binary header, or the fields of any.

A frame that is unusual in any way is not accepted, and is read by the code for single frames.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.spans import is_text, text_bytes
from mqlake.formats import sys_flag
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import load_i32, load_u8, load_u16, load_u32
from mqlake.protocol import signature
from mqlake.protocol.binary_fields import START_SIZE
from mqlake.protocol.command import Serialization

_BINARY = int(Serialization.ROCKETMQ)
HEADER_AT = 8
_FLAG_AT, _REMARK_AT = 9, 13
OPAQUE_AT = HEADER_AT + 5
_LEAST_FRAME = HEADER_AT + START_SIZE + 4
_FIELDS_AT = START_SIZE + 4
_VALUE_AT = 2 + 1 + 4  # a field whose name has one letter

LETTERS = 14
ACCESS_KEY, SIGNATURE, FIELDS = 14, 15, 16
"""The fields of a signature follow those named by a letter."""
FIRST_LETTER = ord("a")
TOPIC, _TOPIC_QUEUES, QUEUE_ID, SYS_FLAG, BORN, FLAG, PROPERTIES, TIMES = (
    ord(letter) - FIRST_LETTER for letter in "bdefghij"
)
_UNIT, _MOST_TIMES, BATCH = (ord(letter) - FIRST_LETTER for letter in "klm")
_REQUIRED = 8
UNUSUAL = sys_flag.TRANSACTION_MASK | sys_flag.INNER_BATCH
_MIN_I32, _MAX_I32 = -(1 << 31), (1 << 31) - 1
_MOST_DIGITS = 18

_TRUE, _FALSE = text_bytes("true"), text_bytes("false")
_ACCESS_KEY, _SIGNATURE = text_bytes(signature.ACCESS_KEY), text_bytes(signature.SIGNATURE)
_ZERO, _NINE, _MINUS = ord("0"), ord("9"), ord("-")


@inlined
def read_number(data, at, length):
    """Return (whether these are the digits of a typically written number, the number)."""
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
def read_small_number(data, at, length):
    """Return what `read_number` does; only numbers of 32 bits are typical."""
    ok, number = read_number(data, at, length)
    return ok and _MIN_I32 <= number <= _MAX_I32, number


@inlined
def _field(data, at, end):
    """Return (the row of the field whose name is at a position, position after the name); -1 for a
    field that typical sends do not have.
    """
    unknown = np.int64(-1), np.int64(0)
    if end - at < _VALUE_AT:
        return unknown
    length = load_u16(data, at)
    at += 2
    if length == 1:
        letter = load_u8(data, at) - FIRST_LETTER
        return (letter, at + 1) if 0 <= letter < LETTERS else unknown
    if end - at - length < 4:
        return unknown
    if is_text(data, at, length, _ACCESS_KEY):
        return np.int64(ACCESS_KEY), at + length
    if is_text(data, at, length, _SIGNATURE):
        return np.int64(SIGNATURE), at + length
    return unknown


@inlined
def _read_fields(data, at, end, starts, lengths):
    """Find the values of fields; return whether typical sends have all of them."""
    lengths[:] = -1
    while at < end:
        field, at = _field(data, at, end)
        if field < 0:
            return False
        length = load_i32(data, at)
        at += 4
        if length < 0 or length > end - at or lengths[field] >= 0:
            return False
        starts[field], lengths[field] = at, length
        at += length
    return has_required(lengths)


@inlined
def has_required(lengths):
    """Return whether all fields were found that each send has, and properties."""
    for letter in range(_REQUIRED):
        if lengths[letter] < 0:
            return False
    return lengths[PROPERTIES] > 0


@inlined
def read_numbers(data, starts, lengths, numbers):
    """Parse the fields that are numbers or yes (1) and no; return whether all are written
    typically.
    """
    numbers[TIMES] = numbers[BATCH] = 0
    for letter in (_TOPIC_QUEUES, QUEUE_ID, SYS_FLAG, FLAG, TIMES, _MOST_TIMES):
        if lengths[letter] >= 0:
            ok, numbers[letter] = read_small_number(data, starts[letter], lengths[letter])
            if not ok:
                return False
    ok, numbers[BORN] = read_number(data, starts[BORN], lengths[BORN])
    unit, batch = lengths[_UNIT], lengths[BATCH]
    ok &= (
        unit < 0
        or is_text(data, starts[_UNIT], unit, _TRUE)
        or is_text(data, starts[_UNIT], unit, _FALSE)
    )
    if batch >= 0 and is_text(data, starts[BATCH], batch, _TRUE):
        numbers[BATCH] = 1
        return ok
    return ok and (batch < 0 or is_text(data, starts[BATCH], batch, _FALSE))


@inlined
def read_any_send(data, at, most, starts, lengths, numbers):
    """Return (position of the body, position after the frame, request code, opaque); 0 if it is not
    a typical frame.

    A typical frame is complete. Its request code may be any.

    Args:
        most: maximum bytes of a frame, a header and a body.
        starts, lengths: receive the fields: those named by a letter, then those of a signature; a
            length is -1 if the field is missing.
        numbers: receives the numbers among them, by their letters.
    """
    zero = np.int64(0)
    nothing = zero, zero, zero, zero
    kind, body_at, following = frame_limits(data, at, most)
    header_at = at + HEADER_AT
    if kind != _BINARY or body_at - header_at < _FIELDS_AT:
        return nothing
    if (
        load_i32(data, header_at + _FLAG_AT) != 0
        or load_i32(data, header_at + _REMARK_AT) != 0
        or load_i32(data, header_at + START_SIZE) != body_at - header_at - _FIELDS_AT
        or not _read_fields(data, header_at + _FIELDS_AT, body_at, starts, lengths)
        or not read_numbers(data, starts, lengths, numbers)
        or not is_usual(numbers)
    ):
        return nothing
    return body_at, following, load_u16(data, header_at), load_i32(data, at + OPAQUE_AT)


@inlined
def frame_limits(data, at, most):
    """Return (serialization, position of the body, position after the frame) of a frame.

    The serialization is -1 if the frame is incomplete, has no body, or exceeds `most`.
    """
    nothing = np.int64(-1), np.int64(0), np.int64(0)
    if len(data) - at <= _LEAST_FRAME:
        return nothing
    length, header_length = load_u32(data, at), load_u32(data, at + 4)
    kind, header_length = header_length >> 24, header_length & 0xFFFFFF
    body_at, following = at + HEADER_AT + header_length, at + 4 + length
    body_length = following - body_at
    if length > most[0] or header_length > most[1] or following > len(data):
        return nothing
    if body_length <= 0 or body_length > most[2]:
        return nothing
    return np.int64(kind), np.int64(body_at), np.int64(following)


@inlined
def is_usual(numbers):
    """Return whether a send is to a certain queue, and is no part of a transaction, nor an
    inner batch.
    """
    return numbers[QUEUE_ID] >= 0 and numbers[SYS_FLAG] & UNUSUAL == 0
