"""Put one send, single or batch, and write its answer."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.answers import NEXT_ID_SIZE, SPARE, put_binary, put_json
from mqlake.broker.lane.compiled.batches import put_batch
from mqlake.broker.lane.compiled.lites import count_up, enter_place
from mqlake.broker.lane.compiled.signatures import OPEN, UNKNOWN, WRONG, check_signature
from mqlake.broker.lane.compiled.topics import find_topic
from mqlake.broker.lane.layout import (
    BASE,
    CONNECTION,
    END,
    FIRST_QUEUE,
    FIRST_USER,
    FULL,
    KNOWN,
    LONGEST_FRAME,
    NAME_SIZE,
    NEW_PERMISSION,
    NEW_QUEUE,
    NEW_TOPIC,
    NEW_USER,
    OTHER,
    POSITION,
    QUEUE,
    QUEUES,
    ROOM_END,
    ROUTE_SIZE,
    SIGNER,
    STORE_TIME,
    TAKES_BATCHES,
    TAKES_LITES,
    TOPIC,
)
from mqlake.dispatch.compiled.put import PART_LENGTH_AT, QUEUE_ID_AT
from mqlake.dispatch.compiled.put_sent import BODY_SIZE, put_sent
from mqlake.formats.message_batch import LEAST_SIZE
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import copy, load_u8, store_i64
from mqlake.protocol.command import Serialization

_JSON = int(Serialization.JSON)
_HOST = 8
_BORN_HOST_AT = PART_LENGTH_AT + 8


@inlined
def _may_send(state, users, topic):
    """Return whether the user who has signed a send is known to have the permission for a topic."""
    signing, permissions = users
    state[TOPIC] = topic
    return permissions[topic, state[SIGNER] - signing[0][FIRST_USER]] != 0


@inlined
def _find(state, data, lane, topics, users, found):
    """Return (KNOWN, or a reason to return; the number of the topic) of a send."""
    slots, names, numbers, _, seed = topics[:5]
    following, topic_at, topic_size = found[:3]
    nothing = np.int64(-1)
    if following == 0 or following - state[POSITION] > LONGEST_FRAME or topic_size > NAME_SIZE - 8:
        return OTHER, nothing
    signature = check_signature(state, data, lane[8:], lane[0], lane[1], users[0])
    if signature == WRONG:
        return OTHER, nothing
    if signature == UNKNOWN:
        return NEW_USER, nothing
    topic = find_topic(data, topic_at, topic_size, slots, names, numbers, seed)
    if topic < 0:
        return NEW_TOPIC, nothing
    if signature != OPEN and not _may_send(state, users, topic):
        return NEW_PERMISSION, nothing
    return KNOWN, topic


@inlined
def serve_send(state, data, log, lane, topics, lites, users, found, to):
    """Put and answer the frame at state[POSITION]; return (a reason, position after the answer).

    Args:
        lane: stored properties, numbers of the message, scratch, route, born hosts, answers, their
            texts and marks, starts and lengths of the fields.
        topics: slots, names, numbers of topics, routes, seed, places of queues, next offsets.
        lites: what `enter_place` needs.
        users: what `check_signature` needs, permissions.
        found: what `read_send` returned.
    """
    properties, message, scratch, route, hosts, answers, texts, marks = lane[:8]
    _, _, numbers, routes, _, places, ends = topics
    at = state[POSITION]
    following, _, _, queue_id, opaque, key_at, key_size, _, lite_size, is_batch = found
    reason, topic = _find(state, data, lane, topics, users, found)
    if reason != KNOWN:
        return reason, to
    if queue_id >= numbers[QUEUES, topic] or is_batch > numbers[TAKES_BATCHES, topic]:
        return OTHER, to
    queue = numbers[FIRST_QUEUE, topic] + queue_id
    state[QUEUE] = queue
    place = places[queue] - 1
    if place < 0:
        return NEW_QUEUE, to
    ids_size = message[BODY_SIZE] // LEAST_SIZE * NEXT_ID_SIZE if is_batch != 0 else 0
    if len(answers) - to < ids_size + key_size + len(texts) + SPARE:
        return FULL, to
    row = np.int64(-1)
    if lite_size > 0:
        if numbers[TAKES_LITES, topic] == 0:
            return OTHER, to
        reason, row = enter_place(state, data, properties, message, lites, found)
        if reason != KNOWN:
            return reason, to
    copy(route, 0, routes, topic * ROUTE_SIZE, ROUTE_SIZE)
    store_i64(route, QUEUE_ID_AT, queue_id)
    copy(route, _BORN_HOST_AT, hosts, state[CONNECTION] * _HOST, _HOST)
    base, end = state[BASE], state[END]
    placed = end, max(ends[place], 0)
    room_end, now, first, count = state[ROOM_END], state[STORE_TIME], placed[1], 1
    if is_batch != 0:
        size, count = put_batch(
            log, end - base, room_end, base, scratch, route, first, now, data, message
        )
    else:
        size = put_sent(
            log, end - base, room_end, base, scratch, route, first, now, data, properties, message
        )
    if size < 0:
        return OTHER, to
    state[END] = end + size
    ends[place] = first + count
    if row >= 0:
        count_up(lites, row)
    key, records = (properties, key_at, key_size), (scratch, count)
    if load_u8(data, at + 4) == _JSON:
        to = put_json(answers, to, texts, marks, placed, records, queue_id, key, opaque)
    else:
        to = put_binary(answers, to, texts, marks, placed, records, queue_id, key, opaque)
    state[POSITION] = following
    return KNOWN, to
