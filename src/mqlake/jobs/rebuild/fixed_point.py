"""Repeat stage one: a pass can show that it began with wrong assumptions.

The log's end, a split that began in the middle of a body, a queue offset in two records or an
implausible one, a deleted topic: each shows only when all tasks have reported. Then the written
files are removed, and stage one runs again with that knowledge. A sound store needs one pass.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np

from mqlake.dispatch.gap import Gap
from mqlake.formats.record import MIN_SIZE
from mqlake.jobs.engine import Engine
from mqlake.jobs.queues.deletions import Deletions
from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.queues.runs import QueueName
from mqlake.jobs.rebuild.stage_queues import QueuePart, RebuildQueueJob, build_queues
from mqlake.jobs.source import StoreSource
from mqlake.jobs.splits.log_end import log_end
from mqlake.jobs.splits.splits import Job, clip, jobs_of, join_gaps, run_until_met
from mqlake.store.log.segments import CommitLog

_TOLERATED = 1024
"""Queue offsets that a queue may lack although no record is lost."""

Taken = dict[QueueName, list[Interval]]


class FixedPoint(msgspec.Struct, frozen=True):
    """The result of the last pass.

    Attributes:
        parts: the result of each task, in log order.
        gaps: all stretches of the log without a good record, also past its end.
        log_end: physical offset, bytes.
        records_beyond: good records past the log's end.
        lost: the maximum number of records that the gaps may have contained.
        passes: how often stage one ran.
    """

    parts: list[QueuePart]
    gaps: list[Gap]
    log_end: int
    records_beyond: int
    lost: int
    passes: int


def run_to_fixed_point(
    engine: Engine,
    source: StoreSource,
    jobs: list[Job],
    template: RebuildQueueJob,
    deletions: Deletions,
) -> FixedPoint:
    """Run stage one until a pass confirms its assumptions.

    `template` is a job without splits, whose two directories exist and are empty.
    """
    stage = _Stage(engine, template, deletions)
    parts = run_until_met(stage.run, jobs)
    jobs = jobs_of(parts)
    gaps = join_gaps([part.scanned for part in parts])
    end = log_end(source.log, gaps, source.recovery_start)
    seen = _records(parts)
    if any(part.last_record >= end for part in parts):
        jobs = clip(jobs, end)
        parts = stage.run(jobs)
    if deletions.learn(part.traces for part in parts):
        parts = stage.run(jobs)
    lost = _lost(source.log, gaps, end)
    if believable := _believable(parts, lost):
        parts = stage.run(jobs, believable=believable)
    taken = _taken(parts)
    if any(taken):
        parts = stage.run(jobs, believable=believable, taken=taken)
    return FixedPoint(parts, gaps, end, seen - _records(parts), lost, stage.passes)


class _Stage:
    def __init__(self, engine: Engine, template: RebuildQueueJob, deletions: Deletions) -> None:
        self._engine, self._template, self._deletions = engine, template, deletions
        self.passes = 0

    def run(
        self,
        jobs: Sequence[Job],
        *,
        believable: dict[QueueName, Interval] | None = None,
        taken: Sequence[Taken] | None = None,
    ) -> list[QueuePart]:
        template = msgspec.structs.replace(
            self._template, believable=believable or {}, dead=self._deletions.dead
        )
        if self.passes:
            _empty(template.output)
            _empty(template.keys)
        self.passes += 1
        tasks = [
            msgspec.structs.replace(
                template, splits=job, taken=taken[number] if taken else template.taken
            )
            for number, job in enumerate(jobs)
        ]
        return self._engine.run(build_queues, tasks, "consume queues")


def _records(parts: Iterable[QueuePart]) -> int:
    return sum(part.records - part.damaged_bodies for part in parts)


def queue_offsets(parts: Iterable[QueuePart]) -> dict[QueueName, Intervals]:
    """Return the queue offsets that the records of each queue state."""
    stretches: dict[QueueName, list[Interval]] = defaultdict(list)
    for part in parts:
        for queue, stated in part.stated.items():
            stretches[queue] += stated
    return {queue: Intervals(sorted(found)) for queue, found in stretches.items()}


def _lost(log: CommitLog, gaps: Sequence[Gap], end: int) -> int:
    present = sum(segment.end - segment.base for segment in log.segments)
    missing = log.limit - log.min_offset - present
    damaged = sum(gap.length for gap in gaps if gap.physical_offset < end)
    return (missing + damaged) // MIN_SIZE


def _believable(parts: Sequence[QueuePart], lost: int) -> dict[QueueName, Interval]:
    """Return bounds for the queues whose offsets are too far apart to be all true.

    Nothing protects a queue offset against damage: the CRC covers only the body. A queue's offsets
    are consecutive except for lost records, so the bounds enclose most of them.
    """
    bounds: dict[QueueName, Interval] = {}
    for queue, stated in queue_offsets(parts).items():
        widest = 2 * stated.count + lost + _TOLERATED
        if stated.end - stated.first > widest:
            bounds[queue] = _densest(list(stated), widest)
    return bounds


def _densest(stretches: Sequence[Interval], width: int) -> Interval:
    """Return the first window of at most `width` that contains the most numbers of the
    stretches.
    """
    starts = np.array([start for start, _ in stretches])
    ends = np.array([end for _, end in stretches])
    totals = np.array([0, *accumulate(end - start for start, end in stretches)])
    last = np.searchsorted(ends, starts + width, "right")
    held = totals[np.maximum(last, np.arange(len(starts)) + 1)] - totals[:-1]
    best = int(np.argmax(held))
    low = int(starts[best])
    return low, max(low + width, int(ends[best]))


def _taken(parts: Sequence[QueuePart]) -> list[Taken]:
    """Return, for each task, the queue offsets that tasks before it share with it."""
    before: dict[QueueName, Intervals] = {}
    taken: list[Taken] = []
    for part in parts:
        taken.append({})
        for queue, stated in part.stated.items():
            earlier = before.setdefault(queue, Intervals())
            if any(earlier.overlaps(start, end) for start, end in stated):
                taken[-1][queue] = list(earlier)
            for start, end in stated:
                earlier.add(start, end)
    return taken


def _empty(directory: str) -> None:
    for path in Path(directory).iterdir():
        if path.is_symlink():  # To a scratch directory on another disk.
            _empty(str(path))
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
