"""Find the offsets at which a query starts and ends in each partition."""

from __future__ import annotations

from collections.abc import Iterable

from mqlake.errors import FormatError, StoreError
from mqlake.kafka.log.partition import Partition
from mqlake.query.kafka_log.options import KafkaLogReadOptions, TopicPartition
from mqlake.query.reading.limits import LATEST, Limit
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.queue_json import EARLIEST as EARLIEST_OFFSET
from mqlake.query.reading.queue_json import LATEST as LATEST_OFFSET


def start_of(partition: Partition, name: TopicPartition, options: KafkaLogReadOptions) -> int:
    """Return the offset at which a query starts in a partition.

    Raises:
        StoreError: the offset is out of range, or no record has the time or a later one, unless
            that is tolerated.
        FormatError: a batch cannot be read.
    """
    limit = options.starting
    earliest, latest = partition.visible(isolation=options.isolation)
    time = _time(limit, name)
    if time is not None:
        found = partition.offset_for_time(time, isolation=options.isolation)
        if found is None and not options.latest_if_none:
            raise StoreError(
                f"{name[0]}-{name[1]}: no record is from {time} or later; set "
                "startingOffsetsByTimestampStrategy to latest to start after the last one"
            )
        return latest if found is None else found.offset
    if limit.offsets is None or name not in limit.offsets:
        is_latest = limit.word == LATEST and limit.offsets is None and limit.timestamps is None
        return latest if is_latest else earliest
    return _in_range(options, name, limit.offsets[name], (earliest, latest), "starting")


def end_of(partition: Partition, name: TopicPartition, options: KafkaLogReadOptions) -> int:
    """Return the offset before which a batch query ends in a partition.

    Raises:
        StoreError: the offset is out of range, unless that is tolerated.
        FormatError: a batch cannot be read.
    """
    limit = options.ending
    earliest, latest = partition.visible(isolation=options.isolation)
    time = _time(limit, name)
    if time is not None:
        found = partition.offset_for_time(time, isolation=options.isolation)
        return latest if found is None else found.offset
    if limit.offsets is None or name not in limit.offsets:
        return latest
    return _in_range(options, name, limit.offsets[name], (earliest, latest), "ending")


def check_named(found: Iterable[TopicPartition], limit: Limit[TopicPartition], side: str) -> None:
    """Check that the query reads the partitions that starting or ending options name.

    Raises:
        FormatError: a partition is not read.
    """
    known = set(found)
    for topic, partition in limit.queues:
        if (topic, partition) not in known:
            raise FormatError(
                f"{side} offsets name {topic}-{partition}, which does not exist or is not "
                "subscribed to"
            )


def _time(limit: Limit[TopicPartition], name: TopicPartition) -> int | None:
    return limit.timestamp if limit.timestamp is not None else (limit.timestamps or {}).get(name)


def _in_range(
    options: KafkaLogReadOptions,
    name: TopicPartition,
    offset: int,
    span: tuple[int, int],
    side: str,
) -> int:
    low, high = span
    if offset == LATEST_OFFSET:
        return high
    if offset == EARLIEST_OFFSET:
        return low
    if not low <= offset <= high:
        data_loss(
            options, f"{side}Offsets: {name[0]}-{name[1]} has offsets {low} to {high}, not {offset}"
        )
    return min(max(offset, low), high)
