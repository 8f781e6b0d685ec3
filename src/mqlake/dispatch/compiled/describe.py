"""Describe the records that a walk found: properties, queue, tags code, key hashes.

Upstream: `CommitLog.checkMessageAndReturnSize`, `IndexService.buildIndex`.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.properties import find_properties
from mqlake.dispatch.compiled.queues import is_schedule_topic, key_prefix, queue_number
from mqlake.formats import properties, sys_flag
from mqlake.kernels.java_hash import hash_text, index_key_hash, signed
from mqlake.kernels.jit import inlined, kernel, outlined
from mqlake.kernels.memory import (
    BLOCK,
    borrow,
    equal_mask,
    load_u8,
    lowest_bit,
    prefetch_read,
)
from mqlake.kernels.utf8 import first_bytes

_SPACE, _PLUS, _MINUS, _ZERO = ord(properties.KEY_SEPARATOR), ord("+"), ord("-"), ord("0")
_MAX_INT = 0x7FFFFFFF
_AHEAD = 4
"""The properties of records are asked for before their turn: bodies lie between them."""
_BITS = 0xFFFFFFFF
_TAG_INFIX = tuple(b"T#")
_TRANSACTION, _ROLLBACK = sys_flag.TRANSACTION_MASK, sys_flag.TRANSACTION_ROLLBACK
_PREPARED = sys_flag.TRANSACTION_PREPARED


@outlined
def _delay_level(buffer, at, length):
    """Return what Integer.parseInt gives, 0 for what it refuses (`consume_queue.delay_level`)."""
    end, negative = at + length, False
    if length > 0 and load_u8(buffer, at) in (_PLUS, _MINUS):
        negative = load_u8(buffer, at) == _MINUS
        at += 1
    while end - at > 1 and load_u8(buffer, at) == _ZERO:
        at += 1
    if not 0 < end - at <= 10:
        return 0
    level = 0
    for place in range(at, end):
        digit = load_u8(buffer, place) - _ZERO
        if not 0 <= digit <= 9:
            return 0
        level = level * 10 + digit
    return 0 if negative or level > _MAX_INT else level


@inlined
def _tags_code(buffer, tags, scheduled, delay, store_timestamp, delay_levels):
    if scheduled:
        level = min(_delay_level(buffer, *delay), len(delay_levels))
        if level > 0:
            return store_timestamp + delay_levels[level - 1]
    if tags[1] == 0:
        return np.int64(0)
    return signed(hash_text(0, buffer, tags[0], tags[0] + tags[1]))


@inlined
def _add_key(keys, count, prefix, buffer, at, end, row):
    key = keys[count]
    key.hash = index_key_hash(hash_text(prefix, buffer, at, end))
    key.record = row
    return count + 1


@inlined
def _add_keys(keys, count, prefix, buffer, spans, index_tags, row):
    """Add the hashes that RocketMQ indexes, in its order; return how many keys there are now."""
    tags, words, unique_key = spans
    if unique_key[1] > 0:
        count = _add_key(keys, count, prefix, buffer, unique_key[0], sum(unique_key), row)
    at, end = words[0], words[0] + words[1]
    for block in range(at, end + 1, BLOCK):
        spaces = first_bytes(equal_mask(buffer, block, _SPACE), end - block)
        if end - block < BLOCK:
            spaces |= np.uint64(1) << np.uint64(end - block)
        while spaces != 0:
            space = block + lowest_bit(spaces)
            spaces &= spaces - np.uint64(1)
            if space > at:
                count = _add_key(keys, count, prefix, buffer, at, space, row)
            at = space + 1
    if index_tags and tags[1] > 0:
        for byte in _TAG_INFIX:
            prefix = prefix * 31 + byte & _BITS
        count = _add_key(keys, count, prefix, buffer, tags[0], sum(tags), row)
    return count


@kernel
def describe(
    buffer,
    records,
    keys,
    slots,
    queues,
    arena,
    fill,
    seed,
    delay_levels,
    hash_keys,
    index_tags,
):
    """Fill the columns that follow from properties; return how many keys there are.

    The queue table has room for all queues of the records, and `keys` for all their keys.
    """
    buffer, records, keys, slots, queues, arena, fill = (
        borrow(buffer),
        borrow(records),
        borrow(keys),
        borrow(slots),
        borrow(queues),
        borrow(arena),
        borrow(fill),
    )
    count = 0
    for row in range(len(records)):
        if row + _AHEAD < len(records):
            ahead = records[row + _AHEAD]
            prefetch_read(buffer, np.int64(ahead.properties_at))
            prefetch_read(buffer, np.int64(ahead.properties_at) + BLOCK - 1)
        found = records[row]
        topic_at, topic_length = np.int64(found.topic_at), np.int64(found.topic_length)
        start, flags = np.int64(found.properties_at), found.sys_flag
        tags, words, unique_key, delay = find_properties(
            buffer, start, start + found.properties_length
        )
        transaction = flags & _TRANSACTION
        if transaction in (_PREPARED, _ROLLBACK):
            number = -1
            prefix = np.int64(key_prefix(buffer, topic_at, topic_length))
            scheduled = is_schedule_topic(buffer, topic_at, topic_length)
        else:
            number = queue_number(
                buffer,
                topic_at,
                topic_length,
                np.int64(found.queue_id),
                slots,
                queues,
                arena,
                fill,
                seed,
            )
            prefix = np.int64(queues[number].key_prefix)
            scheduled = queues[number].scheduled != 0
        found.queue = number
        found.tags_code = _tags_code(
            buffer, tags, scheduled, delay, found.store_timestamp, delay_levels
        )
        found.tags_at, found.tags_length = tags
        found.keys_at, found.keys_length = words
        found.unique_key_at, found.unique_key_length = unique_key
        found.key_start = count
        if hash_keys and transaction != _ROLLBACK:
            spans = (tags, words, unique_key)
            count = _add_keys(keys, count, prefix, buffer, spans, index_tags, row)
        found.key_count = count - found.key_start
    return count
