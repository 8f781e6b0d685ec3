"""Write the answer to one send, single or batch, with a header in the form of the request's."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.broker.lane.layout import BINARY_PART, JSON_PART, PLACES
from mqlake.formats.host import V4_SIZE
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.hex import put_hex
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import copy, load_i32, store_i32, store_i64, store_u8

SPARE = 256
"""Bytes of an answer beyond its fixed texts and its key: numbers, and what `_put_offset` needs."""
_LENGTH, _LENGTHS, _DIGITS = 4, 8, 16
_MINUS, _COMMA = ord("-"), ord(",")
_ID_SIZE = 2 * (V4_SIZE + 8)
NEXT_ID_SIZE = 1 + _ID_SIZE
"""Bytes of each further id in the answer to a batch."""


@inlined
def _put_part(target, to, texts, marks, part):
    start, end = marks[part], marks[part + 1]
    copy(target, to, texts, start, end - start)
    return to + end - start


@inlined
def _put_number(target, to, number):
    """Write a number of 0 or more after the count of its digits."""
    digits_at = to + _LENGTH
    end = put_decimal(target, digits_at, number)
    store_i32(target, to, end - digits_at)
    return end


@inlined
def _put_offset(target, to, offset):
    """Write a physical offset over the digits that end at `to`, and scratch after them."""
    store_i64(target, to, offset)
    put_hex(target, to - _DIGITS, target, to)


@inlined
def _put_ids(target, to, placed, records):
    """Write the digits of the first message id, which end at `to`, and then all further ids; return
    the position after them.
    """
    offset, at, (sizes, count) = placed[0], 0, records
    _put_offset(target, to, offset)
    for _ in range(1, count):
        size = load_i32(sizes, at)
        at, offset = at + size, offset + size
        store_u8(target, to, _COMMA)
        copy(target, to + 1, target, to - _ID_SIZE, _ID_SIZE - _DIGITS)
        to += NEXT_ID_SIZE
        _put_offset(target, to, offset)
    return to


@inlined
def put_binary(target, to, texts, marks, placed, records, queue_id, key, opaque):
    """Write a frame with a binary header; return the position after it.

    Args:
        texts, marks: see `LaneAnswers`.
        placed: the physical offset and the queue offset of the first message.
        records: an array that begins with the records of all messages, and how many they are.
        key: the array with the unique key, its position and its length.
    """
    frame, (found, key_at, key_size) = to, key
    start, end = marks[BINARY_PART], marks[BINARY_PART + 1]
    first_id = _put_part(target, to, texts, marks, BINARY_PART)
    to = _put_ids(target, first_id, placed, records)
    id_size_at, further = frame + marks[PLACES + 3], to - first_id
    store_i32(target, id_size_at, load_i32(target, id_size_at) + further)
    to = _put_number(target, _put_part(target, to, texts, marks, BINARY_PART + 1), queue_id)
    to = _put_number(target, _put_part(target, to, texts, marks, BINARY_PART + 2), placed[1])
    to = _put_part(target, to, texts, marks, BINARY_PART + 3)
    store_i32(target, to, key_size)
    copy(target, to + _LENGTH, found, key_at, key_size)
    to += _LENGTH + key_size
    added = to - frame - (end - start)
    for place in (0, marks[PLACES], marks[PLACES + 2]):
        store_i32(target, frame + place, load_i32(texts, start + place) + added)
    store_i32(target, frame + marks[PLACES + 1], opaque)
    return to


@inlined
def put_json(target, to, texts, marks, placed, records, queue_id, key, opaque):
    """Write a frame whose header is JSON; return the position after it.

    The arguments are those of `put_binary`.
    """
    frame, (found, key_at, key_size) = to, key
    to = _put_part(target, to + _LENGTHS, texts, marks, JSON_PART) + _DIGITS
    to = _put_ids(target, to, placed, records)
    to = put_decimal(target, _put_part(target, to, texts, marks, JSON_PART + 1), queue_id)
    to = put_decimal(target, _put_part(target, to, texts, marks, JSON_PART + 2), placed[1])
    to = _put_part(target, to, texts, marks, JSON_PART + 3)
    copy(target, to, found, key_at, key_size)
    to = _put_part(target, to + key_size, texts, marks, JSON_PART + 4)
    number = opaque
    if number < 0:
        store_u8(target, to, _MINUS)
        to, number = to + 1, -number
    to = _put_part(target, put_decimal(target, to, number), texts, marks, JSON_PART + 5)
    store_i32(target, frame, to - frame - _LENGTH)
    store_i32(target, frame + _LENGTH, to - frame - _LENGTHS)
    return to
