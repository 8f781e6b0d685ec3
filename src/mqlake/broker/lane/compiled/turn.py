"""Serve the sends and pulls of all connections that have data: receive, read, answer, send.

Whatever arrives, the kernel ends at a time: what it has not served by then is served by its next
call. A frame that it does not know is left to its caller, with all that follows it.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np
from numba import types

from mqlake.broker.lane.compiled.arguments import arguments_at
from mqlake.broker.lane.compiled.pull_turn import NEXT, NOTHING, is_pull, serve_pull_run
from mqlake.broker.lane.compiled.rests import is_partial, keep_rest, take_rest
from mqlake.broker.lane.compiled.send_frame import read_send
from mqlake.broker.lane.compiled.sends import serve_send
from mqlake.broker.lane.compiled.sockets import AT_ONCE, QUIETLY, next_event, now, recv, send
from mqlake.broker.lane.layout import (
    ACTIVE,
    ANSWERED,
    ANSWERS_AT,
    ANSWERS_BEGIN,
    ANSWERS_END,
    BINS,
    BY_CALLER,
    BY_KERNEL,
    BYTES,
    CONNECTION,
    COUNT,
    DATA_AT,
    DATA_SIZE,
    END,
    FIRST_SEND,
    FULL,
    IDLE,
    IS_BATCH,
    KNOWN,
    LATE,
    LONGEST,
    LONGEST_BATCHES,
    LONGEST_COUNT,
    LONGEST_OF,
    MAY_PUT,
    MESSAGES,
    NEW_LITE,
    OF_BATCHES,
    OTHER,
    POSITION,
    READS,
    RECEIVED,
    SEND_END,
    SENDS,
    SERVED,
    SERVED_ALL,
    SIGNED_BY,
    SIGNER,
    TIME,
    UNREAD,
    UNRECEIVED,
    UNSENT,
    UNSENT_AT,
    UNSENT_END,
    UNTIL,
    WITHHELD,
    WITHHELD_OF,
    WITHHOLDS,
)
from mqlake.broker.lane.pull_layout import NOTES, SPENT
from mqlake.kernels.blake2b import STATE
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow

_INT, _ADDRESS = types.int32, types.uintp
_BOUNDS = np.array(BINS)
_FEW = 31
"""Frames between two looks at the clock, minus 1; a bit mask."""


@inlined
def _note(state, times, took, count, batches):
    """Count frames that were served in so many nanoseconds, and of which some are batches."""
    place = 0
    while place < len(_BOUNDS) and took > _BOUNDS[place]:
        place += 1
    times[COUNT, place] += count - batches
    times[TIME, place] += took * (count - batches)
    times[OF_BATCHES + COUNT, place] += batches
    times[OF_BATCHES + TIME, place] += took * batches
    if took > state[LONGEST]:
        state[LONGEST], state[LONGEST_COUNT], state[LONGEST_BATCHES] = took, count, batches
        state[LONGEST_OF] = state[CONNECTION]


@inlined
def _is_continued(state, withheld):
    """Return whether the last answers that are withheld are of the current connection."""
    last = state[WITHHELD] - 1
    return last >= 0 and withheld[WITHHELD_OF, last] == state[CONNECTION]


@inlined
def _withhold(state, withheld, to, count):
    """Leave answers to the caller."""
    row = state[WITHHELD]
    if _is_continued(state, withheld):
        withheld[ANSWERS_END, row - 1] = to
        withheld[SENDS, row - 1] += count
    else:
        withheld[WITHHELD_OF, row] = state[CONNECTION]
        withheld[ANSWERS_BEGIN, row], withheld[ANSWERS_END, row] = state[ANSWERED], to
        withheld[FIRST_SEND, row], withheld[SENDS, row] = state[MESSAGES], count
        state[WITHHELD] = row + 1
    state[ANSWERED] = to


@inlined
def _take_back(state, withheld):
    """Return where the answers begin that this connection gets now: those that were withheld until
    the next offset of a lite topic was known are sent with those after them.
    """
    if _is_continued(state, withheld):
        state[WITHHELD] -= 1
        state[ANSWERED] = withheld[ANSWERS_BEGIN, state[WITHHELD]]
    return state[ANSWERED]


@inlined
def _serve_frames(
    state, data, reader, time, log, own, most, lane, topics, lites, users, times, waiting
):
    """Serve the sends at the beginning of what was received; return why that ends.

    Args:
        reader: who receives and sends over the connection: BY_KERNEL or BY_CALLER.
    """
    properties, message, (withheld, sends) = lane[0], lane[1], waiting
    starts, lengths = lane[8], lane[9]
    begun, count, batches, reason = now(state, time), 0, 0, NOTHING
    # What comes before are answers that the caller sends.
    to = state[ANSWERED]
    while not is_partial(data, state[POSITION], state[RECEIVED] - state[POSITION]):
        if is_pull(data, state[POSITION], state[RECEIVED]):
            reason = NEXT
            break
        number = state[MESSAGES] + count
        if number >= sends.shape[1] or state[WITHHELD] >= withheld.shape[1]:
            reason = FULL
            break
        if number >= state[MAY_PUT]:
            reason = OTHER
            break
        found = read_send(data, state[POSITION], own, most, starts, lengths, properties, message)
        reason, to = serve_send(state, data, log, lane, topics, lites, users, found, to)
        if reason != KNOWN:
            break
        is_batch = found[len(found) - 1]
        sends[SEND_END, number], sends[IS_BATCH, number] = state[END], is_batch
        count, batches = count + 1, batches + is_batch
        if count & _FEW == 0 and now(state, time) >= state[UNTIL]:
            reason = LATE
            break
    if count > 0:
        # A caller that finds out about a lite topic calls again at once.
        if state[WITHHOLDS] != 0 or reader != BY_KERNEL or reason == NEW_LITE:
            _withhold(state, withheld, to, count)
            if state[WITHHOLDS] == 0:
                _note(state, times, now(state, time) - begun, count, batches)
            state[MESSAGES] += count
            return reason
        connection, first = _INT(state[CONNECTION]), _take_back(state, withheld)
        address, size = _ADDRESS(state[ANSWERS_AT] + first), _ADDRESS(to - first)
        sent = send(connection, address, size, _INT(QUIETLY))
        _note(state, times, now(state, time) - begun, count, batches)
        state[MESSAGES] += count
        if sent < to - first:
            # What was not served yet comes after these answers.
            state[UNSENT_AT], state[UNSENT_END] = first + max(sent, 0), to
            return UNSENT
    return reason


@inlined
def _receive(state):
    """Receive what follows the rest of a connection; return whether something has arrived."""
    kept = state[RECEIVED]
    got = recv(
        _INT(state[CONNECTION]),
        _ADDRESS(state[DATA_AT] + kept),
        _ADDRESS(DATA_SIZE - kept),
        _INT(AT_ONCE),
    )
    state[RECEIVED] = kept + max(got, 0)
    return got > 0


@kernel
def serve(address):
    """Serve sends and pulls until no connection has data, or the caller must do something; return a
    reason.

    If state[RECEIVED] is not 0, what was received before is served first, from state[POSITION] on.
    If it is of the connection BYTES, nothing else is served.

    Args:
        address: of the kept arguments.
    """
    given = arguments_at(address)
    state, time, events = given.state, given.time, given.events
    seats, data = given.seats, given.data
    rests, rest_rows, hosts, pulls = given.rests, given.rest_rows, given.hosts, given.pulls
    lane = (
        *(given.properties, given.message, given.scratch, given.route, hosts, given.answers),
        *(given.texts, given.marks, given.starts, given.lengths),
    )
    topics = (
        *(given.slots, given.names, given.numbers, given.routes, given.seed, given.places),
        given.ends,
    )
    signing = (
        *(given.users.numbers, given.users.names, given.users.name_sizes),
        *(given.users.keys, given.users.text),
    )
    users = signing, given.users.permissions
    lites = (
        *(given.hashing[:STATE], given.hashing[STATE : 2 * STATE], given.hashing[2 * STATE :]),
        *(given.following.rows, given.following.used, given.following.earlier),
        given.most[3],
    )
    waiting = given.withheld, given.sends
    while True:
        if state[RECEIVED] == 0:
            moment = now(state, time)
            if moment >= state[UNTIL]:
                return LATE
            if not next_event(state, events, seats):
                return IDLE
            pulls.state[SPENT] = state[POSITION] = 0
            state[RECEIVED] = take_rest(state, seats, rest_rows, rests, data, moment)
            if seats[READS, state[CONNECTION]] == BY_CALLER:
                return UNRECEIVED
            if not _receive(state):
                return UNREAD
            seats[ACTIVE, state[CONNECTION]] = moment
        received = borrow(data[: state[RECEIVED]])
        before, connection = state[MESSAGES] + pulls.state[NOTES], state[CONNECTION]
        state[SIGNER] = seats[SIGNED_BY, connection]
        reason = NEXT
        while reason == NEXT:
            reason = _serve_frames(
                *(state, received, seats[READS, connection], time, given.log, given.own),
                *(given.most, lane, topics, lites, users, given.times, waiting),
            )
            if reason == NEXT:
                reason = serve_pull_run(
                    state, received, seats[READS, connection], time, pulls, given.answers
                )
        seats[SERVED, connection] += state[MESSAGES] + pulls.state[NOTES] - before
        if reason >= 0:
            return reason
        if connection == BYTES:
            return SERVED_ALL
        if not keep_rest(state, seats, rest_rows, rests, data, hosts):
            return OTHER
        state[POSITION] = state[RECEIVED] = 0
