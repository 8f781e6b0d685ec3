"""Walk and search the records of a window (twin of `compiled.record`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.dispatch.answers import SearchEnd, Walk
from mqlake.dispatch.verdict import MORE, NOTHING
from mqlake.formats import record
from mqlake.formats.record import Fault, Layout

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Window
    from mqlake.dispatch.columns import RecordColumns

_MAGIC = re.compile(
    b"|".join(
        re.escape(magic.to_bytes(4, "big"))
        for magic in (record.V1_MAGIC, record.V2_MAGIC, record.BLANK_MAGIC)
    )
)


def walk(window: Window, at: int, stop: int, records: RecordColumns, *, check_crc: bool) -> Walk:
    data = window.buffer.data
    count, damaged = 0, 0
    while at < stop and count < len(records):
        verdict, layout = _judge(window, data, at, crc=check_crc)
        if layout is None or verdict not in (Fault.GOOD, Fault.CRC):
            return Walk(at, count, damaged, verdict)
        damaged += verdict == Fault.CRC
        _fill(records[count], window, data, at, layout, verdict)
        at += layout.size
        count += 1
    return Walk(at, count, damaged, Fault.GOOD)


def search(window: Window, at: int, stop: int, allowance: int) -> SearchEnd:
    data, spent = window.buffer.data, 0
    last = min(stop - 1, window.length - record.FRAME_SIZE)
    for candidate in candidates(data, at, last + 1):
        verdict, read = _judge_candidate(window, data, candidate, allowance - spent)
        if verdict in (Fault.GOOD, Fault.BLANK, MORE):
            return SearchEnd(candidate, verdict, spent)
        spent += read
    if window.length >= window.data_end:
        return SearchEnd(stop, NOTHING, spent)
    return SearchEnd(min(stop, max(at, last + 1)), NOTHING, spent)


def first_torn(buffer: Bytes, base: int, records: RecordColumns) -> int:
    data = buffer.data
    for row, (offset, size, length) in enumerate(
        zip(
            records["physical_offset"].tolist(),
            records["size"].tolist(),
            records["properties_length"].tolist(),
            strict=True,
        )
    ):
        at = offset - base
        if record.is_torn(data[at : at + size], length):
            return row
    return len(records)


def candidates(data: memoryview, start: int, stop: int) -> Iterator[int]:
    """Return the positions from `start` to before `stop` that have a magic number in its place."""
    matches = _MAGIC.finditer(data, start + record.MAGIC_AT, stop + record.FRAME_SIZE - 1)
    return (match.start() - record.MAGIC_AT for match in matches)


def _judge(window: Window, data: memoryview, at: int, *, crc: bool) -> tuple[int, Layout | None]:
    """Judge what is at a position: a Fault, or MORE where that takes more than the window."""
    verdict, layout = record.check(data, at, window.length, window.base + at, crc=crc)
    left = window.data_end - at
    if verdict is Fault.SHORT and left >= record.FRAME_SIZE:
        return MORE, None
    if verdict is Fault.SIZE and record.MIN_SIZE <= _number(data, at, 4) <= left:
        return MORE, None
    return verdict, layout


def _judge_candidate(window: Window, data: memoryview, at: int, allowance: int) -> tuple[int, int]:
    """Return (verdict, bytes of body that were read for it)."""
    verdict, layout = _judge(window, data, at, crc=False)
    size = _number(data, at, 4)
    if verdict == Fault.BLANK:
        return Fault.BLANK if at + size == window.segment_end else Fault.MAGIC, 0
    if verdict == MORE and window.length - at >= record.MIN_SIZE:
        stated = _number(data, at + record.PHYSICAL_OFFSET_AT, 8)
        if stated != window.base + at or size > allowance:
            return Fault.OFFSET, 0
    if verdict != Fault.GOOD or layout is None:
        return verdict, 0
    if layout.body_length > allowance:
        return Fault.SIZE, 0
    return _judge(window, data, at, crc=True)[0], layout.body_length


def _fill(
    row: RecordColumns,
    window: Window,
    data: memoryview,
    at: int,
    layout: Layout,
    fault: int,
) -> None:
    row["physical_offset"] = window.base + at
    row["queue_offset"] = _number(data, at + record.QUEUE_OFFSET_AT, 8)
    row["store_timestamp"] = _number(data, layout.store_timestamp_at, 8)
    row["queue_id"] = _number(data, at + record.QUEUE_ID_AT, 4)
    row["sys_flag"] = _number(data, at + record.SYS_FLAG_AT, 4)
    row["fault"] = fault
    for name in (
        "size",
        "body_at",
        "body_length",
        "topic_at",
        "topic_length",
        "properties_at",
        "properties_length",
    ):
        row[name] = getattr(layout, name)


def _number(data: memoryview, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=True)
