"""The calls of the C library that the lane makes, for kernels.

Numba keeps calls by name in its cache, and the C library is in every process.
"""

# pyright: basic
# Reason: Numba's types carry none.

from __future__ import annotations

import socket

import numpy as np
from numba import types

from mqlake.broker.lane.layout import (
    CONNECTION,
    EPOLL,
    EVENT_WORDS,
    EVENTS,
    EVENTS_AT,
    MOST_EVENTS,
    NEXT_EVENT,
    READS,
    TIME_AT,
    WITHHELD,
)
from mqlake.kernels.jit import inlined

_INT, _SIZE, _SIGNED, _ADDRESS = types.int32, types.uintp, types.intp, types.uintp

epoll_wait = types.ExternalFunction("epoll_wait", _INT(_INT, _ADDRESS, _INT, _INT))
"""epoll_wait(epoll, events, most, milliseconds)"""
recv = types.ExternalFunction("recv", _SIGNED(_INT, _ADDRESS, _SIZE, _INT))
"""recv(socket, buffer, size, flags)"""
send = types.ExternalFunction("send", _SIGNED(_INT, _ADDRESS, _SIZE, _INT))
"""send(socket, buffer, size, flags)"""
clock_gettime = types.ExternalFunction("clock_gettime", _INT(_INT, _ADDRESS))
"""clock_gettime(clock, time): seconds and nanoseconds, each of 8 bytes"""

_MONOTONIC = 1
_SECOND = 1_000_000_000

AT_ONCE = getattr(socket, "MSG_DONTWAIT", 0)
QUIETLY = AT_ONCE | getattr(socket, "MSG_NOSIGNAL", 0)


@inlined
def now(state, time):
    """Return the monotonic time in nanoseconds."""
    clock_gettime(_INT(_MONOTONIC), _ADDRESS(state[TIME_AT]))
    return time[0] * _SECOND + time[1]


@inlined
def next_event(state, events, seats):
    """Let state[CONNECTION] be the next one that has data; return whether there is one.

    While answers are withheld, none is looked at twice: each waits for its share of answers. epoll
    is asked once, for it may know only connections that are not served.
    """
    was_asked = False
    while True:
        while state[NEXT_EVENT] < state[EVENTS]:
            found = np.int64(events[EVENT_WORDS * state[NEXT_EVENT] + EVENT_WORDS // 2])
            state[NEXT_EVENT] += 1
            # A connection may have left since it was reported.
            if 0 <= found < seats.shape[1] and seats[READS, found] != 0:
                state[CONNECTION] = found
                return True
        state[NEXT_EVENT] = state[EVENTS] = 0
        if was_asked or state[WITHHELD] != 0:
            return False
        was_asked = True
        count = epoll_wait(
            _INT(state[EPOLL]), _ADDRESS(state[EVENTS_AT]), _INT(MOST_EVENTS), _INT(0)
        )
        if count <= 0:
            return False
        state[EVENTS] = count
