"""Find records that lie consecutively (twin of `compiled.adjacent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.dispatch.reference.describe import find_properties
from mqlake.formats import record
from mqlake.formats.properties import TAGS
from mqlake.formats.record import Fault

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs
    from mqlake.dispatch.columns import RecordColumns

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
        flags = _sys_flag(data, at)
        rows[:, count] = at, layout.size, queue_offset, fault, tags_at, tags_length, flags
        at += layout.size
        count += 1


def locate(buffer: Bytes, at: Longs, records: RecordColumns) -> None:
    data = buffer.data
    for row, start in zip(records, at.tolist(), strict=True):
        _, layout = record.check(data, start, len(data), crc=False)
        assert layout is not None
        row["physical_offset"] = start
        row["sys_flag"] = _sys_flag(data, start)
        row["body_at"], row["body_length"] = layout.body_at, layout.body_length
        row["topic_at"], row["topic_length"] = layout.topic_at, layout.topic_length
        row["properties_at"] = layout.properties_at
        row["properties_length"] = layout.properties_length


def _sys_flag(data: memoryview, at: int) -> int:
    stated = data[at + record.SYS_FLAG_AT : at + record.SYS_FLAG_AT + 4]
    return int.from_bytes(stated, "big", signed=True)
