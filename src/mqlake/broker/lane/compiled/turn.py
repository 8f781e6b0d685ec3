"""Serve the sends of all connections that have data: receive, read, put, answer, send.

Whatever arrives, the kernel ends at a time: what it has not served by then is served by its next
call. A frame that it does not know is left to its caller, with all that follows it.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np
from numba import types

from mqlake.broker.lane.compiled.answers import SPARE, put_binary, put_json
from mqlake.broker.lane.compiled.sockets import AT_ONCE, QUIETLY, next_event, now, recv, send
from mqlake.broker.lane.compiled.topics import find_topic
from mqlake.broker.lane.layout import (
    ANSWERS_AT,
    BASE,
    BINS,
    CONNECTION,
    DATA_AT,
    DATA_SIZE,
    END,
    IDLE,
    LATE,
    LONGEST,
    LONGEST_COUNT,
    LONGEST_FRAME,
    LONGEST_OF,
    MESSAGES,
    NAME_SIZE,
    NEW_QUEUE,
    NEW_TOPIC,
    OTHER,
    POSITION,
    QUEUE,
    RECEIVED,
    ROOM_END,
    ROUTE_SIZE,
    STORE_TIME,
    TOUCHED,
    UNREAD,
    UNSENT,
    UNSENT_AT,
    UNSENT_END,
    UNTIL,
)
from mqlake.broker.send.compiled.single_send import read_single
from mqlake.dispatch.compiled.put import PART_LENGTH_AT, QUEUE_ID_AT
from mqlake.dispatch.compiled.put_sent import put_sent
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, copy, load_u8, store_i64
from mqlake.protocol.command import Serialization

_JSON = int(Serialization.JSON)
_INT, _ADDRESS = types.int32, types.uintp
_BOUNDS = np.array(BINS)
_HOST = 8
_BORN_HOST_AT = PART_LENGTH_AT + 8
_FEW = 31
"""Frames between two looks at the clock, minus 1; a bit mask."""
_LENGTHS = 8
_NOTHING, _KNOWN = -1, -2
"""Besides the reasons to return: no whole frame is left; the frame was served."""


@inlined
def _serve_frame(state, data, log, lane, topics, found, to):
    """Put and answer the frame at state[POSITION]; return (a reason, position after the answer).

    Args:
        lane: stored properties, numbers of the message, scratch, route, born hosts, answers, texts
            of answers in both forms.
        topics: slots, names, sizes of names, first queues, numbers of queues, routes, seed, next
            offsets, touched queues, whether a queue is touched.
    """
    properties, message, scratch, route, hosts, answers, binary, json = lane
    slots, names, sizes, firsts, counts, routes, seed, offsets, touched, marks = topics
    at = state[POSITION]
    following, topic_at, topic_size, queue_id, opaque, key_at, key_size = found
    if following == 0 or following - at > LONGEST_FRAME or topic_size > NAME_SIZE - 8:
        return OTHER, to
    topic = find_topic(data, topic_at, topic_size, slots, names, sizes, seed)
    if topic < 0:
        return NEW_TOPIC, to
    if queue_id >= counts[topic]:
        return OTHER, to
    queue = firsts[topic] + queue_id
    state[QUEUE] = queue
    if offsets[queue] < 0:
        return NEW_QUEUE, to
    start, places, fields, text, parts = binary[0], binary[1], binary[2], json[0], json[1]
    if len(answers) - to < key_size + len(start) + len(text) + SPARE:
        return OTHER, to
    copy(route, 0, routes, topic * ROUTE_SIZE, ROUTE_SIZE)
    store_i64(route, QUEUE_ID_AT, queue_id)
    copy(route, _BORN_HOST_AT, hosts, state[CONNECTION] * _HOST, _HOST)
    base, end = state[BASE], state[END]
    placed = end, offsets[queue]
    size = put_sent(
        log,
        end - base,
        state[ROOM_END],
        base,
        scratch,
        route,
        placed[1],
        state[STORE_TIME],
        data,
        properties,
        message,
    )
    if size < 0:
        return OTHER, to
    state[END] = end + size
    offsets[queue] += 1
    if marks[queue] == 0:
        marks[queue] = 1
        touched[state[TOUCHED]] = queue
        state[TOUCHED] += 1
    key = properties, key_at, key_size
    if load_u8(data, at + 4) == _JSON:
        to = put_json(answers, to, text, parts, placed, queue_id, key, opaque)
    else:
        to = put_binary(answers, to, start, places, fields, placed, queue_id, key, opaque)
    state[POSITION] = following
    return _KNOWN, to


@inlined
def _note(state, times, took, count):
    """Count frames that were served in so many nanoseconds."""
    place = 0
    while place < len(_BOUNDS) and took > _BOUNDS[place]:
        place += 1
    times[0, place] += count
    times[1, place] += took * count
    state[MESSAGES] += count
    if took > state[LONGEST]:
        state[LONGEST], state[LONGEST_COUNT] = took, count
        state[LONGEST_OF] = state[CONNECTION]


@inlined
def _serve_frames(state, data, time, log, own, most, lane, topics, times):
    """Serve what was received of one connection; return why it ends."""
    properties, message = lane[0], lane[1]
    begun, count, to, reason = now(state, time), 0, np.int64(0), _NOTHING
    while state[RECEIVED] - state[POSITION] > _LENGTHS:
        found = read_single(data, state[POSITION], own, most, properties, message)
        reason, to = _serve_frame(state, data, log, lane, topics, found, to)
        if reason != _KNOWN:
            break
        count += 1
        if count & _FEW == 0 and now(state, time) >= state[UNTIL]:
            reason = LATE
            break
    if state[RECEIVED] > state[POSITION] and reason < 0:
        reason = OTHER
    if count > 0:
        connection = _INT(state[CONNECTION])
        sent = send(connection, _ADDRESS(state[ANSWERS_AT]), _ADDRESS(to), _INT(QUIETLY))
        _note(state, times, now(state, time) - begun, count)
        if sent < to:
            # What was not served yet comes after these answers.
            state[UNSENT_AT], state[UNSENT_END] = max(sent, 0), to
            return UNSENT
    return reason


@kernel
def serve(
    log,
    state,
    time,
    events,
    readers,
    active,
    served,
    data,
    own,
    most,
    properties,
    message,
    scratch,
    route,
    hosts,
    answers,
    start,
    places,
    names_0,
    names_1,
    names_2,
    text,
    parts,
    slots,
    topics,
    sizes,
    firsts,
    counts,
    routes,
    seed,
    offsets,
    touched,
    marks,
    times,
):
    """Serve sends until no connection has data, or the caller must do something; return a reason.

    If state[RECEIVED] is not 0, what was received before is served first, from state[POSITION] on.

    Args:
        log: u1[n], the file of the log to which records are appended.
        state: i8[STATES]; see `layout`.
        time: i8[2], for the clock.
        events: i4[n], for epoll.
        readers: u1[n], whether a connection is read here, by its file descriptor.
        active: i8[n], gets when a connection was read, in monotonic nanoseconds.
        served: i8[n], counts the sends of each connection that were served.
        data: u1[DATA_SIZE], for what is received.
        own, most, properties, message: see `read_single`.
        scratch, route: u1[n], for a record, and for what is written around it.
        hosts: u1[n], 8 bytes for each connection: its address in records.
        answers: u1[ANSWERS_SIZE].
        start, places, names_0 …: see `answer_sends`.
        text, parts: see `put_json`.
        slots, topics, sizes, firsts, counts, routes, seed: the table of topics.
        offsets, touched, marks: of queues: next offsets; the queues that were put to, and whether
            a queue is among these.
        times: i8[2, n], gets the number of messages by how long they took, and how long that was.
    """
    state, time, events = borrow(state), borrow(time), borrow(events)
    data, log, routes, hosts = borrow(data), borrow(log), borrow(routes), borrow(hosts)
    answers, route, names, text = borrow(answers), borrow(route), borrow(topics), borrow(text)
    properties, message, start = borrow(properties), borrow(message), borrow(start)
    binary = start, places, (borrow(names_0), borrow(names_1), borrow(names_2))
    json = text, borrow(parts)
    lane = properties, message, scratch, route, hosts, answers, binary, json
    table = slots, names, sizes, firsts, counts, routes, seed, offsets, touched, marks
    while True:
        if state[RECEIVED] == 0:
            moment = now(state, time)
            if moment >= state[UNTIL]:
                return LATE
            if not next_event(state, events, readers):
                return IDLE
            got = recv(
                _INT(state[CONNECTION]),
                _ADDRESS(state[DATA_AT]),
                _ADDRESS(DATA_SIZE),
                _INT(AT_ONCE),
            )
            if got <= 0:
                return UNREAD
            active[state[CONNECTION]] = moment
            state[POSITION], state[RECEIVED] = 0, got
        received = borrow(data[: state[RECEIVED]])
        before = state[MESSAGES]
        reason = _serve_frames(state, received, time, log, own, most, lane, table, times)
        served[state[CONNECTION]] += state[MESSAGES] - before
        if reason >= 0:
            return reason
        state[POSITION] = state[RECEIVED] = 0
