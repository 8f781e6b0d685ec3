"""Find the light queues of a batch's records, by their properties.

Upstream: `MultiDispatchUtils`.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.properties import separators
from mqlake.formats.light.light_queue_file import LONGEST_NAME, MOST_NAMES
from mqlake.formats.properties import MULTI_DISPATCH, MULTI_QUEUE_OFFSET
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.kernels.blake2b import BLOCK as HASH_BLOCK
from mqlake.kernels.blake2b import STATE, keyed_hash, keyed_start
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.memory import (
    BLOCK,
    borrow,
    equal_mask,
    load_u8,
    load_u32,
    load_word,
    lowest_bit,
)
from mqlake.kernels.utf8 import first_bytes

_SEPARATOR, _ZERO = ord(","), ord("0")
_ONE = np.uint64(1)
_LONGEST_OFFSET = 19


def _words(name: str) -> tuple[np.uint64, ...]:
    data = name.encode()
    return tuple(np.frombuffer(data[: len(data) // 8 * 8], np.uint64))


_COMMON, _NAMES, _OFFSETS = *_words(MULTI_DISPATCH), _words(MULTI_QUEUE_OFFSET)[1]
_NAMES_LENGTH, _OFFSETS_LENGTH = len(MULTI_DISPATCH), len(MULTI_QUEUE_OFFSET)
_NAMES_END = int.from_bytes(MULTI_DISPATCH.encode()[16:], "big")
_OFFSETS_END = _words(MULTI_QUEUE_OFFSET)[2]
_PREFIX = int.from_bytes(LIGHT_PREFIX.encode()[:4], "big")
_PREFIX_LENGTH, _PREFIX_LAST = len(LIGHT_PREFIX), ord(LIGHT_PREFIX[4:])


@inlined
def _find_places(buffer, start, end):
    """Return where the values of both properties begin and end; the last of equal names wins."""
    names_at, names_end, offsets_at, offsets_end = 0, 0, 0, 0
    name_at, name_end = start, -1
    for block in range(start, end + 1, BLOCK):
        name_ends, ends = separators(buffer, block, end)
        bits = name_ends | ends
        while bits != 0:
            bit = bits & (~bits + _ONE)
            at = block + lowest_bit(bits)
            bits ^= bit
            if ends & bit == 0:
                if name_end < 0:
                    name_end = at
                continue
            length = name_end - name_at
            if length in (_NAMES_LENGTH, _OFFSETS_LENGTH):
                second = load_word(buffer, name_at + 8)
                if load_word(buffer, name_at) != _COMMON:
                    pass
                elif length == _NAMES_LENGTH:
                    if second == _NAMES and load_u32(buffer, name_at + 16) == _NAMES_END:
                        names_at, names_end = name_end + 1, at
                elif second == _OFFSETS and load_word(buffer, name_at + 16) == _OFFSETS_END:
                    offsets_at, offsets_end = name_end + 1, at
            name_at, name_end = at + 1, -1
    return names_at, names_end, offsets_at, offsets_end


@inlined
def _part_end(buffer, at, end):
    """Return the position of the next separator; `end` without one."""
    for block in range(at, end, BLOCK):
        found = first_bytes(equal_mask(buffer, block, _SEPARATOR), end - block)
        if found != 0:
            return block + lowest_bit(found)
    return end


@inlined
def _is_name(buffer, at, length):
    return (
        _PREFIX_LENGTH < length <= LONGEST_NAME
        and load_u32(buffer, at) == _PREFIX
        and load_u8(buffer, at + 4) == _PREFIX_LAST
    )


@inlined
def _queue_offset(buffer, at, end):
    """Return the queue offset in a text; -1 if the text is not a number of 64 bits."""
    if not 0 < end - at <= _LONGEST_OFFSET:
        return np.int64(-1)
    value = np.int64(0)
    for place in range(at, end):
        digit = load_u8(buffer, place) - _ZERO
        if not 0 <= digit <= 9:
            return np.int64(-1)
        value = value * 10 + digit
    return max(value, np.int64(-1))  # A number above 2^63 - 1 has become negative.


@inlined
def _add(buffer, record, topic, places, hashing, messages, count):
    """Fill a row for each light queue of a record; return how many rows are filled now."""
    name_at, names_end, offset_at, offsets_end = places
    start, state, block = hashing
    filled, number = count, 0
    while True:
        name_end = _part_end(buffer, name_at, names_end)
        offset_end = _part_end(buffer, offset_at, offsets_end)
        length = name_end - name_at
        if number < MOST_NAMES and _is_name(buffer, name_at, length):
            queue_offset = _queue_offset(buffer, offset_at, offset_end)
            if queue_offset >= 0:
                name_hash = keyed_hash(start, buffer, name_at, length, state, block)
                place = count
                while place < filled and messages[place].name_hash != name_hash:
                    place += 1
                message = messages[place]
                message.name_hash = name_hash
                message.physical_offset = record.physical_offset
                message.queue_offset = queue_offset
                message.name_at, message.name_length = name_at, length
                message.size, message.topic = record.size, topic
                filled = max(filled, place + 1)
        number += 1
        if name_end == names_end or offset_end == offsets_end:
            return filled if name_end == names_end and offset_end == offsets_end else count
        name_at, offset_at = name_end + 1, offset_end + 1


@brief_kernel
def find(buffer, records, topics, first, key, messages):
    """Fill a row for each light queue of each record: see `LightKernel.find`.

    `key` is the key of the hashes, u8[8].
    """
    buffer, records, topics = borrow(buffer), borrow(records), borrow(topics)
    messages, key = borrow(messages), borrow(key)
    start, state = np.empty(STATE, np.uint8), np.empty(STATE, np.uint8)
    block = np.empty(HASH_BLOCK, np.uint8)
    hashing = borrow(start), borrow(state), borrow(block)
    keyed_start(hashing[0], key, hashing[2])
    count = 0
    for row in range(first, len(records)):
        record = records[row]
        if record.queue < 0 or topics[record.queue] < 0:
            continue
        if count + MOST_NAMES > len(messages):
            return count, row
        at = np.int64(record.properties_at)
        places = _find_places(buffer, at, at + record.properties_length)
        if places[0] > 0 and places[2] > 0:
            topic = topics[record.queue]
            count = _add(buffer, record, topic, places, hashing, messages, count)
    return count, len(records)
