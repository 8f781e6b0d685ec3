"""Distribute topics among tasks, by a sample of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import StoreError
from mqlake.formats import java_string
from mqlake.query.reading.directory import open_location
from mqlake.query.store.plan import StoreTask

SAMPLE = 1 << 20
"""Bytes of the log that are sampled for each task."""

UNEVEN = 1.3
"""Maximum size of the largest group, as a multiple of the mean."""


def topic_groups(tasks: Sequence[StoreTask], count: int) -> dict[str, int] | None:
    """Return a group, from 0 on, for each topic at the beginning of the tasks' parts of the log.

    None if no distribution is even, or if a sample cannot be read.
    """
    sizes: Counter[str] = Counter()
    try:
        for task in tasks:
            sizes.update(_sample(task))
    except StoreError:
        return None  # The task that reads it will report what is wrong.
    return _dealt_out(sizes, count)


def _dealt_out(sizes: Mapping[str, int], count: int) -> dict[str, int] | None:
    """Add each topic, the largest first, to the smallest group."""
    groups: dict[str, int] = {}
    loads = [0] * count
    for topic in sorted(sizes, key=lambda topic: (-sizes[topic], topic)):
        least = loads.index(min(loads))
        groups[topic] = least
        loads[least] += sizes[topic]
    return groups if max(loads) * count <= UNEVEN * sum(loads) else None


def _sample(task: StoreTask) -> Counter[str]:
    """Return how many bytes each topic has at the beginning of a task's part of the log."""
    sizes: Counter[str] = Counter()
    if not task.pieces:
        return sizes
    piece = task.pieces[0]
    end = min(piece.end, piece.start + SAMPLE)
    with closing(open_location(task.location).open(piece.path)) as file:
        scan = SegmentScan(
            file, piece.base, piece.start, end,
            exact=True, crc=False, want=Want.EXPORT, limit=piece.end, window=SAMPLE,
        )  # fmt: skip
        for batch in scan:
            records = batch.records[batch.records["queue"] >= 0]
            found = np.bincount(records["queue"], records["size"], len(batch.table))
            for (topic, _), size in zip(batch.table, found.tolist(), strict=True):
                sizes[java_string.decode(topic)] += int(size)
    return sizes
