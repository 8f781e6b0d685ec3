"""Find the records of a batch that belong to light queues, by their properties.

Upstream: `MultiDispatchUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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
_MARK = re.compile(re.escape(MULTI_DISPATCH.encode() + _NAME_END))
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
    start = int(records["physical_offset"][0]) - base
    end = int(records["physical_offset"][-1]) + int(records["size"][-1]) - base
    data = batch.buffer[start:end].data
    row = -1
    for match in _MARK.finditer(data):
        at = start + match.start()
        found = int(np.searchsorted(records["physical_offset"], base + at, "right")) - 1
        if found == row:
            continue
        one = records[found]
        first, length = int(one["properties_at"]), int(one["properties_length"])
        if not first <= at < first + length:
            continue  # The text is in a body.
        row = found
        if light := _light(batch, found, bytes(data[first - start : first - start + length])):
            yield light


def _light(batch: Batch, row: int, properties: bytes) -> LightRecord | None:
    record = batch.records[row]
    number = int(record["queue"])
    if number < 0:
        return None
    topic = batch.table[number][0]
    if topic.startswith(_WITHOUT):
        return None
    names, offsets = queues_of(properties)
    if not names:
        return None
    return LightRecord(topic, int(record["physical_offset"]), int(record["size"]), names, offsets)


def queues_of(properties: bytes) -> tuple[list[bytes], list[int]]:
    """Return the light queues of a record, and its queue offset in each; none if they do not match.

    Args:
        properties: encoded properties, malformed or not.
    """
    values: dict[bytes, bytes] = {}
    for pair in properties.split(_PAIR_END):
        name, separator, value = pair.partition(_NAME_END)
        if separator:
            values[name] = value
    names = values.get(MULTI_DISPATCH.encode(), b"").split(_SEPARATOR)
    offsets = values.get(MULTI_QUEUE_OFFSET.encode(), b"").split(_SEPARATOR)
    if len(names) != len(offsets):
        return [], []
    found: dict[bytes, int] = {}
    for name, text in zip(names[:MOST_NAMES], offsets[:MOST_NAMES], strict=True):
        is_name = name.startswith(_PREFIX) and len(_PREFIX) < len(name) <= _LONGEST_NAME
        if is_name and text.isdigit() and len(text) < 20 and int(text) <= _MOST_OFFSET:
            found[name] = int(text)
    return list(found), list(found.values())
