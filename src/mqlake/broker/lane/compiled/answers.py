"""Write the answer to one send, with a header in the form of the request's."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.broker.send.compiled.send_answers import put_all, put_number, put_offset
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import copy, load_i32, store_i32, store_u8

SPARE = 256
"""Bytes of an answer beyond its fixed texts and its key: numbers, and what `put_offset` needs."""
_LENGTHS, _DIGITS = 8, 16
_MINUS = ord("-")


@inlined
def put_binary(target, to, start, places, names, placed, queue_id, key, opaque):
    """Write a frame with a binary header; return the position after it.

    Args:
        start, places, names: see `answer_sends`.
        placed: the physical offset and the queue offset.
        key: the array with the unique key, its position and its length.
    """
    frame, (text, key_at, key_size) = to, key
    to = put_all(target, to, start)
    put_offset(target, to, placed[0])
    to = put_all(target, to, names[0])
    to = put_number(target, to, queue_id)
    to = put_all(target, to, names[1])
    to = put_number(target, to, placed[1])
    to = put_all(target, to, names[2])
    store_i32(target, to, key_size)
    copy(target, to + 4, text, key_at, key_size)
    to += 4 + key_size
    added = to - frame - len(start)
    for place in (0, places[0], places[2]):
        store_i32(target, frame + place, load_i32(start, place) + added)
    store_i32(target, frame + places[1], opaque)
    return to


@inlined
def _put_part(target, to, text, marks, part):
    start, end = marks[part], marks[part + 1]
    copy(target, to, text, start, end - start)
    return to + end - start


@inlined
def put_json(target, to, text, marks, placed, queue_id, key, opaque):
    """Write a frame whose header is JSON; return the position after it.

    Args:
        text, marks: the parts of the header around its values, and where each begins.
    """
    frame, (found, key_at, key_size) = to, key
    to = _put_part(target, to + _LENGTHS, text, marks, 0) + _DIGITS
    put_offset(target, to, placed[0])
    to = put_decimal(target, _put_part(target, to, text, marks, 1), queue_id)
    to = put_decimal(target, _put_part(target, to, text, marks, 2), placed[1])
    to = _put_part(target, to, text, marks, 3)
    copy(target, to, found, key_at, key_size)
    to = _put_part(target, to + key_size, text, marks, 4)
    number = opaque
    if number < 0:
        store_u8(target, to, _MINUS)
        to, number = to + 1, -number
    to = _put_part(target, put_decimal(target, to, number), text, marks, 5)
    store_i32(target, frame, to - frame - 4)
    store_i32(target, frame + 4, to - frame - _LENGTHS)
    return to
