"""Share the queues of a query among its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from mqlake.jobs.local import cores
from mqlake.query.live.options import LiveOptions
from mqlake.query.live.task import OffsetRange
from mqlake.query.reading.conditions import MOST

LARGE = 1 << 18
"""Offsets that make a task worth its start, which costs Spark as much as thousands of rows."""

SMALL = 1 << 10
"""Offsets below which a task is not worth another core."""

Share = tuple[OffsetRange, ...]
"""The input of one task."""


def share(ranges: Sequence[OffsetRange], options: LiveOptions) -> list[Share]:
    """Share ranges among tasks; split long ranges if options ask for more or smaller tasks."""
    pieces = list(_split(ranges, options))
    if options.max_records_per_partition is not None:
        return [(one,) for one in pieces]
    return _balanced(pieces, _count(pieces, options))


def _count(pieces: Sequence[OffsetRange], options: LiveOptions) -> int:
    """Return the number of tasks: never more than there are pieces.

    The number of executors is unknown here, so that long queues have a task each.
    """
    total = sum(map(_length, pieces))
    wanted = max(total // LARGE, min(cores(), total // SMALL), options.min_partitions or 1)
    return min(wanted, len(pieces))


def _balanced(pieces: Sequence[OffsetRange], count: int) -> list[Share]:
    """Share pieces so that tasks have similar numbers of offsets; they keep their order."""
    lengths = [0] * count
    chosen: list[list[int]] = [[] for _ in range(count)]
    for number in sorted(range(len(pieces)), key=lambda one: -_length(pieces[one])):
        least = lengths.index(min(lengths))
        lengths[least] += _length(pieces[number])
        chosen[least].append(number)
    return [tuple(pieces[number] for number in sorted(one)) for one in chosen]


def _split(ranges: Sequence[OffsetRange], options: LiveOptions) -> Iterator[OffsetRange]:
    """Split ranges, with at most so many offsets each, into the requested number of pieces."""
    most = options.max_records_per_partition or MOST
    if options.min_partitions is not None and options.min_partitions > len(ranges):
        total = sum(map(_length, ranges))
        most = min(most, -(-total // options.min_partitions))
    for one in ranges:
        count = -(-_length(one) // most) or 1
        bounds = [one.start + _length(one) * number // count for number in range(count + 1)]
        for start, end in pairwise(bounds):
            yield OffsetRange(
                one.queue,
                start,
                end,
                one.before if start == one.start else None,
                one.last if end == one.end else None,
            )


def _length(one: OffsetRange) -> int:
    return one.end - one.start
