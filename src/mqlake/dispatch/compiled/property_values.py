"""Write the chosen columns that follow from properties: tags, keys, unique keys, all pairs."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.lists import LEAST_PAIR, find_pairs, pairs_room, put_keys
from mqlake.dispatch.compiled.properties import KEYS, TAGS, UNIQ_KEY, find_properties
from mqlake.dispatch.value_columns import BITS, OF_PROPERTIES
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import borrow, load_u32, load_word
from mqlake.kernels.utf8 import is_valid
from mqlake.kernels.values import copy_text, text_room

_TAGS, _UNIQUE_KEY = BITS["tags"], BITS["uniqKey"]
_KEYS, _PROPERTIES = BITS["keys"], BITS["properties"]
_ANY = sum(BITS[name] for name in OF_PROPERTIES)


@inlined
def _put_optional(room, to, row, buffer, span):
    """Write a text, or null if it has no bytes; return the position after it."""
    (present, offsets, data), (at, length) = room, span
    if length > 0:
        present[row >> 3] |= np.uint8(1 << (row & 7))
        to = copy_text(data, to, buffer, at, length)
    offsets[row + 1] = to
    return to


@inlined
def _named(buffer, pairs, count):
    """Return position and length of the values of TAGS, KEYS and UNIQ_KEY among pairs; 0, 0 for
    none.
    """
    tags = words = unique_key = (np.int64(0), np.int64(0))
    for place in range(count):
        name_at, name_length = pairs[place, 0], pairs[place, 1]
        if name_length == 4:
            name = load_u32(buffer, name_at)
            if name == TAGS:
                tags = (pairs[place, 2], pairs[place, 3])
            elif name == KEYS:
                words = (pairs[place, 2], pairs[place, 3])
        elif name_length == 8 and load_word(buffer, name_at) == UNIQ_KEY:
            unique_key = (pairs[place, 2], pairs[place, 3])
    return tags, words, unique_key


@inlined
def property_rooms(chosen, count, size, longest):
    """Return what `put_properties` writes to, for so many records.

    Args:
        size: bytes of all properties.
        longest: bytes of those of one record.
    """
    if chosen & _ANY == 0:
        count = size = longest = np.int64(0)
    tag_offsets, tags = text_room(chosen & _TAGS, count, size)
    unique_offsets, unique_keys = text_room(chosen & _UNIQUE_KEY, count, size)
    most_keys = count + size // 2 if chosen & _KEYS else 0
    starts, _ = text_room(chosen & _KEYS, count, 0)
    key_offsets, keys = text_room(chosen & _KEYS, most_keys, size)
    most_pairs = count + size // LEAST_PAIR if chosen & _PROPERTIES else 0
    pair_starts, _ = text_room(chosen & _PROPERTIES, count, 0)
    name_offsets, names = text_room(chosen & _PROPERTIES, most_pairs, size)
    value_offsets, values = text_room(chosen & _PROPERTIES, most_pairs, size)
    tag_bits = np.zeros((len(tag_offsets) + 6) // 8, np.uint8)
    unique_bits = np.zeros((len(unique_offsets) + 6) // 8, np.uint8)
    return (
        (tag_bits, tag_offsets, tags),
        (unique_bits, unique_offsets, unique_keys),
        (starts, key_offsets, keys),
        (pair_starts, name_offsets, names, value_offsets, values),
        pairs_room(longest if chosen & _PROPERTIES else 0),
    )


@inlined
def borrowed(rooms):
    """Return the same rooms without owners (`borrow`)."""
    tags, unique_keys, keys, pairs, scratch = rooms
    return (
        (borrow(tags[0]), borrow(tags[1]), borrow(tags[2])),
        (borrow(unique_keys[0]), borrow(unique_keys[1]), borrow(unique_keys[2])),
        (borrow(keys[0]), borrow(keys[1]), borrow(keys[2])),
        (borrow(pairs[0]), borrow(pairs[1]), borrow(pairs[2]), borrow(pairs[3]), borrow(pairs[4])),
        (borrow(scratch[0]), borrow(scratch[1]), borrow(scratch[2])),
    )


NOTHING = (0,) * 9
"""How much is written before the first call of `put_properties`: the number of tags, their bytes;
the same of unique keys and of keys; the number of pairs, the bytes of their names and values.
"""


@inlined
def put_properties(buffer, records, first, chosen, rooms, is_text, done, seed):
    """Write the chosen columns of properties for some records, as long as all are UTF-8.

    Args:
        first: the row of the first of them.
        rooms: those of `property_rooms`, borrowed.
        is_text: whether all properties before were UTF-8; otherwise nothing is written.
        done: how much was written before, as in NOTHING.

    Returns:
        Whether all are UTF-8, and how much is written now.
    """
    if chosen & _ANY == 0 or not is_text:
        return is_text, done
    tags, unique_keys, keys, texts, (pairs, slots, stamps) = rooms
    tagged, tags_to, unique, unique_to, key_count, keys_to, pair_count, names_to, values_to = done
    for place in range(len(records)):
        found, row = records[place], first + place
        start = np.int64(found.properties_at)
        end = start + found.properties_length
        is_text = is_valid(buffer, start, end)
        if not is_text:
            break
        if chosen & _PROPERTIES:
            found_pairs = find_pairs(buffer, start, end, pairs, slots, stamps, row, seed)
            spans = _named(buffer, pairs, found_pairs)
            for number in range(found_pairs):
                names_to = copy_text(texts[2], names_to, buffer, pairs[number, 0], pairs[number, 1])
                values_to = copy_text(
                    texts[4], values_to, buffer, pairs[number, 2], pairs[number, 3]
                )
                pair_count += 1
                texts[1][pair_count], texts[3][pair_count] = names_to, values_to
            texts[0][row + 1] = pair_count
        else:
            spans = find_properties(buffer, start, end)[:3]
        if chosen & _TAGS:
            tagged += spans[0][1] > 0
            tags_to = _put_optional(tags, tags_to, row, buffer, spans[0])
        if chosen & _UNIQUE_KEY:
            unique += spans[2][1] > 0
            unique_to = _put_optional(unique_keys, unique_to, row, buffer, spans[2])
        if chosen & _KEYS:
            key_count, keys_to = put_keys(
                keys[2], keys_to, keys[1], key_count, buffer, spans[1][0], spans[1][1]
            )
            keys[0][row + 1] = key_count
    ends = tagged, tags_to, unique, unique_to, key_count, keys_to, pair_count, names_to, values_to
    return is_text, ends


@inlined
def property_values(count, rooms, is_text, done):
    """Return the last fields of `mqlake.dispatch.value_columns.Values`, for `count` records."""
    tags, unique_keys, keys, pairs, _ = rooms
    tagged, tags_to, unique, unique_to, key_count, keys_to, pair_count, names_to, values_to = done
    return (
        is_text,
        (count - tagged, tags[0], tags[1], tags[2][:tags_to]),
        (count - unique, unique_keys[0], unique_keys[1], unique_keys[2][:unique_to]),
        (keys[0], keys[1][: key_count + 1], keys[2][:keys_to]),
        (
            pairs[0],
            pairs[1][: pair_count + 1],
            pairs[2][:names_to],
            pairs[3][: pair_count + 1],
            pairs[4][:values_to],
        ),
    )
