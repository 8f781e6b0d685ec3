"""Find the place of a message in the queue of its lite topic, and write it to its properties.

Upstream: `MultiDispatchUtils`, `LiteUtil.toLmqName`.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.send_properties import PAIR_END
from mqlake.broker.lane.compiled.spans import text_bytes
from mqlake.broker.lane.layout import KNOWN, LITE_AT, LITE_HASH, LITE_SIZE, NEW_LITE, OTHER
from mqlake.broker.state.lite.names import QUEUE_BEGIN, SEPARATOR
from mqlake.broker.state.lite.next_offsets import FORGOTTEN
from mqlake.broker.state.lite.sent_properties import LONGEST_OFFSET
from mqlake.dispatch.compiled.put_sent import PROPERTIES_SIZE
from mqlake.formats.properties import (
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
)
from mqlake.kernels.blake2b import BLOCK, STATE, keyed_hash, keyed_start
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, copy, store_u8
from mqlake.kernels.rows.compiled import has_room, place_of

HASHING = 2 * STATE + BLOCK
"""Bytes that the hashes of queues need: the state after the key, a state, and a block."""

_SEPARATOR = ord(SEPARATOR)
_NAME_AT = len(f"{MULTI_DISPATCH}{NAME_VALUE_SEPARATOR}")
_BEGIN = text_bytes(f"{MULTI_DISPATCH}{NAME_VALUE_SEPARATOR}{QUEUE_BEGIN}")
_OFFSET = text_bytes(f"{PROPERTY_SEPARATOR}{MULTI_QUEUE_OFFSET}{NAME_VALUE_SEPARATOR}")
_ROOM = len(_BEGIN) + len(_OFFSET) + LONGEST_OFFSET + 2
"""Bytes of a place beyond the names of both topics, at most."""


@kernel
def begin_hash(hashing, key):
    """Prepare the hashes of queues; `key` is u8[8]."""
    hashing = borrow(hashing)
    keyed_start(hashing[:STATE], borrow(key), hashing[2 * STATE :])


@inlined
def _find_next(lites, name_hash):
    """Return the place of a queue's row in the table that counts; -1 if that must be asked for."""
    _, _, _, rows, used, earlier, _ = lites
    place = place_of(rows, name_hash)
    row = rows[place]
    if row.number != 0:
        return place if row.following != FORGOTTEN else np.int64(-1)
    known = earlier[place_of(earlier, name_hash)]
    if known.number == 0 or known.following == FORGOTTEN:
        return np.int64(-1)
    if not has_room(used[0], len(rows)):
        return np.int64(-1)
    row.name_hash, row.following, row.number = name_hash, known.following, known.number
    used[0] += 1
    return place


@inlined
def _put_text(target, to, text):
    copy(target, to, text, 0, len(text))
    return to + len(text)


@inlined
def enter_place(state, data, properties, message, lites, found):
    """Append the place of a message to its stored properties; return (KNOWN, or a reason to return;
    the number that `count_up` needs).

    Args:
        lites: the state after the key, a state, a block, rows, used, earlier: see `NextTables`;
            maximum bytes of stored properties.
        found: what `read_send` returned.
    """
    start, hash_state, block, rows, _, _, longest = lites
    topic_at, topic_size, lite_at, lite_size = found[1], found[2], found[7], found[8]
    size = message[PROPERTIES_SIZE]
    if size + _ROOM + topic_size + lite_size > longest:
        return OTHER, np.int64(-1)
    to = _put_text(properties, size, _BEGIN)
    copy(properties, to, data, topic_at, topic_size)
    to += topic_size
    store_u8(properties, to, _SEPARATOR)
    copy(properties, to + 1, properties, lite_at, lite_size)
    to += 1 + lite_size
    name_at = size + _NAME_AT
    name_hash = keyed_hash(start, properties, name_at, to - name_at, hash_state, block)
    place = _find_next(lites, name_hash)
    if place < 0:
        state[LITE_AT], state[LITE_SIZE] = name_at, to - name_at
        state[LITE_HASH] = np.int64(name_hash)
        return NEW_LITE, place
    to = put_decimal(properties, _put_text(properties, to, _OFFSET), rows[place].following)
    store_u8(properties, to, PAIR_END)
    message[PROPERTIES_SIZE] = to + 1
    return KNOWN, place


@inlined
def count_up(lites, place):
    """Count a message that was put."""
    lites[3][place].following += 1
