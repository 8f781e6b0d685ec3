"""What the lane's kernel and its caller both know: where numbers are, and what they mean."""

from __future__ import annotations

import platform
from typing import Final, NamedTuple

from mqlake.formats.properties import MAX_LENGTH

DATA_SIZE: Final = 1 << 16
"""Bytes that are received from a connection before others are served."""
ANSWERS_SIZE: Final = 1 << 19
"""Bytes of answers that one call of the kernel may hold."""
MOST_SENDS: Final = 1 << 12
"""Sends that one call of the kernel may serve."""
LONGEST_FRAME: Final = 63 << 10
"""Bytes of a frame. A longer one may be a record that `put_sent` refuses."""
REST_ROWS: Final = 128
"""Connections whose incomplete last frame is kept, in a row of DATA_SIZE."""
REST_SHARE: Final = REST_ROWS // 4
"""How many of these may be of one address while more than half of the rows are in use."""
MOST_EVENTS: Final = 64
"""Connections that one call of epoll reports."""
MOST_WITHHELD: Final = MOST_EVENTS + 1
"""Connections whose answers one call of the kernel may withhold."""
EVENT_WORDS: Final = 3 if platform.machine() in ("x86_64", "AMD64", "i686", "i386") else 4
"""4-byte words of an event of epoll, which is packed on x86 only."""
ROUTE_SIZE: Final = 512
"""Bytes of a topic's route: see `mqlake.dispatch.writing.puts.make_route`."""
NAME_SIZE: Final = 256
"""Bytes of a topic's name in the table, of which the first 8 are unused."""
BYTES: Final = 0
"""The number of the connection whose bytes the caller has received, and whose answers it sends."""
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
    LONGEST,
    LONGEST_OF,
    LONGEST_COUNT,
    LONGEST_BATCHES,
    QUEUE,
    UNSENT_AT,
    UNSENT_END,
    RESTS,
    REST_BEGUN,
    WITHHOLDS,
    WITHHELD,
    ANSWERED,
    MAY_PUT,
    SIGNER,
    TOPIC,
    LITE_AT,
    LITE_SIZE,
    LITE_HASH,
) = range(34)
STATES: Final = 34

# What is kept about a connection: i8[SEAT_ROWS, n].
READS, ACTIVE, SERVED, REST, SIGNED_BY = range(5)
"""Who receives here, 0 if nobody does. When it was read, in monotonic nanoseconds. How many of its
sends were served. The row of its rest plus 1, 0 if it has none. The number of the user who has
signed its last request, 0 if that must be asked for.
"""
SEAT_ROWS: Final = 5
BY_KERNEL, BY_CALLER = 1, 2
"""Who receives and sends over a connection: the caller does what needs decryption."""

# What is kept about a rest: i8[4, REST_ROWS].
REST_SIZE, REST_SINCE, REST_OWNER, FREE = range(4)
"""Its bytes. When its frame began, in monotonic nanoseconds. Its connection, 0 if it is free. Not
of the rest: the numbers of the free rows, at the end.
"""

# Answers that are not sent: i8[5, MOST_WITHHELD].
WITHHELD_OF, ANSWERS_BEGIN, ANSWERS_END, FIRST_SEND, SENDS = range(5)
"""The connection. Where its answers begin and end. The number of the first send that they answer,
among those of this call, and how many they answer.
"""

# The sends of one call: i8[2, MOST_SENDS].
SEND_END, IS_BATCH = range(2)
"""The physical offset after its last record. Whether it is a batch: 0 or 1."""

# How long sends took: i8[4, n], of single messages, and then of batches.
COUNT, TIME = range(2)
"""How many they were, and how many nanoseconds they took."""
OF_BATCHES: Final = 2
"""The first row of batches."""

# What is kept about a topic: i8[TOPIC_ROWS, n].
NAME_LENGTH, FIRST_QUEUE, QUEUES, TAKES_BATCHES, TAKES_LITES = range(5)
TOPIC_ROWS: Final = 5

# What is kept about users: i8[USER_NUMBERS].
FIRST_USER, END_USER, IS_OPEN = range(3)
"""The numbers of the first user in the table, and after the last one. Whether requests are served
without a signature: 0 or 1.
"""
USER_NUMBERS: Final = 3
MOST_USERS: Final = 512
"""Users that are remembered; one whose permissions depend on the address counts for each."""
USER_SIZE: Final = 128
"""Bytes of a user's name in the table, of which the first 8 are unused."""
KEY_SIZE: Final = 40
"""Bytes of a user's key in the table: the states of the inner and of the outer hash."""
TEXT_AT: Final = 128
"""Where the signed text begins, in the array that is given for it."""
TEXT_SIZE: Final = TEXT_AT + DATA_SIZE + 128
"""Bytes of this array: a frame's fields and its body, and what pads them."""

# The parts of answers: marks[PART] is where one begins, and marks[PART + 1] where it ends.
BINARY_PART, JSON_PART, PLACES = 0, 4, 11
"""The first part of four with binary headers, and of six in JSON. Four positions in the first one:
of the length of the header, the opaque, the length of the fields, and that of the message id.
"""

KNOWN: Final = -2
"""Besides the reasons to return: the frame was served, or what it needs is known."""

# Why the kernel returned.
IDLE, LATE, OTHER, NEW_TOPIC, NEW_QUEUE, UNSENT, UNREAD, FULL, SERVED_ALL = range(9)
FIRST_PULL, PULL, NEW_USER, NEW_PERMISSION, NEW_LITE, UNRECEIVED = range(9, 15)
"""No connection has data, or answers are withheld. The time is over. What was received is to be
served otherwise, from POSITION on. A topic is unknown, or the next offset of QUEUE. Answers from
UNSENT_AT on were not accepted. CONNECTION cannot be read. Nothing more fits into what the caller
takes between two calls. All whole frames of BYTES were served. Pulls may be served once the
caller has prepared that. A pull was not served, for the reason in the state of pulls. Who has
signed the last request of CONNECTION is unknown, or whether SIGNER may send to TOPIC, both numbers.
The next offset of a lite topic is unknown; the name of its queue is in the stored properties, at
LITE_AT, and the hash of that name is LITE_HASH. CONNECTION has data, which the caller is
to receive into the rest of the buffer, from RECEIVED on.
"""


class Most(NamedTuple):
    """Maximum bytes of a frame, a header, a body and stored properties."""

    frame: int
    header: int
    body: int
    properties: int = MAX_LENGTH
