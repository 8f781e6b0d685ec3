"""Find the queues that a query reads, and where it starts and ends in each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from mqlake.errors import FormatError, StoreError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Brokers, name_of, queue_order
from mqlake.query.live.options import LiveOptions
from mqlake.query.reading.conditions import Interval
from mqlake.query.reading.limits import LATEST, Limit, queue_text
from mqlake.query.reading.losses import data_loss, no_match, no_topic
from mqlake.query.reading.queue_json import EARLIEST as EARLIEST_OFFSET
from mqlake.query.reading.queue_json import LATEST as LATEST_OFFSET
from mqlake.query.reading.queue_json import BrokerQueue

Spans = Mapping[MessageQueue, Interval]
"""The first and the next offset of each queue."""


async def wanted_queues(
    brokers: Brokers, options: LiveOptions, lost: Callable[[str], None] | None = None
) -> list[MessageQueue]:
    """Return the queues that options select, by topic, broker and number.

    Args:
        lost: called with the name of something that was requested and does not exist.
    """
    missing: list[str] = []
    if options.topics is not None:
        topics: Sequence[str] = list(dict.fromkeys(options.topics))
    elif options.queues is not None:
        topics = list(dict.fromkeys(topic for topic, _, _ in options.queues))
    else:
        topics = await brokers.topics(options.topic_pattern)
        if options.topic_pattern is not None and not topics:
            missing.append(no_match(options.topic_pattern, await brokers.topics(None)))
    found: list[MessageQueue] = []
    for topic, queues in zip(
        topics, await asyncio.gather(*map(brokers.queues, topics)), strict=True
    ):
        if not queues:
            missing.append(await _no_topic(brokers, topic))
        found += queues
    if options.queues is not None:
        wanted = options.queues
        missing += [
            f"queue {queue_text(one)} does not exist"
            for one in wanted
            if not any(is_named(queue, one) for queue in found)
        ]
        found = [queue for queue in found if any(is_named(queue, one) for one in wanted)]
    for what in missing if lost else ():
        assert lost
        lost(f"{options.name_servers}: {what}")
    return sorted(found, key=queue_order)


async def _no_topic(brokers: Brokers, topic: str) -> str:
    """Return why a topic has no queues that can be read."""
    topics = await brokers.topics(None)
    if topic in topics:
        return f"topic {topic!r} must not be read (its permission)"
    return no_topic(topic, topics)


def is_named(queue: MessageQueue, name: BrokerQueue) -> bool:
    """Return whether a name in options, which may lack the broker, matches a queue."""
    topic, broker, queue_id = name
    return (queue.topic, queue.queue_id) == (topic, queue_id) and broker in ("", queue.broker_name)


async def starts_of(
    brokers: Brokers, options: LiveOptions, spans: Spans
) -> dict[MessageQueue, int]:
    """Return the offset at which a new query starts in each queue.

    Raises:
        FormatError: options name a queue that is not read, or one that several brokers have.
        StoreError: an offset is out of range, or no message has the time or a later one, unless
            that is tolerated.
    """
    limit = options.starting
    _check_named(limit, spans, "starting")
    is_latest = limit.word == LATEST and limit.offsets is None and limit.timestamps is None
    found = {queue: high if is_latest else low for queue, (low, high) in spans.items()}
    found |= await _by_time(brokers, limit, spans)
    for queue, offset in found.items():
        if _time(limit, queue) is None or offset < spans[queue][1]:
            continue
        if not options.latest_if_none and _is_named(options):
            raise StoreError(
                f"{name_of(queue)}: no message is from {_time(limit, queue)} or later; set "
                "startingOffsetsByTimestampStrategy to latest to start after the last one"
            )
    return found | _by_offset(options, limit, spans, "starting")


async def ends_of(brokers: Brokers, options: LiveOptions, spans: Spans) -> dict[MessageQueue, int]:
    """Return the offset at which a batch query ends in each queue.

    Raises:
        FormatError, StoreError: as for `starts_of`.
    """
    limit = options.ending
    _check_named(limit, spans, "ending")
    found = {queue: high for queue, (_, high) in spans.items()}
    found |= await _by_time(brokers, limit, spans)
    return found | _by_offset(options, limit, spans, "ending")


def _is_named(options: LiveOptions) -> bool:
    """Return whether a query names its topics: of all topics, some are idle for a long time."""
    return (options.topics, options.topic_pattern, options.queues) != (None, None, None)


async def _by_time(
    brokers: Brokers, limit: Limit[BrokerQueue], spans: Spans
) -> dict[MessageQueue, int]:
    times = {queue: time for queue in spans if (time := _time(limit, queue)) is not None}
    found = await asyncio.gather(
        *(brokers.first_since(queue, time, spans[queue]) for queue, time in times.items())
    )
    return dict(zip(times, found, strict=True))


def _time(limit: Limit[BrokerQueue], queue: MessageQueue) -> int | None:
    if limit.timestamp is not None:
        return limit.timestamp
    times = limit.timestamps or {}
    return next((time for name, time in times.items() if is_named(queue, name)), None)


def _by_offset(
    options: LiveOptions, limit: Limit[BrokerQueue], spans: Spans, side: str
) -> dict[MessageQueue, int]:
    found: dict[MessageQueue, int] = {}
    for name, offset in (limit.offsets or {}).items():
        for queue, (low, high) in spans.items():
            if not is_named(queue, name):
                continue
            if offset not in (EARLIEST_OFFSET, LATEST_OFFSET) and not low <= offset <= high:
                data_loss(
                    options,
                    f"{side}Offsets: {name_of(queue)} has offsets {low} to {high}, not {offset}",
                )
            wanted = {EARLIEST_OFFSET: low, LATEST_OFFSET: high}.get(offset, offset)
            found[queue] = min(max(wanted, low), high)
    return found


def _check_named(limit: Limit[BrokerQueue], spans: Spans, side: str) -> None:
    for name in limit.queues:
        named = [queue for queue in spans if is_named(queue, name)]
        if not named:
            raise FormatError(
                f"{side} offsets name {queue_text(name)}, which does not exist or is not subscribed"
                " to"
            )
        is_number = limit.offsets is not None and limit.offsets[name] >= 0
        if len(named) > 1 and is_number:
            names = ", ".join(queue.broker_name for queue in named)
            raise FormatError(
                f"{side} offsets name {queue_text(name)} without its broker, and it is on "
                f'{names}: write {{"{name[0]}": {{"{named[0].broker_name}": '
                f'{{"{name[2]}": {limit.offsets and limit.offsets[name]}}}}}}}'
            )
