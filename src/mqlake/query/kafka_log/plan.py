"""Plan the tasks of a query, in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from mqlake.jobs.local import cores
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.stretches import OffsetStretch, cut, since
from mqlake.query.kafka_log.offsets import check_named, end_of, start_of
from mqlake.query.kafka_log.options import KafkaLogReadOptions, TopicPartition
from mqlake.query.kafka_log.place import check_asked, open_logs, wanted_partitions
from mqlake.query.reading.conditions import (
    MOST,
    Interval,
    Selection,
    interval,
    numbers,
    wants_topic,
)
from mqlake.query.reading.directory import Location
from mqlake.query.reading.log import logger
from mqlake.query.reading.shares import share_count

log = logger()

_PIECES = 4
"""Pieces that a task's share of bytes consists of, so that shares are about equal."""


class PartitionRange(msgspec.Struct, frozen=True):
    """Offsets [start, end) of a partition, approximately `size` bytes."""

    topic: str
    partition: int
    start: int
    end: int
    size: int = 0


class KafkaLogTask(msgspec.Struct, frozen=True):
    """The input of one task: offsets in their order, limited to the times (ms) in [first, last]."""

    location: Location
    ranges: tuple[PartitionRange, ...]
    isolation: Isolation
    fail_on_data_loss: bool
    times: Interval = (-MOST, MOST)


@dataclass(frozen=True)
class KafkaLogPlan:
    """The tasks of a query; the bytes of log that they read, and that the partitions have."""

    tasks: list[KafkaLogTask]
    log_bytes: int

    def explain(self) -> str:
        """Describe in one line how much is read."""
        ranges = [one for task in self.tasks for one in task.ranges]
        read = sum(one.size for one in ranges)
        return f"{read} of {self.log_bytes} bytes of log, {len(self.tasks)} tasks"


def plan_batch(options: KafkaLogReadOptions, pushed: Selection = ()) -> KafkaLogPlan:
    """Plan a batch query; `pushed` are conditions from Spark's filters.

    Raises:
        StoreError: a log directory, topic or partition does not exist; or an offset or time is out
            of range.
        FormatError: options name a partition that is not read; or a batch cannot be read.
    """
    logs = open_logs(options.location)
    names = wanted_partitions(logs, options)
    check_asked(names, options)
    check_named(names, options.starting, "starting")
    check_named(names, options.ending, "ending")
    times = interval(pushed, "timestamp")
    ranges: list[PartitionRange] = []
    total = 0
    for name in names:
        with logs.partition(*name) as partition:
            span = OffsetStretch(
                start_of(partition, name, options), end_of(partition, name, options)
            )
            total += sum(segment.size for segment in partition.segments)
            parts = _narrowed(partition, name, span, pushed)
            ranges += [PartitionRange(*name, part.start, part.end) for part in parts]
    plan = KafkaLogPlan(plan_tasks(logs, options, ranges, times), total)
    log.info("%s: %s", options.path, plan.explain())
    return plan


def plan_tasks(
    logs: LogDirectory,
    options: KafkaLogReadOptions,
    ranges: Sequence[PartitionRange],
    times: Interval = (-MOST, MOST),
) -> list[KafkaLogTask]:
    """Share ranges among tasks of about equal size."""
    pieces = list(_pieces(logs, ranges, 1 << 62))
    total = sum(piece.size for piece in pieces)
    count = share_count(total, cores(), options.min_partitions)
    goal = -(-total // count) or 1
    if count > 1:
        pieces = list(_pieces(logs, ranges, max(1, goal // _PIECES)))
    if options.max_records_per_partition is not None:
        pieces = list(_by_count(pieces, options.max_records_per_partition))
    shares = _shares(pieces, goal, options.max_records_per_partition or MOST)
    return [
        KafkaLogTask(
            options.location, tuple(share), options.isolation, options.fail_on_data_loss, times
        )
        for share in shares
    ]


def _narrowed(
    partition: Partition, name: TopicPartition, span: OffsetStretch, pushed: Selection
) -> list[OffsetStretch]:
    """Return the parts of a stretch that filters leave."""
    low, high = interval(pushed, "partition")
    listed = numbers(pushed, "partition")
    if not wants_topic(pushed, name[0]) or not low <= name[1] <= high:
        return []
    if listed is not None and name[1] not in listed:
        return []
    first, last = interval(pushed, "offset")
    span = OffsetStretch(max(span.start, first), min(span.end, min(last, MOST - 1) + 1))
    begin, end = interval(pushed, "timestamp")
    if span.start >= span.end or begin > end:
        return []
    return since(partition, span, begin) if begin > 0 else [span]


def _pieces(
    logs: LogDirectory, ranges: Iterable[PartitionRange], size: int
) -> Iterator[PartitionRange]:
    for one in ranges:
        with logs.partition(one.topic, one.partition) as partition:
            for part in cut(partition, OffsetStretch(one.start, one.end), size):
                yield PartitionRange(one.topic, one.partition, *part)


def _by_count(pieces: Iterable[PartitionRange], most: int) -> Iterator[PartitionRange]:
    for piece in pieces:
        count = piece.end - piece.start
        for start in range(piece.start, piece.end, most):
            end = min(start + most, piece.end)
            yield PartitionRange(
                piece.topic, piece.partition, start, end, piece.size * (end - start) // count
            )


def _shares(pieces: Iterable[PartitionRange], goal: int, most: int) -> list[list[PartitionRange]]:
    """Distribute pieces in their order; neighbours become one range."""
    shares: list[list[PartitionRange]] = []
    size = count = 0
    for piece in pieces:
        offsets = piece.end - piece.start
        if not shares or size + piece.size // 2 >= goal or count + offsets > most:
            shares.append([])
            size = count = 0
        share = shares[-1]
        size, count = size + piece.size, count + offsets
        if share and _are_neighbours(share[-1], piece):
            before = share.pop()
            piece = msgspec.structs.replace(
                piece, start=before.start, size=before.size + piece.size
            )
        share.append(piece)
    return shares


def _are_neighbours(one: PartitionRange, other: PartitionRange) -> bool:
    return (one.topic, one.partition, one.end) == (other.topic, other.partition, other.start)
