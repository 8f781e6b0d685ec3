"""The arguments of the lane's kernel, which are kept for all calls."""

# pyright: basic
# Reason: Numba's types carry no types.

from __future__ import annotations

from typing import Any, Final, NamedTuple

from numba import from_dtype, types

from mqlake.broker.lane.pull_tables import PullArrays
from mqlake.broker.lane.user_table import UserArrays
from mqlake.broker.state.lite.next_offsets import NEXT, NextTables
from mqlake.kernels.entry_point import (
    BYTE_ROWS,
    BYTES,
    INTS,
    LONG_BLOCKS,
    LONG_ROWS,
    LONGS,
    READ_ONLY,
    WORD,
)
from mqlake.kernels.kept_arguments import kept_arguments, tuple_kind

_NEXT_ROWS = types.Array(from_dtype(NEXT), 1, "C")


class LaneArguments(NamedTuple):
    """What the kernel reads and writes.

    Attributes:
        log: u1[n], the file of the log to which records are appended.
        ends: i8[n], the next offset of each queue; see `QueueOffsets`.
        following: the next offsets of lite topics.
        data: u1[DATA_SIZE], for what is received.
        state: i8[STATES]; see `layout`.
        time: i8[2], for the clock.
        events: i4[n], for epoll.
        seats: i8[SEAT_ROWS, n], what is kept about a connection, by its file descriptor.
        rests, rest_rows: see `Rests`.
        own, most, starts, lengths, properties, message: see `read_send`.
        scratch, route: u1[n], for the records of a send, and for what is written around each.
        hosts: u1[n], 8 bytes for each connection: its address in records.
        answers: u1[ANSWERS_SIZE].
        texts, marks: see `LaneAnswers`.
        withheld: i8[5, n], gets the answers that are not sent.
        sends: i8[2, n], gets the physical offset after each send, and whether it is a batch.
        slots, names, numbers, routes, seed, places: see `LaneTopics`.
        hashing: u1[HASHING], what `begin_hash` fills.
        times: i8[4, n], gets the number of sends by how long they took, and how long that was.
    """

    log: Any
    ends: Any
    following: NextTables
    data: Any
    state: Any
    time: Any
    events: Any
    seats: Any
    rests: Any
    rest_rows: Any
    own: Any
    most: Any
    starts: Any
    lengths: Any
    properties: Any
    message: Any
    scratch: Any
    route: Any
    hosts: Any
    answers: Any
    texts: Any
    marks: Any
    withheld: Any
    sends: Any
    slots: Any
    names: Any
    numbers: Any
    routes: Any
    seed: Any
    places: Any
    hashing: Any
    times: Any
    pulls: PullArrays
    users: UserArrays


_PULLS = PullArrays(
    state=LONGS,
    slots=INTS,
    keys=BYTES,
    sizes=LONGS,
    seed=WORD,
    decisions=LONG_ROWS,
    codes=LONG_ROWS,
    texts=BYTES,
    parts=LONG_BLOCKS,
    names=BYTES,
    name_sizes=LONGS,
    queues=LONG_ROWS,
    segments=LONG_ROWS,
    key=BYTES,
    places=LONGS,
    numbers=LONGS,
    answered=LONGS,
    targets=LONG_ROWS,
    notes=LONG_ROWS,
    signed=BYTES,
    signed_parts=LONG_BLOCKS,
    users=LONGS,
    user_keys=BYTES,
    user_text=BYTES,
    permissions=BYTE_ROWS,
)
_USERS = UserArrays(
    numbers=LONGS,
    names=BYTES,
    name_sizes=LONGS,
    keys=BYTES,
    text=BYTES,
    permissions=BYTE_ROWS,
)
_FOLLOWING = NextTables(rows=_NEXT_ROWS, used=LONGS, earlier=_NEXT_ROWS)
_ARGUMENTS = LaneArguments(
    log=BYTES,
    ends=LONGS,
    following=tuple_kind(*_FOLLOWING, of=NextTables),
    data=BYTES,
    state=LONGS,
    time=LONGS,
    events=INTS,
    seats=LONG_ROWS,
    rests=BYTES,
    rest_rows=LONG_ROWS,
    own=READ_ONLY,
    most=LONGS,
    starts=LONGS,
    lengths=LONGS,
    properties=BYTES,
    message=LONGS,
    scratch=BYTES,
    route=BYTES,
    hosts=BYTES,
    answers=BYTES,
    texts=READ_ONLY,
    marks=LONGS,
    withheld=LONG_ROWS,
    sends=LONG_ROWS,
    slots=INTS,
    names=BYTES,
    numbers=LONG_ROWS,
    routes=BYTES,
    seed=WORD,
    places=LONGS,
    hashing=BYTES,
    times=LONG_ROWS,
    pulls=tuple_kind(*_PULLS, of=PullArrays),
    users=tuple_kind(*_USERS, of=UserArrays),
)

KIND: Final = tuple_kind(*_ARGUMENTS, of=LaneArguments)
"""The type of `LaneArguments`."""
arguments_at = kept_arguments(KIND)
"""Return the `LaneArguments` that are kept at an address."""
