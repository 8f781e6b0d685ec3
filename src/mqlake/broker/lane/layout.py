"""What the lane's kernel and its caller both know: where numbers are, and what they mean."""

from __future__ import annotations

import platform
from typing import Final

DATA_SIZE: Final = 1 << 16
"""Bytes that are received from a connection before others are served."""
ANSWERS_SIZE: Final = 1 << 19
"""Bytes of answers to one connection that are sent in one call."""
LONGEST_FRAME: Final = 63 << 10
"""Bytes of a frame. A longer one may be a record that `put_sent` refuses."""
MOST_EVENTS: Final = 64
"""Connections that one call of epoll reports."""
EVENT_WORDS: Final = 3 if platform.machine() in ("x86_64", "AMD64", "i686", "i386") else 4
"""4-byte words of an event of epoll, which is packed on x86 only."""
ROUTE_SIZE: Final = 512
"""Bytes of a topic's route: see `mqlake.dispatch.writing.plain_put.make_route`."""
NAME_SIZE: Final = 256
"""Bytes of a topic's name in the table, of which the first 8 are unused."""
BINS: Final = (
    *(50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000),
    *(7_000_000, 10_000_000),
)
"""Upper bounds in nanoseconds of the durations that are counted: all bounds of the histograms of
put times and of request latencies that a turn can reach.
"""

# The state: i8[STATES].
(
    EPOLL,
    EVENTS_AT,
    DATA_AT,
    ANSWERS_AT,
    TIME_AT,
    NEXT_EVENT,
    EVENTS,
    CONNECTION,
    POSITION,
    RECEIVED,
    STORE_TIME,
    UNTIL,
    END,
    ROOM_END,
    BASE,
    MESSAGES,
    TOUCHED,
    LONGEST,
    LONGEST_OF,
    LONGEST_COUNT,
    QUEUE,
    UNSENT_AT,
    UNSENT_END,
) = range(23)
STATES: Final = 23

# Why the kernel returned.
IDLE, LATE, OTHER, NEW_TOPIC, NEW_QUEUE, UNSENT, UNREAD = range(7)
"""No connection has data. The time is over. What was received is to be served otherwise, from
POSITION on. A topic is unknown, or the next offset of QUEUE. Answers from UNSENT_AT on were not
accepted. CONNECTION cannot be read.
"""
