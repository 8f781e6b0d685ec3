"""The lane asks epoll for connections, and never waits for one that it does not serve."""

from __future__ import annotations

import select
import socket

import numpy as np
import pytest

from mqlake.broker.lane import layout
from mqlake.broker.lane.choice import is_chosen

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")


@pytest.mark.parametrize("is_served", [True, False])
def test_a_connection_that_is_not_served_does_not_stop_the_loop(is_served: bool) -> None:
    from mqlake.broker.lane.compiled.sockets import next_event

    state = np.zeros(layout.STATES, np.int64)
    events = np.zeros(layout.EVENT_WORDS * layout.MOST_EVENTS, np.int32)
    ours, theirs = socket.socketpair()
    with ours, theirs, select.epoll() as epoll:
        epoll.register(ours, select.EPOLLIN)
        theirs.send(b"x")
        state[layout.EPOLL], state[layout.EVENTS_AT] = epoll.fileno(), events.ctypes.data
        seats = np.zeros((layout.SEAT_ROWS, ours.fileno() + 1), np.int64)
        seats[layout.READS, -1] = is_served
        assert next_event(state, events, seats) == is_served
        assert state[layout.CONNECTION] == (ours.fileno() if is_served else 0)
