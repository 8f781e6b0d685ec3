"""Answer a run of standing pulls with records that are copied ahead."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.pull import run_table, shapes
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, copy, load_i32, load_u8, load_u32, load_word, store_i32
from mqlake.store.reads.copied_ahead import BUFFER, FIRST, HIGH, LOW, OWNER, STOP, VERSION

_SERVED, _UNLIKE, _UNKNOWN_QUEUE = run_table.SERVED, run_table.UNLIKE, run_table.UNKNOWN_QUEUE
_NOT_COPIED, _STALE, _FEW_LEFT = run_table.NOT_COPIED, run_table.STALE, run_table.FEW_LEFT
_ROW_QUEUE, _ROW_BUFFER = run_table.ROW_QUEUE, run_table.ROW_BUFFER
_ROW_COPY = run_table.ROW_COPY
_PULL_ROW, _PULL_COMMIT = run_table.PULL_ROW, run_table.PULL_COMMIT
_PULL_NEXT, _PULL_MESSAGES = run_table.PULL_NEXT, run_table.PULL_MESSAGES
_PULL_BYTES = run_table.PULL_BYTES
_DIGITS, _COUNTED, _RAW, _REST = shapes.DIGITS, shapes.COUNTED, shapes.RAW, shapes.REST
_QUEUE_ID, _COMMIT, _OFFSET = shapes.QUEUE_ID, shapes.COMMIT_OFFSET, shapes.QUEUE_OFFSET
_OPAQUE, _NUMBERS = shapes.OPAQUE, shapes.NUMBERS
_NEXT, _MIN, _MAX = shapes.NEXT_OFFSET, shapes.MIN_OFFSET, shapes.MAX_OFFSET
_LENGTHS = 8
_MOST_DIGITS = 18
_MAX_I32 = (1 << 31) - 1
_ZERO = ord("0")


@inlined
def _same(data, at, text, start, length):
    """Return whether two stretches are equal."""
    words = length & ~7
    for place in range(0, words, 8):
        if load_word(data, at + place) != load_word(text, start + place):
            return False
    for place in range(words, length):
        if load_u8(data, at + place) != load_u8(text, start + place):
            return False
    return True


@inlined
def _number(data, at, end):
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
def _read(data, at, end, text, parts, numbers):
    """Return whether a header is of a shape; fill its numbers."""
    for part in range(len(parts)):
        length = parts[part, 1]
        if length > end - at or not _same(data, at, text, parts[part, 0], length):
            return False
        at += length
        number, form = parts[part, 2], parts[part, 3]
        if form == _DIGITS:
            numbers[number], at = _number(data, at, end)
            if numbers[number] < 0:
                return False
        elif form != 0:
            if end - at < 4:
                return False
            value = load_i32(data, at)
            at += 4
            if form == _RAW:
                numbers[number] = value
            elif form == _REST:
                if value != end - at:
                    return False
            else:
                stop = at + value
                if value < 1 or stop > end:
                    return False
                numbers[number], at = _number(data, at, stop)
                if numbers[number] < 0 or at != stop:
                    return False
    return at == end and 0 <= numbers[_OPAQUE] <= _MAX_I32 and numbers[_QUEUE_ID] <= _MAX_I32


@inlined
def _write(target, to, text, parts, numbers):
    """Write a header of a shape; return the position after it."""
    rest = np.int64(-1)
    for part in range(len(parts)):
        copy(target, to, text, parts[part, 0], parts[part, 1])
        to += parts[part, 1]
        number, form = numbers[parts[part, 2]], parts[part, 3]
        if form == _DIGITS:
            to = put_decimal(target, to, number)
        elif form == _COUNTED:
            following = put_decimal(target, to + 4, number)
            store_i32(target, to, following - to - 4)
            to = following
        elif form == _RAW:
            store_i32(target, to, number)
            to += 4
        elif form == _REST:
            rest = to
            to += 4
    if rest >= 0:
        store_i32(target, rest, to - rest - 4)
    return to


@inlined
def _row_of(queues, queue_id):
    for row in range(len(queues)):
        if queues[row, _ROW_QUEUE] == queue_id:
            return row
    return -1


@inlined
def _stop_of(ends, start, stop, most_bytes):
    """Return before which message to stop: most bytes are not exceeded, but by a single one."""
    most = ends[start] + most_bytes
    while stop > start + 1 and ends[stop] > most:
        stop -= 1
    return stop


@kernel
def serve_pulls(
    data,
    at,
    kind,
    request_text,
    request_parts,
    answer_text,
    answer_parts,
    queues,
    most,
    most_bytes,
    table,
    ends,
    copies,
    version,
    target,
    room,
    pulls,
):
    """Answer the pulls from `at` on that are of a shape, and whose messages are copied.

    Args:
        kind: the serialization of the headers.
        queues: i8[n, 3]: see `run_table`.
        most, most_bytes: messages of an answer.
        table, ends, copies: see `mqlake.store.reads.copied_ahead.CopyTable`.
        version: of the queues' least and greatest offsets.
        target: gets the answers; after `room` bytes has room for one more.
        pulls: i8[n, 5], gets a row for each pull: see `run_table`.

    Returns:
        How many were served; the positions after them and after their answers; why no more were;
        the row of the next one's queue, and its queue offset.
    """
    data, target, table = borrow(data), borrow(target), borrow(table)
    request_text, answer_text = borrow(request_text), borrow(answer_text)
    numbers, answered = np.zeros(_NUMBERS, np.int64), np.zeros(_NUMBERS, np.int64)
    served, to, why, row = 0, np.int64(0), _SERVED, -1
    while served < len(pulls) and to < room and len(data) - at > _LENGTHS:
        length, header = load_u32(data, at), load_u32(data, at + 4)
        end = at + 4 + length
        if end > len(data):
            break
        why = _UNLIKE
        if header >> 24 != kind or length != 4 + (header & 0xFFFFFF):
            break
        if not _read(data, at + _LENGTHS, end, request_text, request_parts, numbers):
            break
        row = _row_of(queues, numbers[_QUEUE_ID])
        if row < 0:
            why = _UNKNOWN_QUEUE
            break
        buffer, offset = queues[row, _ROW_BUFFER], numbers[_OFFSET]
        if (
            copies[buffer, OWNER] != queues[row, _ROW_COPY]
            or offset < copies[buffer, FIRST]
            or offset + most > copies[buffer, STOP]
        ):
            why = _NOT_COPIED
            break
        if copies[buffer, VERSION] != version:
            why = _STALE
            break
        if offset < copies[buffer, LOW] or offset + most > copies[buffer, HIGH]:
            why = _FEW_LEFT
            break
        start = offset - copies[buffer, FIRST]
        stop = _stop_of(ends[buffer], start, start + most, most_bytes)
        begin = ends[buffer, start]
        size = ends[buffer, stop] - begin
        following = offset + stop - start
        answered[_NEXT], answered[_OPAQUE] = following, numbers[_OPAQUE]
        answered[_MIN], answered[_MAX] = copies[buffer, LOW], copies[buffer, HIGH]
        body = _write(target, to + _LENGTHS, answer_text, answer_parts, answered)
        store_i32(target, to, body - to - 4 + size)
        store_i32(target, to + 4, kind << 24 | (body - to - _LENGTHS))
        copy(target, body, table, buffer * BUFFER + begin, size)
        to = body + size
        pulls[served, _PULL_ROW], pulls[served, _PULL_COMMIT] = row, numbers[_COMMIT]
        pulls[served, _PULL_NEXT], pulls[served, _PULL_MESSAGES] = following, stop - start
        pulls[served, _PULL_BYTES] = size
        served += 1
        at, why = end, _SERVED
    return served, at, to, why, row, numbers[_OFFSET]
