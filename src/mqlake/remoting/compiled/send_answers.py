"""Write the answers to a run of sends that were put."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.dispatch.compiled.decimal import put_decimal
from mqlake.dispatch.compiled.hex import put_hex
from mqlake.dispatch.compiled.jit import inlined, kernel
from mqlake.dispatch.compiled.memory import borrow, copy, load_i32, store_i32, store_i64

_LENGTH_SIZE = 4
_OFFSET_DIGITS = 16


@inlined
def _put(target, to, source):
    copy(target, to, source, 0, len(source))
    return to + len(source)


@inlined
def _put_number(target, to, number):
    """Write a number of 0 or more behind the count of its digits."""
    digits_at = to + _LENGTH_SIZE
    end = put_decimal(target, digits_at, number)
    store_i32(target, to, end - digits_at)
    return end


@kernel
def answer_sends(target, data, drafts, sends, start, places, queue_id, queue_offset, key):
    """Write a frame for each draft; return the position behind them.

    Args:
        data: what the sends point into.
        start: an answer up to its message id, which ends in digits for the physical offset.
        places: in it, of the length of the header, the opaque, and the length of the fields.
        queue_id, queue_offset, key: the names of the further fields, as they stand before a length.
    """
    target, data, start = borrow(target), borrow(data), borrow(start)
    queue_id, queue_offset, key = borrow(queue_id), borrow(queue_offset), borrow(key)
    header_place, opaque_place, fields_place = places
    to = 0
    for row in range(len(drafts)):
        draft, send = drafts[row], sends[row]
        frame = to
        to = _put(target, to, start)
        store_i64(target, to, draft.physical_offset)
        put_hex(target, to - _OFFSET_DIGITS, target, to)
        to = _put(target, to, queue_id)
        to = _put_number(target, to, draft.queue_id)
        to = _put(target, to, queue_offset)
        to = _put_number(target, to, draft.queue_offset)
        to = _put(target, to, key)
        store_i32(target, to, send.key_length)
        copy(target, to + _LENGTH_SIZE, data, send.key_at, send.key_length)
        to += _LENGTH_SIZE + send.key_length
        added = to - frame - len(start)
        for place in (0, header_place, fields_place):
            store_i32(target, frame + place, load_i32(start, place) + added)
        store_i32(target, frame + opaque_place, send.opaque)
    return to
