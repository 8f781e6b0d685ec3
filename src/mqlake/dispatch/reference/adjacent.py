"""Find records that lie one behind the other (twin of `compiled.adjacent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.dispatch.reference.describe import find_properties
from mqlake.formats import record
from mqlake.formats.properties import TAGS
from mqlake.formats.record import Fault

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_TAGS = TAGS.encode()


def adjacent(buffer: Bytes, rows: Longs) -> tuple[int, int]:
    data = buffer.data
    count, at = 0, 0
    while True:
        fault, layout = record.check(data, at, len(data))
        if layout is None or fault not in (Fault.GOOD, Fault.CRC):
            return count, fault
        properties = data[layout.properties_at : layout.properties_at + layout.properties_length]
        tags_at, tags_length = find_properties(bytes(properties)).get(_TAGS, (0, 0))
        if tags_length:
            tags_at += layout.properties_at
        stated = data[at + record.QUEUE_OFFSET_AT : at + record.QUEUE_OFFSET_AT + 8]
        queue_offset = int.from_bytes(stated, "big", signed=True)
        rows[:, count] = at, layout.size, queue_offset, fault, tags_at, tags_length
        at += layout.size
        count += 1
