"""Write the answers to a run of sends: frames with binary headers."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.hex import put_hex
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import (
    borrow,
    copy,
    load_i32,
    store_i32,
    store_i64,
    store_u8,
)

_LENGTH_SIZE = 4
_OFFSET_DIGITS = 16
_COMMA = ord(",")


@inlined
def put_all(target, to, source):
    copy(target, to, source, 0, len(source))
    return to + len(source)


@inlined
def put_number(target, to, number):
    """Write a nonnegative number after the count of its digits."""
    digits_at = to + _LENGTH_SIZE
    end = put_decimal(target, digits_at, number)
    store_i32(target, to, end - digits_at)
    return end


@inlined
def put_offset(target, to, offset):
    """Write a physical offset over the digits that end at `to`, and scratch after them."""
    store_i64(target, to, offset)
    put_hex(target, to - _OFFSET_DIGITS, target, to)


@inlined
def _put_ids(target, to, id_size, drafts, first, count):
    """Write the ids of a batch's messages from the first on, which ends at `to`; return the
    position after them.
    """
    id_at = to - id_size
    put_offset(target, to, drafts[first].physical_offset)
    for row in range(first + 1, first + count):
        store_u8(target, to, _COMMA)
        copy(target, to + 1, target, id_at, id_size)
        to += 1 + id_size
        put_offset(target, to, drafts[row].physical_offset)
    store_i32(target, id_at - _LENGTH_SIZE, to - id_at)
    return to


@kernel
def answer_sends(target, data, drafts, sends, start, id_size, places, names):
    """Write a frame for each send; return the position after them.

    Args:
        data: the bytes that the sends point into.
        start: an answer up to its message id, which ends in digits for the physical offset.
        id_size: bytes of a message id.
        places: positions in `start` of the length of the header, the opaque, and the length of the
            fields.
        names: the names of the further fields, encoded before a length: of the queue id, the queue
            offset and the unique key.
    """
    target, data, start = borrow(target), borrow(data), borrow(start)
    queue_id, queue_offset, key = borrow(names[0]), borrow(names[1]), borrow(names[2])
    header_place, opaque_place, fields_place = places
    to = row = 0
    for number in range(len(sends)):
        draft, send = drafts[row], sends[number]
        frame = to
        to = put_all(target, to, start)
        to = _put_ids(target, to, id_size, drafts, row, send.messages)
        to = put_all(target, to, queue_id)
        to = put_number(target, to, draft.queue_id)
        to = put_all(target, to, queue_offset)
        to = put_number(target, to, draft.queue_offset)
        to = put_all(target, to, key)
        store_i32(target, to, send.key_length)
        copy(target, to + _LENGTH_SIZE, data, send.key_at, send.key_length)
        to += _LENGTH_SIZE + send.key_length
        added = to - frame - len(start)
        for place in (0, header_place, fields_place):
            store_i32(target, frame + place, load_i32(start, place) + added)
        store_i32(target, frame + opaque_place, send.opaque)
        row += send.messages
    return to
