"""Find the queue offsets at which a query starts and ends."""

from __future__ import annotations

from mqlake.errors import FormatError, StoreError
from mqlake.protocol.naming import SYSTEM_TOPIC_PATTERN
from mqlake.query.reading.conditions import (
    MOST,
    AnyText,
    HasKey,
    InQueues,
    Interval,
    Selection,
    TopicMatches,
    wants_topic,
)
from mqlake.query.reading.limits import Limit
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.queue_json import EARLIEST, LATEST, Numbers
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import OpenStore
from mqlake.store.log.scan import Queue
from mqlake.store.queues.time_search import Boundary, offset_by_time

NO_SYSTEM_TOPICS = TopicMatches(rf"(?s)(?!(?:{SYSTEM_TOPIC_PATTERN})\Z).*")
"""The topic is not RocketMQ's own."""


def subscription(options: StoreReadOptions) -> Selection:
    """Return the conditions of options on messages, except where queues start and end."""
    found: list[AnyText | TopicMatches | InQueues | HasKey] = []
    if options.topics is not None:
        found.append(AnyText("topic", options.topics))
    if options.topic_pattern is not None:
        found.append(TopicMatches(options.topic_pattern))
    if not options.system_topics:
        found.append(NO_SYSTEM_TOPICS)
    if options.queues is not None:
        found.append(InQueues(dict.fromkeys(options.queues, (0, MOST)), others=False))
    if options.tags is not None:
        found.append(AnyText("tags", options.tags))
    if options.keys is not None:
        found.append(HasKey(options.keys))
    return tuple(found)


def batch_ranges(store: OpenStore, options: StoreReadOptions) -> Selection:
    """Return the condition of the starting and ending options of a batch query, or ().

    Raises:
        FormatError: an option names a queue that is not subscribed to.
        StoreError: an offset is out of range, or no message has the time or a later one, unless
            the options tolerate that.
    """
    starts = offsets_of(store, options, options.starting, "starting")
    ends = offsets_of(store, options, options.ending, "ending")
    ranges: dict[Queue, Interval] = {
        queue: (starts.get(queue, 0), ends.get(queue, MOST)) for queue in {**starts, **ends}
    }
    return (InQueues(ranges, others=True),) if ranges else ()


def offsets_of(
    store: OpenStore, options: StoreReadOptions, limit: Limit[Queue], side: str
) -> Numbers:
    """Return a queue offset for each queue that has a limit other than its start or end."""
    _check_subscribed(options, limit, side)
    if limit.timestamp is not None:
        times = dict.fromkeys(_subscribed(store, options), limit.timestamp)
        return _by_time(store, options, times, side)
    if limit.timestamps is not None:
        return _by_time(store, options, limit.timestamps, side)
    found: Numbers = {}
    for queue, offset in (limit.offsets or {}).items():
        if offset == LATEST and side == "starting":
            found[queue] = store.snapshot.queue_range(*queue)[1]
        elif offset not in (EARLIEST, LATEST):
            found[queue] = _in_range(store, options, queue, offset, side)
    return found


def _by_time(store: OpenStore, options: StoreReadOptions, times: Numbers, side: str) -> Numbers:
    found: Numbers = {}
    for queue, time in times.items():
        view = store.snapshot.view(*queue)
        offset = offset_by_time(view, time, Boundary.LOWER)
        if offset < view.max_offset:
            found[queue] = offset
        elif side == "starting":
            if not options.latest_if_none and _is_named(options):
                raise StoreError(
                    f"{queue[0]}-{queue[1]}: no message is from {time} or later; set "
                    "startingOffsetsByTimestampStrategy to latest to start after the last one"
                )
            found[queue] = offset
    return found


def _is_named(options: StoreReadOptions) -> bool:
    """Return whether a query names its topics. Some of all topics may be idle for a long time."""
    return (options.topics, options.topic_pattern, options.queues) != (None, None, None)


def _in_range(
    store: OpenStore, options: StoreReadOptions, queue: Queue, offset: int, side: str
) -> int:
    low, high = store.snapshot.queue_range(*queue)
    if not low <= offset <= high:
        data_loss(
            options,
            f"{side}Offsets: {queue[0]}-{queue[1]} has offsets {low} to {high}, not {offset}",
        )
    return min(max(offset, low), high)


def _check_subscribed(options: StoreReadOptions, limit: Limit[Queue], side: str) -> None:
    subscribed = subscription(options)
    for queue in limit.queues:
        is_assigned = options.queues is None or queue in options.queues
        if not is_assigned or not wants_topic(subscribed, queue[0]):
            raise FormatError(
                f"{side} offsets name {queue[0]}-{queue[1]}, which is not subscribed to"
            )


def _subscribed(store: OpenStore, options: StoreReadOptions) -> list[Queue]:
    if options.queues is not None:
        return list(options.queues)
    subscribed = subscription(options)
    topics = set(store.snapshot.topics_with_files)
    topics.update(topic for topic, _ in store.snapshot.undispatched.bounds)
    return [
        (topic, queue_id)
        for topic in sorted(topics)
        if wants_topic(subscribed, topic)
        for queue_id in store.snapshot.queue_ids(topic)
    ]
