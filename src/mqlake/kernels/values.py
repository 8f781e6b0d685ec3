"""Copy stretches of bytes out of records, one after another, as Arrow stores them."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.kernels.jit import inlined, kernel, outlined
from mqlake.kernels.memory import BLOCK, CHUNK, borrow, copy, copy_chunk
from mqlake.kernels.utf8 import is_valid, is_valid_from

_SHORT = 8 * CHUNK
"""Bytes from which on a call of memcpy is faster."""


@inlined
def room(size):
    """Return an array large enough for `copy_text` to write `size` bytes."""
    return np.empty(size + CHUNK, np.uint8)


@inlined
def copy_text(target, to, source, start, length):
    """Copy bytes, usually few; return the position after them in the target.

    Up to CHUNK bytes after them are loaded and stored as well: both arrays must have that many.
    """
    if length <= _SHORT:
        for done in range(0, length, CHUNK):
            copy_chunk(target, to + done, source, start + done)
    else:
        copy(target, to, source, start, length)
    return to + length


@inlined
def text_room(is_chosen, count, size):
    """Return (offsets, data) with room for `count` texts of `size` bytes; without, if not chosen.

    Room that is never used takes no memory: the system gives pages when they are written.
    """
    offsets = np.empty(count + 1 if is_chosen else 0, np.int32)
    if is_chosen:
        offsets[0] = 0
    return offsets, room(size if is_chosen else 0)


@inlined
def put_spans(target, to, source, at, lengths):
    """Copy stretches, one after another; the CHUNK bytes after them are overwritten, too."""
    for row in range(len(at)):
        start, length = np.int64(at[row]), np.int64(lengths[row])
        if start + length + CHUNK <= len(source):
            to = copy_text(target, to, source, start, length)
        else:
            copy(target, to, source, start, length)
            to += length


@inlined
def span_offsets(lengths):
    """Return i4[n + 1]: where consecutive stretches begin and end."""
    offsets = np.empty(len(lengths) + 1, np.int32)
    end = np.int64(0)
    offsets[0] = 0
    for row in range(len(lengths)):
        end += lengths[row]
        offsets[row + 1] = end
    return offsets


@kernel
def copy_spans(buffer, at, lengths):
    """Return (offsets i4[n + 1], data) of stretches copied one after another."""
    buffer = borrow(buffer)
    offsets = span_offsets(lengths)
    end = np.int64(offsets[-1])
    data = room(end)
    put_spans(data, 0, buffer, at, lengths)
    return offsets, data[:end]


@inlined
def in_blocks(buffer, at, sizes):
    """Return a buffer with the stretches, and their positions, in which whole blocks can be loaded.

    That is the buffer itself, except for stretches at a mapped file's end, beyond which no kernel
    may load.
    """
    last = np.int64(0)
    for row in range(len(at)):
        last = max(last, np.int64(at[row]) + np.int64(sizes[row]))
    if last + BLOCK <= len(buffer):
        return buffer, at
    return _gathered(buffer, at, sizes)


@outlined
def _gathered(buffer, at, sizes):
    starts = np.empty(len(at), np.int64)
    end = np.int64(0)
    for row in range(len(at)):
        starts[row] = end
        end += sizes[row]
    data = np.empty(end + BLOCK, np.uint8)
    data[end:] = 0
    for row in range(len(at)):
        copy(data, starts[row], buffer, np.int64(at[row]), np.int64(sizes[row]))
    return data, starts


@kernel
def are_text(buffer, at, lengths):
    """Return whether all stretches are valid UTF-8."""
    size = len(buffer)
    buffer = borrow(buffer)
    for row in range(len(at)):
        start = np.int64(at[row])
        end = start + lengths[row]
        # Whole blocks are read, and the bytes after the last stretch may be unset.
        is_near_end = end + BLOCK > size
        if not (is_valid_from(buffer, start, end) if is_near_end else is_valid(buffer, start, end)):
            return False
    return True
