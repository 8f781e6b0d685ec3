"""Find the messages that wait on a broker: each search is bounded, and says where it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from mqlake.broker.pop.check_points import Ack, CheckPoint
from mqlake.broker.pop.check_points import read as read_pop
from mqlake.console.waiting.sources import QueueEnds, WaitingSource
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.properties import CANCEL, PGROUP, REAL_QID, REAL_TOPIC
from mqlake.formats.record import Record
from mqlake.formats.topic_names import HALF_TOPIC, OP_TOPIC, TIMER_TOPIC
from mqlake.protocol.handles.recall import RecallHandle
from mqlake.protocol.naming import REVIVE_PREFIX
from mqlake.store.delivery.timer_messages import due_slot
from mqlake.store.delivery.transaction_messages import CHECK_TIMES, GROUP, ended_by

MOST = 500
"""Messages of a queue that are read."""
_MOST_OPS = 2000
_MOST_BYTES = 64 << 20
_AT_ONCE = 32
_LONG = 16 << 10
"""Bytes of a body that is not kept."""


class WaitingMessage(NamedTuple):
    """A message that waits.

    Attributes:
        topic, queue_id: where it will be delivered.
        due: when (ms); None if that does not depend on time.
        why: what it waits for.
        group: of its producer or consumer.
        handle: with which it can be recalled; None if it cannot be.
        where: the topic, queue and queue offset in which it waits.
    """

    topic: str
    queue_id: int
    due: int | None
    why: str
    group: str
    stored: int
    unique_key: str
    keys: str
    size: int
    handle: str | None
    where: tuple[str, int, int]


class UnackedPop(NamedTuple):
    """Messages of one pop that are not acknowledged.

    Attributes:
        invisible_until: when they are delivered again (ms).
    """

    topic: str
    group: str
    queue_id: int
    offsets: list[int]
    popped: int
    invisible_until: int


class WaitingMessages(NamedTuple):
    """What a search found.

    Attributes:
        messages: by the time they are due, the soonest first.
        popped: by the time they become visible, the soonest first.
        stopped: where the search ended before everything was read, one line for each queue.
    """

    messages: list[WaitingMessage]
    popped: list[UnackedPop]
    stopped: list[str]


async def delayed(
    source: WaitingSource, levels: Sequence[int], now: int, most: int = MOST
) -> WaitingMessages:
    """Return messages that wait for their time, and popped ones that wait for acknowledgements.

    Args:
        levels: the milliseconds of each delay level.
        now: messages that are due before this (ms) have been delivered, or are about to be.
    """
    search = _BoundedSearch(source)
    found = await _levels(search, levels, most)
    timed, popped, stopped = await _timed(search, now, most)
    return WaitingMessages(
        sorted([*found.messages, *timed], key=lambda each: each.due or 0),
        sorted(popped, key=lambda each: each.invisible_until),
        [*found.stopped, *stopped],
    )


class _BoundedSearch:
    """Reads messages of a source, a few at a time, until it has read enough bytes.

    Long bodies are dropped: only RocketMQ's own messages have a body that is needed.
    """

    def __init__(self, source: WaitingSource) -> None:
        self.source = source
        self._bytes = 0

    async def read(self, topic: str, queue_id: int, offset: int, most: int) -> list[Record]:
        """Return messages of a queue from a queue offset on, up to a maximum."""
        found: list[Record] = []
        while len(found) < most and self._bytes < _MOST_BYTES:
            few = min(_AT_ONCE, most - len(found))
            read = await self.source.read(topic, queue_id, offset, few)
            if not read:
                break
            self._bytes += sum(record.size for record in read)
            found += [
                record if len(record.body) <= _LONG else msgspec.structs.replace(record, body=b"")
                for record in read
            ]
            offset = read[-1].queue_offset + 1
        return found


async def _levels(search: _BoundedSearch, levels: Sequence[int], most: int) -> WaitingMessages:
    rows: list[WaitingMessage] = []
    stopped: list[str] = []
    source = search.source
    done = await source.delay_offsets()
    for queue_id, extent in sorted((await source.queues(SCHEDULE_TOPIC)).items()):
        level = queue_id + 1
        start = max(extent.first, done.get(level, 0))
        if start >= extent.end:
            continue
        delay = levels[queue_id] if queue_id < len(levels) else None
        read = await search.read(SCHEDULE_TOPIC, queue_id, start, most)
        for record in read:
            due = None if delay is None else record.store_timestamp + delay
            rows.append(_message(record, due, f"delay level {level}", None))
        if (left := extent.end - start - len(read)) > 0:
            stopped.append(f"delay level {level}: {left:,} messages after these were not read")
    return WaitingMessages(rows, [], stopped)


async def _timed(
    search: _BoundedSearch, now: int, most: int
) -> tuple[list[WaitingMessage], list[UnackedPop], list[str]]:
    source = search.source
    extent = (await source.queues(TIMER_TOPIC)).get(0, QueueEnds(0, 0))
    if extent.first >= extent.end:
        return [], [], []
    _, position = await source.timer()
    first = max(extent.first, position.first_waiting if position else 0)
    # The newest are read: RocketMQ's checkpoint does not tell where the oldest waiting one is.
    start = max(first, extent.end - most)
    stopped: list[str] = []
    if start > first:
        stopped.append(f"timer: {start - first:,} older messages, some of which may wait")
    records = await search.read(TIMER_TOPIC, 0, start, extent.end - start)
    if (left := extent.end - start - len(records)) > 0:
        stopped.append(f"timer: {left:,} newer messages were not read")
    recalled = {name for record in records if (name := record.properties.get(CANCEL))}
    rows: dict[tuple[str, int], WaitingMessage] = {}
    points: dict[object, CheckPoint] = {}
    acks: list[Ack] = []
    for record in records:
        slot = due_slot(record.properties)
        if slot is None or slot < now or CANCEL in record.properties:
            continue
        topic = record.properties.get(REAL_TOPIC, "")
        if topic.startswith(REVIVE_PREFIX):
            match read_pop(record):
                case CheckPoint() as point:
                    points[point.key] = point
                case Ack() as ack:
                    acks.append(ack)
                case None:
                    pass
            continue
        key = record.unique_key or ""
        if {f"{topic}+{key}", key} & recalled:
            continue
        handle = RecallHandle(topic, source.name, slot + 1, key).text if key else None
        # A message that was put again is there several times.
        name = key or f"@{record.queue_offset}"
        rows[name, slot] = _message(record, slot + 1, "its delivery time", handle)
    return list(rows.values()), list(_popped(points, acks)), stopped


def _popped(points: dict[object, CheckPoint], acks: list[Ack]) -> Iterator[UnackedPop]:
    for ack in acks:
        if point := points.get(ack.key):
            for offset in ack.offsets:
                point.acknowledge(offset)
    for point in points.values():
        if missing := point.missing:
            yield UnackedPop(
                topic=point.topic,
                group=point.group,
                queue_id=point.queue_id,
                offsets=missing,
                popped=point.pop_time,
                invisible_until=point.revive_time,
            )


async def half(source: WaitingSource, most: int = MOST) -> WaitingMessages:
    """Return half messages whose transactions have not ended, the oldest first."""
    rows: list[WaitingMessage] = []
    stopped: list[str] = []
    search = _BoundedSearch(source)
    ops = await source.queues(OP_TOPIC)
    for queue_id, extent in sorted((await source.queues(HALF_TOPIC)).items()):
        start = await _start(source, HALF_TOPIC, queue_id, extent)
        if start >= extent.end:
            continue
        ended = await _ended(search, queue_id, ops.get(queue_id, QueueEnds(0, 0)), stopped)
        read = await search.read(HALF_TOPIC, queue_id, start, most)
        for record in read:
            if record.queue_offset not in ended:
                times = record.properties.get(CHECK_TIMES)
                why = f"commit or rollback, asked {times} times" if times else "commit or rollback"
                rows.append(_message(record, None, why, None))
        if (left := extent.end - start - len(read)) > 0:
            stopped.append(f"half messages: {left:,} after these were not read")
    return WaitingMessages(rows, [], stopped)


async def _ended(
    search: _BoundedSearch, queue_id: int, extent: QueueEnds, stopped: list[str]
) -> set[int]:
    """Return the queue offsets of half messages that have ended."""
    start = await _start(search.source, OP_TOPIC, queue_id, extent)
    if start >= extent.end:
        return set()
    records = await search.read(OP_TOPIC, queue_id, start, _MOST_OPS)
    if (left := extent.end - start - len(records)) > 0:
        stopped.append(f"{left:,} ends of transactions were not read: some of these have ended")
    return {offset for record in records for offset in ended_by(record)}


async def _start(source: WaitingSource, topic: str, queue_id: int, extent: QueueEnds) -> int:
    known = await source.committed(GROUP, topic, queue_id)
    return extent.first if known is None else max(extent.first, known)


def _message(record: Record, due: int | None, why: str, handle: str | None) -> WaitingMessage:
    pairs = record.properties
    text = pairs.get(REAL_QID, "")
    return WaitingMessage(
        topic=pairs.get(REAL_TOPIC, record.topic),
        queue_id=int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1,
        due=due,
        why=why,
        group=pairs.get(PGROUP, ""),
        stored=record.store_timestamp,
        unique_key=record.unique_key or "",
        keys=" ".join(record.keys),
        size=record.size,
        handle=handle,
        where=(record.topic, record.queue_id, record.queue_offset),
    )
