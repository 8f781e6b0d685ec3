"""Keep the incomplete last frame of a connection until more of it arrives."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.broker.lane.layout import (
    ACTIVE,
    CONNECTION,
    DATA_SIZE,
    FREE,
    LONGEST_FRAME,
    POSITION,
    RECEIVED,
    REST,
    REST_BEGUN,
    REST_OWNER,
    REST_ROWS,
    REST_SHARE,
    REST_SINCE,
    REST_SIZE,
    RESTS,
)
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import copy, load_u32

_LENGTH, _LENGTHS, _HEADER, _HOST = 4, 8, 0xFFFFFF, 8


@inlined
def is_partial(data, at, left):
    """Return whether the bytes from `at` on, so many or none, may be the beginning of a frame.

    What is no frame, or too long for the lane, is not: the connection is to say so at once.
    """
    if left < _LENGTH:
        return True
    size = load_u32(data, at) + _LENGTH
    if size <= left or size > LONGEST_FRAME:
        return False
    return left < _LENGTHS or (load_u32(data, at + _LENGTH) & _HEADER) + _LENGTHS <= size


@inlined
def take_rest(state, seats, rows, rests, data, moment):
    """Move the rest of a connection to the beginning of `data`; return its size."""
    connection = state[CONNECTION]
    row = seats[REST, connection] - 1
    state[REST_BEGUN] = moment
    if row < 0:
        return 0
    size = rows[REST_SIZE, row]
    copy(data, 0, rests, row * DATA_SIZE, size)
    state[REST_BEGUN] = rows[REST_SINCE, row]
    seats[REST, connection] = rows[REST_OWNER, row] = 0
    rows[FREE, REST_ROWS - state[RESTS]] = row
    state[RESTS] -= 1
    return size


@inlined
def _may_keep(state, rows, hosts):
    """Return whether there is a free row for the current connection: see `Rests.has_room`."""
    used, own, address = state[RESTS], 0, load_u32(hosts, state[CONNECTION] * _HOST)
    if 2 * (used + 1) <= REST_ROWS or used == REST_ROWS:
        return used < REST_ROWS
    for row in range(REST_ROWS):
        owner = rows[REST_OWNER, row]
        if owner > 0 and load_u32(hosts, owner * _HOST) == address:
            own += 1
    return own < REST_SHARE


@inlined
def keep_rest(state, seats, rows, rests, data, hosts):
    """Keep what was not served; return whether there is a free row for it."""
    size, connection = state[RECEIVED] - state[POSITION], state[CONNECTION]
    if size > 0:
        if not _may_keep(state, rows, hosts):
            return False
        state[RESTS] += 1
        row = rows[FREE, REST_ROWS - state[RESTS]]
        copy(rests, row * DATA_SIZE, data, state[POSITION], size)
        begun = state[REST_BEGUN] if state[POSITION] == 0 else seats[ACTIVE, connection]
        rows[REST_SIZE, row], rows[REST_SINCE, row] = size, begun
        rows[REST_OWNER, row], seats[REST, connection] = connection, row + 1
    return True
