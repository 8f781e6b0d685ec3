"""Write the chosen columns that follow from properties: tags, keys, unique keys, all pairs."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.lists import LEAST_PAIR, find_pairs, pairs_room, put_keys
from mqlake.dispatch.compiled.properties import KEYS, TAGS, UNIQ_KEY, find_properties
from mqlake.dispatch.value_columns import BITS, OF_PROPERTIES
from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import BLOCK, load_u32, load_word, prefetch_read
from mqlake.kernels.utf8 import is_valid
from mqlake.kernels.values import copy_text, text_room

_AHEAD = 4
"""The properties of records are asked for before their turn: bodies lie between them."""
_TAGS, _UNIQUE_KEY = BITS["tags"], BITS["uniqKey"]
_KEYS, _PROPERTIES = BITS["keys"], BITS["properties"]
_ANY = sum(BITS[name] for name in OF_PROPERTIES)


@inlined
def _put_optional(present, offsets, data, to, row, buffer, span):
    """Write a text, or null if it has no bytes; return the position after it."""
    at, length = span
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


@outlined
def property_values(buffer, records, chosen, size, longest, seed):
    """Return the last fields of `mqlake.dispatch.value_columns.Values`.

    Args:
        size: bytes of all properties.
        longest: bytes of those of one record.
    """
    count, is_text = len(records), True
    if chosen & _ANY == 0:
        count = size = longest = 0
    tag_offsets, tags = text_room(chosen & _TAGS, count, size)
    unique_offsets, unique_keys = text_room(chosen & _UNIQUE_KEY, count, size)
    most_keys = count + size // 2 if chosen & _KEYS else 0
    starts, _ = text_room(chosen & _KEYS, count, 0)
    key_offsets, keys = text_room(chosen & _KEYS, most_keys, size)
    most_pairs = count + size // LEAST_PAIR if chosen & _PROPERTIES else 0
    pair_starts, _ = text_room(chosen & _PROPERTIES, count, 0)
    name_offsets, names = text_room(chosen & _PROPERTIES, most_pairs, size)
    value_offsets, pair_values = text_room(chosen & _PROPERTIES, most_pairs, size)
    tag_bits = np.zeros((len(tag_offsets) + 6) // 8, np.uint8)
    unique_bits = np.zeros((len(unique_offsets) + 6) // 8, np.uint8)
    pairs, slots, stamps = pairs_room(longest if chosen & _PROPERTIES else 0)
    tags_to = unique_to = keys_to = names_to = values_to = np.int64(0)
    key_count = pair_count = tagged = unique = np.int64(0)
    for row in range(count):
        if row + _AHEAD < count:
            ahead = records[row + _AHEAD]
            prefetch_read(buffer, np.int64(ahead.properties_at))
            prefetch_read(buffer, np.int64(ahead.properties_at) + BLOCK)
            prefetch_read(buffer, np.int64(ahead.properties_at) + 2 * BLOCK)
        found = records[row]
        start = np.int64(found.properties_at)
        end = start + found.properties_length
        is_text = is_valid(buffer, start, end)
        if not is_text:
            break
        if chosen & _PROPERTIES:
            found_pairs = find_pairs(buffer, start, end, pairs, slots, stamps, row, seed)
            spans = _named(buffer, pairs, found_pairs)
            for place in range(found_pairs):
                names_to = copy_text(names, names_to, buffer, pairs[place, 0], pairs[place, 1])
                values_to = copy_text(
                    pair_values, values_to, buffer, pairs[place, 2], pairs[place, 3]
                )
                pair_count += 1
                name_offsets[pair_count], value_offsets[pair_count] = names_to, values_to
            pair_starts[row + 1] = pair_count
        else:
            spans = find_properties(buffer, start, end)[:3]
        if chosen & _TAGS:
            tagged += spans[0][1] > 0
            tags_to = _put_optional(tag_bits, tag_offsets, tags, tags_to, row, buffer, spans[0])
        if chosen & _UNIQUE_KEY:
            unique += spans[2][1] > 0
            unique_to = _put_optional(
                unique_bits, unique_offsets, unique_keys, unique_to, row, buffer, spans[2]
            )
        if chosen & _KEYS:
            key_count, keys_to = put_keys(
                keys, keys_to, key_offsets, key_count, buffer, spans[1][0], spans[1][1]
            )
            starts[row + 1] = key_count
    return (
        is_text,
        (count - tagged, tag_bits, tag_offsets, tags[:tags_to]),
        (count - unique, unique_bits, unique_offsets, unique_keys[:unique_to]),
        (starts, key_offsets[: key_count + 1], keys[:keys_to]),
        (
            pair_starts,
            name_offsets[: pair_count + 1],
            names[:names_to],
            value_offsets[: pair_count + 1],
            pair_values[:values_to],
        ),
    )
