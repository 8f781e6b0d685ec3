"""Find the light queues of a batch's records (twin of `compiled.find`).

Upstream: `MultiDispatchUtils`.
"""

from __future__ import annotations

from mqlake.dispatch.batch import Batch, Ints
from mqlake.formats.light.light_queue_file import LONGEST_NAME, MOST_NAMES
from mqlake.formats.properties import (
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
)
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.store.light.light_columns import LightMessages, name_hash

_NAME_END, _PAIR_END = NAME_VALUE_SEPARATOR.encode(), PROPERTY_SEPARATOR.encode()
_NAMES, _OFFSETS = MULTI_DISPATCH.encode() + _NAME_END, MULTI_QUEUE_OFFSET.encode() + _NAME_END
_PREFIX = LIGHT_PREFIX.encode()
_SEPARATOR = b","
_MOST_OFFSET = (1 << 63) - 1


def find(
    batch: Batch, topics: Ints, first: int, seed: int, messages: LightMessages
) -> tuple[int, int]:
    count = 0
    for row in range(first, len(batch.records)):
        record = batch.records[row]
        number = int(record["queue"])
        if number < 0 or topics[number] < 0:
            continue
        if count + MOST_NAMES > len(messages):
            return count, row
        at = int(record["properties_at"])
        properties = batch.buffer[at : at + int(record["properties_length"])].tobytes()
        for name, (start, offset) in places_of(properties).items():
            messages[count] = (
                name_hash(name, seed),
                record["physical_offset"],
                offset,
                at + start,
                len(name),
                record["size"],
                topics[number],
            )
            count += 1
    return count, len(batch.records)


def places_of(properties: bytes) -> dict[bytes, tuple[int, int]]:
    """Return for each light queue of a record where its name is in the properties, and the record's
    queue offset in it; none if they do not match.

    Args:
        properties: encoded properties, malformed or not.
    """
    at, value = _last_value(properties, _NAMES)
    names, offsets = value.split(_SEPARATOR), _last_value(properties, _OFFSETS)[1].split(_SEPARATOR)
    if len(names) != len(offsets):
        return {}
    found: dict[bytes, tuple[int, int]] = {}
    for name, text in zip(names[:MOST_NAMES], offsets[:MOST_NAMES], strict=True):
        is_name = name.startswith(_PREFIX) and len(_PREFIX) < len(name) <= LONGEST_NAME
        if is_name and text.isdigit() and len(text) < 20 and int(text) <= _MOST_OFFSET:
            found[name] = at, int(text)
        at += len(name) + len(_SEPARATOR)
    return found


def _last_value(properties: bytes, name: bytes) -> tuple[int, bytes]:
    """Return where the last value of a property is, and the value; 0 and nothing without one.

    Args:
        name: with the separator that follows it.
    """
    at = properties.rfind(_PAIR_END + name)
    if at >= 0:
        start = at + len(_PAIR_END) + len(name)
    elif properties.startswith(name):
        start = len(name)
    else:
        return 0, b""
    end = properties.find(_PAIR_END, start)
    return start, properties[start:] if end < 0 else properties[start:end]
