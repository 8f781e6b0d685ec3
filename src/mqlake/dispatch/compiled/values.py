"""Write the chosen columns of a batch's records (`mqlake.dispatch.value_columns`).

All columns are written for some records at a time, whose bytes stay in the core's cache from one
column to the next. Bodies and properties are read once.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.hosts import LONGEST_HOST, LONGEST_ID, put_hosts, put_message_ids
from mqlake.dispatch.compiled.property_values import (
    NOTHING,
    borrowed,
    property_rooms,
    property_values,
    put_properties,
)
from mqlake.dispatch.value_columns import BITS, INTS, LONGS
from mqlake.formats import host, record, sys_flag
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import BLOCK, borrow, load_i32, load_i64, prefetch_read
from mqlake.kernels.values import copy_text, text_room

_SOME = 128
"""Records whose heads, and what was written of them, fit into the first caches."""
_TOPIC, _BORN_HOST, _STORE_HOST = BITS["topic"], BITS["bornHost"], BITS["storeHost"]
_MESSAGE_ID, _BODY = BITS["msgId"], BITS["body"]
_BORN_HOST_V6, _STORE_HOST_V6 = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_BORN_HOST_AT = record.BORN_HOST_AT
_V4_SIZE, _V6_SIZE = host.V4_SIZE, host.V6_SIZE
_INT_COUNT, _LONG_COUNT = len(INTS), len(LONGS)
_FIRST_TIME = LONGS.index("bornTimestamp")
_START, _STORED, _BEHIND = 0, 1, 2
"""Rows of positions: of the record, of its store timestamp, of what follows the store host."""
_INT_FIELDS = np.array(
    [
        (_START, record.QUEUE_ID_AT),
        (_START, 0),
        (_START, record.BODY_CRC_AT),
        (_START, record.SYS_FLAG_AT),
        (_START, record.FLAG_AT),
        (_BEHIND, 0),
    ]
)
_LONG_FIELDS = np.array(
    [
        (_START, record.QUEUE_OFFSET_AT),
        (_START, record.PHYSICAL_OFFSET_AT),
        (_BEHIND, 4),
        (_START, record.BORN_TIMESTAMP_AT),
        (_STORED, 0),
    ]
)


@inlined
def _find_places(buffer, base, records, places):
    for row in range(len(records)):
        found = records[row]
        start, flags = found.physical_offset - base, found.sys_flag
        prefetch_read(buffer, start)
        prefetch_read(buffer, start + BLOCK)
        topic_at = np.int64(found.topic_at)
        prefetch_read(buffer, topic_at)
        prefetch_read(buffer, topic_at + BLOCK)
        prefetch_read(buffer, topic_at + 2 * BLOCK)
        stored = start + _BORN_HOST_AT + (_V6_SIZE if flags & _BORN_HOST_V6 else _V4_SIZE)
        places[_START, row], places[_STORED, row] = start, stored
        places[_BEHIND, row] = stored + 8 + (_V6_SIZE if flags & _STORE_HOST_V6 else _V4_SIZE)


@inlined
def _put_ints(buffer, places, distance, target):
    for row in range(len(target)):
        target[row] = load_i32(buffer, places[row] + distance)


@inlined
def _put_longs(buffer, places, distance, target):
    for row in range(len(target)):
        target[row] = load_i64(buffer, places[row] + distance)


@inlined
def _convert_times(target, first, last, factor):
    for row in range(len(target)):
        target[row] = min(max(target[row], first), last) * factor


@inlined
def _put_topics(buffer, records, offsets, data, to):
    for row in range(len(records)):
        found = records[row]
        to = copy_text(data, to, buffer, np.int64(found.topic_at), np.int64(found.topic_length))
        offsets[row + 1] = to
    return to


@inlined
def _put_bodies(buffer, records, offsets, data, to):
    for row in range(len(records)):
        found = records[row]
        to = copy_text(data, to, buffer, np.int64(found.body_at), np.int64(found.body_length))
        offsets[row + 1] = to
    return to


@inlined
def _sizes(records):
    """Return the bytes of all topics, of all bodies, of all properties and of the longest."""
    topics = bodies = texts = longest = np.int64(0)
    for row in range(len(records)):
        found = records[row]
        topics += found.topic_length
        bodies += found.body_length
        texts += found.properties_length
        longest = max(longest, np.int64(found.properties_length))
    return topics, bodies, texts, longest


@inlined
def _chosen_of(chosen, first, count):
    """Return how many of `count` columns, the first of which has bit number `first`, are chosen."""
    found = 0
    for place in range(first, first + count):
        found += chosen >> place & 1
    return found


@kernel
def values(buffer, base, records, chosen, first_time, last_time, factor, seed):
    """Return the fields of `mqlake.dispatch.value_columns.Values`."""
    buffer, records = borrow(buffer), borrow(records)
    count = len(records)
    topic_bytes, body_bytes, text_bytes, longest = _sizes(records)
    ints = np.empty((_chosen_of(chosen, 0, _INT_COUNT), count), np.int32)
    longs = np.empty((_chosen_of(chosen, _INT_COUNT, _LONG_COUNT), count), np.int64)
    topic_offsets, topics = text_room(chosen & _TOPIC, count, topic_bytes)
    born_offsets, born_hosts = text_room(chosen & _BORN_HOST, count, count * LONGEST_HOST)
    store_offsets, store_hosts = text_room(chosen & _STORE_HOST, count, count * LONGEST_HOST)
    id_offsets, ids = text_room(chosen & _MESSAGE_ID, count, count * LONGEST_ID)
    body_offsets, bodies = text_room(chosen & _BODY, count, body_bytes)
    rooms = property_rooms(chosen, count, text_bytes, longest)
    property_texts, is_text, done = borrowed(rooms), True, NOTHING
    topic_to = born_to = store_to = id_to = body_to = np.int64(0)
    some_places = np.empty((3, _SOME), np.int64)
    for first in range(0, count, _SOME):
        last = min(first + _SOME, count)
        some, places = borrow(records[first:last]), borrow(some_places)
        _find_places(buffer, base, some, places)
        row = 0
        for column in range(_INT_COUNT):
            if chosen >> column & 1:
                source, distance = _INT_FIELDS[column, 0], _INT_FIELDS[column, 1]
                _put_ints(buffer, places[source], distance, borrow(ints[row][first:last]))
                row += 1
        row = 0
        for column in range(_LONG_COUNT):
            if chosen >> (_INT_COUNT + column) & 1:
                source, distance = _LONG_FIELDS[column, 0], _LONG_FIELDS[column, 1]
                target = borrow(longs[row][first:last])
                _put_longs(buffer, places[source], distance, target)
                if column >= _FIRST_TIME and factor != 1:
                    _convert_times(target, first_time, last_time, factor)
                row += 1
        if chosen & _TOPIC:
            topic_to = _put_topics(buffer, some, borrow(topic_offsets[first:]), topics, topic_to)
        if chosen & _BORN_HOST:
            born_to = put_hosts(
                buffer,
                places[_START],
                _BORN_HOST_AT,
                some,
                _BORN_HOST_V6,
                borrow(born_offsets[first:]),
                born_hosts,
                born_to,
            )
        if chosen & _STORE_HOST:
            store_to = put_hosts(
                buffer,
                places[_STORED],
                8,
                some,
                _STORE_HOST_V6,
                borrow(store_offsets[first:]),
                store_hosts,
                store_to,
            )
        if chosen & _MESSAGE_ID:
            id_to = put_message_ids(
                buffer,
                places[_START],
                places[_STORED],
                some,
                borrow(id_offsets[first:]),
                ids,
                id_to,
            )
        if chosen & _BODY:
            body_to = _put_bodies(buffer, some, borrow(body_offsets[first:]), bodies, body_to)
        is_text, done = put_properties(
            buffer, some, first, chosen, property_texts, is_text, done, seed
        )
    texts = (
        (topic_offsets, topics[:topic_to]),
        (born_offsets, born_hosts[:born_to]),
        (store_offsets, store_hosts[:store_to]),
        (id_offsets, ids[:id_to]),
        (body_offsets, bodies[:body_to]),
    )
    of_properties = property_values(count, rooms, is_text, done)
    return (ints, longs, texts, *of_properties)
