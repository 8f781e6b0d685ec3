"""Number the queues: open addressing over (topic, queue id) (`mqlake.dispatch.queue_table`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.kernels.java_hash import hash_text
from mqlake.kernels.jit import inlined, kernel, outlined
from mqlake.kernels.memory import borrow, copy, load_u8, load_word

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF, _BYTE = np.uint64(32), np.uint64(8)
_SCHEDULE_TOPIC = np.frombuffer(SCHEDULE_TOPIC.encode(), np.uint8)
_HASH_SIGN = ord("#")


@inlined
def _mix(state, word):
    state = (state ^ word) * _MULTIPLIER
    return state ^ state >> _HALF


@inlined
def _tail(buffer, at, length):
    """Return the last `length` % 8 bytes before `at + length` as a number; loads 8 before it."""
    odd = length & 7
    if odd == 0:
        return np.uint64(0)
    return load_word(buffer, at + length - 8) >> _BYTE * np.uint64(8 - odd)


@inlined
def bytes_hash(buffer, at, length, state):
    """Return a hash of the bytes, going on from `state`; at least 8 bytes lie before them."""
    for word in range(at, at + length - 7, 8):
        state = _mix(state, load_word(buffer, word))
    return _mix(_mix(state, _tail(buffer, at, length)), np.uint64(length))


@inlined
def _hash(buffer, at, length, queue_id, seed):
    return bytes_hash(buffer, at, length, _mix(seed, np.uint64(queue_id)))


@inlined
def equal_bytes(a, at, b, to, length):
    """Return whether two stretches are equal; at least 8 bytes lie before each."""
    for word in range(0, length - 7, 8):
        if load_word(a, at + word) != load_word(b, to + word):
            return False
    return _tail(a, at, length) == _tail(b, to, length)


@inlined
def is_schedule_topic(buffer, at, length):
    """Return whether this is the topic in which scheduled messages wait."""
    if length != len(_SCHEDULE_TOPIC):
        return False
    for place in range(length):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(buffer, at + place) != _SCHEDULE_TOPIC[place]:
            return False
    return True


@inlined
def key_prefix(buffer, topic_at, topic_length):
    """Return the Java hash of "topic#"."""
    value = hash_text(0, buffer, topic_at, topic_at + topic_length)
    return value * 31 + _HASH_SIGN & 0xFFFFFFFF


@outlined
def _add(buffer, topic_at, topic_length, queue_id, queues, arena, fill):
    number, to = fill[0], fill[1]
    copy(arena, to, buffer, topic_at, topic_length)
    queue = queues[number]
    queue.topic_at = to
    queue.topic_length = topic_length
    queue.queue_id = queue_id
    queue.key_prefix = key_prefix(buffer, topic_at, topic_length)
    queue.scheduled = is_schedule_topic(buffer, topic_at, topic_length)
    fill[0], fill[1] = number + 1, to + topic_length
    return number


@inlined
def queue_number(buffer, topic_at, topic_length, queue_id, slots, queues, arena, fill, seed):
    """Return the number of a queue, the next free one where it is new.

    The table has room: a free slot, a free row of `queues`, and `topic_length` bytes in `arena`.
    """
    mask = len(slots) - 1
    slot = np.int64(_hash(buffer, topic_at, topic_length, queue_id, seed)) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        queue = queues[number]
        if (
            queue.queue_id == queue_id
            and queue.topic_length == topic_length
            and equal_bytes(buffer, topic_at, arena, queue.topic_at, topic_length)
        ):
            return number
        slot = (slot + 1) & mask
    number = _add(buffer, topic_at, topic_length, queue_id, queues, arena, fill)
    slots[slot] = number + 1
    return number


@kernel
def fill_slots(slots, queues, arena, count, seed):
    """Enter the first `count` queues into slots that are all empty."""
    arena = borrow(arena)
    mask = len(slots) - 1
    for number in range(count):
        queue = queues[number]
        slot = np.int64(_hash(arena, queue.topic_at, queue.topic_length, queue.queue_id, seed))
        slot &= mask
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = number + 1
