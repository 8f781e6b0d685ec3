"""Plan the tasks of a query, in the driver."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import ALL, Brokers
from mqlake.query.live.connection import connection
from mqlake.query.live.options import LiveOptions
from mqlake.query.live.scope import Spans, ends_of, starts_of, wanted_queues
from mqlake.query.live.shares import share
from mqlake.query.live.task import LiveTask, OffsetRange
from mqlake.query.reading.conditions import MOST, Interval, Selection, interval, offsets_in, texts
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import absent, data_loss

log = logger()

CLOCK_STEP = 60_000
"""Milliseconds by which a broker's clock may have gone back without a message being missed."""

_LONGEST_EXPRESSION = 2048


def brokers_of(options: LiveOptions) -> Brokers:
    """Return the brokers for the driver's part of a query."""
    return Brokers(connection(options).instance, options.retry_timeout / 1000)


def plan_batch(options: LiveOptions, pushed: Selection = ()) -> list[LiveTask]:
    """Plan a batch query; `pushed` are conditions from Spark's filters.

    Raises:
        ClientError: a server does not answer.
        FormatError, StoreError: options name something that does not exist, or messages are lost.
    """
    ranges = connection(options).run(_batch_ranges(options, pushed))
    tasks = plan_tasks(options, ranges, pushed)
    count = sum(one.end - one.start for one in ranges)
    log.info(
        "%s: %d offsets of %d queues in %d tasks",
        options.name_servers,
        count,
        len(ranges),
        len(tasks),
    )
    return tasks


async def _batch_ranges(options: LiveOptions, pushed: Selection) -> list[OffsetRange]:
    brokers = brokers_of(options)
    queues = await wanted_queues(brokers, options, lambda what: absent(options, what))
    spans = reached(options, await brokers.spans(queues))
    starts = await starts_of(brokers, options, spans)
    ends = await ends_of(brokers, options, spans)
    wished = {queue: (starts[queue], ends[queue]) for queue in spans}
    narrow = await _narrowed(brokers, wished, pushed)
    return [OffsetRange(queue, *span) for queue, span in narrow.items() if span[0] < span[1]]


def reached(
    options: LiveOptions, spans: Mapping[MessageQueue, Interval | str]
) -> dict[MessageQueue, Interval]:
    """Return the spans of queues whose brokers answer.

    Raises:
        StoreError: a broker does not answer, unless that is tolerated.
    """
    found: dict[MessageQueue, Interval] = {}
    for queue, span in spans.items():
        if isinstance(span, str):
            data_loss(options, span)
        else:
            found[queue] = span
    return found


async def _narrowed(
    brokers: Brokers, spans: Spans, pushed: Selection
) -> dict[MessageQueue, Interval]:
    """Return the parts of queues that filters leave."""
    found: dict[MessageQueue, Interval] = {}
    for queue, (low, high) in spans.items():
        start, end = offsets_in(pushed, (queue.topic, queue.queue_id))
        if max(low, start) < min(high, end):
            found[queue] = max(low, start), min(high, end)
    begin, end = interval(pushed, "storeTimestamp")
    if begin > end:
        return {}

    async def since(time: int) -> list[int]:
        asked = (brokers.first_since(queue, time, span) for queue, span in found.items())
        return await asyncio.gather(*asked)

    if begin > -MOST:
        firsts = await since(begin - CLOCK_STEP)
        found = {
            queue: (first, found[queue][1]) for queue, first in zip(found, firsts, strict=True)
        }
    if end < MOST:
        lasts = await since(end + CLOCK_STEP + 1)
        found = {queue: (found[queue][0], last) for queue, last in zip(found, lasts, strict=True)}
    return found


def plan_tasks(
    options: LiveOptions, ranges: list[OffsetRange], pushed: Selection = ()
) -> list[LiveTask]:
    """Share ranges among tasks."""
    tags = texts(pushed, "tags")
    if options.tags is not None:
        tags = frozenset(options.tags) & (tags if tags is not None else frozenset(options.tags))
    expression = _expression(tags)
    return [
        LiveTask(
            name_servers=options.name_servers,
            access=options.access,
            ranges=ranges,
            expression=expression,
            tags=options.tags,
            keys=options.keys,
            fail_on_data_loss=options.fail_on_data_loss,
            pull_size=options.pull_size,
            retry_timeout=options.retry_timeout,
            local_stores=options.local_stores,
            decompress=options.decompress,
        )
        for ranges in share(ranges, options)
    ]


def _expression(tags: Iterable[str] | None) -> str:
    """Return the expression by which brokers may select messages: they must not check tags that are
    unknown.
    """
    listed = sorted(tags or ())
    text = " || ".join(listed)
    is_plain = all(tag and tag == tag.strip() and "|" not in tag and tag != ALL for tag in listed)
    return text if listed and is_plain and len(text.encode()) <= _LONGEST_EXPRESSION else ALL
