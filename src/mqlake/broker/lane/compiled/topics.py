"""The hash table of the topics to which the lane puts."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.layout import NAME_LENGTH, NAME_SIZE
from mqlake.dispatch.compiled.queues import bytes_hash, equal_bytes
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow

_NAME_AT = 8


@inlined
def find_topic(data, at, size, slots, names, numbers, seed):
    """Return the number of a topic, -1 if it is not in the table; 8 bytes lie before its name."""
    mask = len(slots) - 1
    slot = np.int64(bytes_hash(data, at, size, seed)) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        name_at = number * NAME_SIZE + _NAME_AT
        if numbers[NAME_LENGTH, number] == size and equal_bytes(data, at, names, name_at, size):
            return number
        slot = (slot + 1) & mask
    return np.int64(-1)


@kernel
def enter(slots, names, at, size, seed, number):
    """Enter a topic whose name begins at a position, and which is not in the table."""
    names = borrow(names)
    mask = len(slots) - 1
    slot = np.int64(bytes_hash(names, at, size, seed)) & mask
    while slots[slot] != 0:
        slot = (slot + 1) & mask
    slots[slot] = number + 1
