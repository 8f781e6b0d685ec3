"""Find the records of a batch that belong to light queues, by their properties.

Upstream: `MultiDispatchUtils`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from mqlake.dispatch.batch import Batch
from mqlake.formats.light.light_queue_file import MOST_NAMES
from mqlake.formats.properties import (
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
)
from mqlake.formats.topic_names import DISCARDED_TOPIC, LIGHT_PREFIX, OF_GROUPS, WAITING

_NAME_END, _PAIR_END = NAME_VALUE_SEPARATOR.encode(), PROPERTY_SEPARATOR.encode()
_NAMES, _OFFSETS = MULTI_DISPATCH.encode() + _NAME_END, MULTI_QUEUE_OFFSET.encode() + _NAME_END
_MARK = re.compile(re.escape(_NAMES))
_PREFIX = LIGHT_PREFIX.encode()
_SEPARATOR = b","
_LONGEST_NAME = 1024
_MOST_OFFSET = (1 << 63) - 1
_WITHOUT = (
    b"rmq_sys_",
    *(name.encode() for name in (*OF_GROUPS, *sorted(WAITING), DISCARDED_TOPIC)),
)
"""Beginnings of the topics whose records wait for another topic, or are copies of its records."""


class LightRecord(NamedTuple):
    """A record in light queues.

    Attributes:
        topic: the record's own topic.
        names: the light queues.
        offsets: the record's queue offset in each of them.
    """

    topic: bytes
    physical_offset: int
    size: int
    names: list[bytes]
    offsets: list[int]


def light_records(batch: Batch) -> Iterator[LightRecord]:
    """Yield the records of a batch that belong to light queues, in the log's order."""
    records, base = batch.records, batch.base
    if not len(records):
        return
    offsets: list[int] = records["physical_offset"].tolist()
    sizes, places = records["size"], records["properties_at"]
    lengths, numbers = records["properties_length"], records["queue"]
    start = offsets[0] - base
    data = batch.buffer[start : offsets[-1] + int(sizes[-1]) - base].data
    topics: dict[int, bytes] = {}
    last = -1
    for match in _MARK.finditer(data):
        at = start + match.start()
        row = bisect_right(offsets, base + at) - 1
        if row == last:
            continue
        first, length = int(places[row]), int(lengths[row])
        if not first <= at < first + length:
            continue  # The text is in a body.
        last = row
        if (number := int(numbers[row])) < 0:
            continue
        topic = topics.get(number)
        if topic is None:
            topic = topics[number] = batch.table[number][0]
        if topic.startswith(_WITHOUT):
            continue
        names, places_in = queues_of(bytes(data[first - start : first - start + length]))
        if names:
            yield LightRecord(topic, offsets[row], int(sizes[row]), names, places_in)


def queues_of(properties: bytes) -> tuple[list[bytes], list[int]]:
    """Return the light queues of a record, and its queue offset in each; none if they do not match.

    Args:
        properties: encoded properties, malformed or not.
    """
    names = _last_value(properties, _NAMES).split(_SEPARATOR)
    offsets = _last_value(properties, _OFFSETS).split(_SEPARATOR)
    if len(names) != len(offsets):
        return [], []
    found: dict[bytes, int] = {}
    for name, text in zip(names[:MOST_NAMES], offsets[:MOST_NAMES], strict=True):
        is_name = name.startswith(_PREFIX) and len(_PREFIX) < len(name) <= _LONGEST_NAME
        if is_name and text.isdigit() and len(text) < 20 and int(text) <= _MOST_OFFSET:
            found[name] = int(text)
    return list(found), list(found.values())


def _last_value(properties: bytes, name: bytes) -> bytes:
    """Return the last value of a property; empty without one.

    Args:
        name: with the separator that follows it.
    """
    at = properties.rfind(_PAIR_END + name)
    if at >= 0:
        start = at + len(_PAIR_END) + len(name)
    elif properties.startswith(name):
        start = len(name)
    else:
        return b""
    end = properties.find(_PAIR_END, start)
    return properties[start:] if end < 0 else properties[start:end]
