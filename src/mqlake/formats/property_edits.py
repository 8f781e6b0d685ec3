"""Change some properties, and keep the bytes of all others (docs/formats/properties.md).

Properties that are decoded and encoded again may be longer than before: each malformed byte becomes
the three bytes of U+FFFD. What is put again is therefore edited as bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mqlake.formats.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    encode_pairs,
)

_PAIR_END, _NAME_END = PROPERTY_SEPARATOR.encode(), NAME_VALUE_SEPARATOR.encode()


def edit(data: bytes, drop: Collection[str] = (), add: Mapping[str, str] | None = None) -> bytes:
    """Return encoded properties without some, and with others at the end.

    Args:
        data: encoded properties, malformed or not.
        drop: names; properties that are added replace those of the same name.
        add: names and values.

    Raises:
        FormatError: a property of `add` cannot be stored.
    """
    added = encode_pairs(add or {})
    gone = {name.encode() for name in (*drop, *(add or ()))}
    if any(name in data for name in gone):
        pairs = data.split(_PAIR_END)
        data = _PAIR_END.join(pair for pair in pairs if pair.partition(_NAME_END)[0] not in gone)
    if added and data and not data.endswith(_PAIR_END):
        data += _PAIR_END
    return data + added


def own_size(data: bytes, most: Mapping[bytes, int]) -> int:
    """Return the bytes of some properties, each counted once if it is no longer than said.

    Args:
        data: encoded properties.
        most: by name, the bytes that the property takes at most, its separators included.
    """
    sizes: dict[bytes, int] = {}
    for pair in data.split(_PAIR_END):
        name, separator, _ = pair.partition(_NAME_END)
        size = len(pair) + len(_PAIR_END)
        if separator and size <= most.get(name, 0):
            sizes[name] = size
    return sum(sizes.values())


def without_repeats(data: bytes) -> bytes:
    """Return encoded properties with the last one of each name, which is the one that counts."""
    last: dict[bytes, bytes] = {}
    for pair in data.split(_PAIR_END):
        name, separator, value = pair.partition(_NAME_END)
        if name and separator and value:
            last.pop(name, None)
            last[name] = pair
    return b"".join(pair + _PAIR_END for pair in last.values())
