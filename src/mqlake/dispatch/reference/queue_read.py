"""Follow consume-queue entries to their records (twin of `compiled.queue_read`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.dispatch.answers import Followed
from mqlake.dispatch.verdict import MORE, OTHER
from mqlake.formats import consume_queue, record
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.record import Fault

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs
    from mqlake.dispatch.queue_read import LogPart, ReadLimits, Wanted

_INT = range(-(1 << 31), 1 << 31)


def follow(
    entries: Bytes, first: int, part: LogPart, wanted: Wanted, limits: ReadLimits, rows: Longs
) -> Followed:
    data, filled, messages, total = entries.data, 0, limits.messages, limits.bytes
    count = len(entries) // ENTRY_SIZE
    for number in range(count):
        offset, size, code = consume_queue.decode(data, number * ENTRY_SIZE)
        is_full = messages >= limits.most_messages or total + size > limits.most_bytes
        if messages and is_full:
            return Followed(number, filled, messages, total, Fault.GOOD)
        if wanted.by_code and code in _INT and code not in wanted.codes:
            continue
        if not part.low <= offset < part.high:
            fault = Fault.SHORT
        elif not part.base <= offset < part.base + len(part.buffer):
            return Followed(number, filled, messages, total, MORE)
        else:
            fault = _judge(part, wanted, offset, size, first + number)
        at = offset - part.base if fault == Fault.GOOD else offset
        rows[:, filled] = first + number, at, size, fault
        filled += 1
        if fault == Fault.GOOD:
            messages, total = messages + 1, total + size
    return Followed(count, filled, messages, total, Fault.GOOD)


def copy_records(target: Bytes, buffer: Bytes, at: Longs, sizes: Longs) -> None:
    to, data, source = 0, target.data, buffer.data
    for start, size in zip(at.tolist(), sizes.tolist(), strict=True):
        data[to : to + size] = source[start : start + size]
        to += size


def _judge(part: LogPart, wanted: Wanted, offset: int, size: int, queue_offset: int) -> int:
    data, at = part.buffer.data, offset - part.base
    end = min(len(data), part.high - part.base)
    fault, layout = record.check(data, at, end, offset, crc=False)
    if layout is None or fault == Fault.OFFSET:
        return fault
    if layout.size != size:
        return Fault.SIZE
    topic = bytes(data[layout.topic_at : layout.topic_at + layout.topic_length])
    stated = (
        topic,
        _number(data, at + record.QUEUE_ID_AT, 4),
        _number(data, at + record.QUEUE_OFFSET_AT, 8),
    )
    if stated != (wanted.topic, wanted.queue_id, queue_offset):
        return OTHER
    return record.check(data, at, end, offset, crc=wanted.crc)[0]


def _number(data: memoryview, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=True)
