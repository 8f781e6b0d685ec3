"""Find the properties that dispatch needs (`mqlake.formats.properties.decode_properties`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats import properties
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import (
    BLOCK,
    equal_mask,
    load_u8,
    load_u32,
    load_word,
    lowest_bit,
)
from mqlake.kernels.utf8 import first_bytes

_NAME_VALUE = ord(properties.NAME_VALUE_SEPARATOR)
_PROPERTY = ord(properties.PROPERTY_SEPARATOR)
_ONE = np.uint64(1)

TAGS = int.from_bytes(properties.TAGS.encode(), "big")
KEYS = int.from_bytes(properties.KEYS.encode(), "big")
_DELAY = int.from_bytes(properties.DELAY.encode()[:4], "big")
_DELAY_LAST = ord(properties.DELAY[4:])
UNIQ_KEY = np.frombuffer(properties.UNIQ_KEY.encode(), np.uint64)[0]


@inlined
def separators(buffer, block, end):
    """Return (name-value separators, ends of properties) as bit masks of the 64 bytes at `block`.

    The properties' end counts as an end of a property: the last one may lack its separator.
    """
    count = end - block
    name_ends = first_bytes(equal_mask(buffer, block, _NAME_VALUE), count)
    ends = first_bytes(equal_mask(buffer, block, _PROPERTY), count)
    if count < BLOCK:
        ends |= _ONE << np.uint64(count)
    return name_ends, ends


@inlined
def find_properties(buffer, start, end):
    """Return position and length of the values of TAGS, KEYS, UNIQ_KEY and DELAY; 0, 0 for none.

    The last of equal names wins; a property without a name or a value does not count.
    """
    tags_at, tags_length, keys_at, keys_length = 0, 0, 0, 0
    unique_key_at, unique_key_length, delay_at, delay_length = 0, 0, 0, 0
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
            value_at, name_length = name_end + 1, name_end - name_at
            value_length = at - value_at
            if name_end >= 0 and value_length > 0:
                if name_length == 4:
                    name = load_u32(buffer, name_at)
                    if name == TAGS:
                        tags_at, tags_length = value_at, value_length
                    elif name == KEYS:
                        keys_at, keys_length = value_at, value_length
                elif name_length == 8:
                    if load_word(buffer, name_at) == UNIQ_KEY:
                        unique_key_at, unique_key_length = value_at, value_length
                elif (
                    name_length == 5
                    and load_u32(buffer, name_at) == _DELAY
                    and load_u8(buffer, name_at + 4) == _DELAY_LAST
                ):
                    delay_at, delay_length = value_at, value_length
            name_at, name_end = at + 1, -1
    return (
        (tags_at, tags_length),
        (keys_at, keys_length),
        (unique_key_at, unique_key_length),
        (delay_at, delay_length),
    )
