"""Notice in records that arrive from a master that their topic was deleted and created again.

The master's log does not say so. But its queues begin with queue offset 0 again: see `restarts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY, ENTRY_SIZE
from mqlake.store.incarnations.restarts import (
    Position,
    RestartTracer,
    Start,
    befores,
    is_restart,
    join,
)
from mqlake.store.queues.owned_batch_queue import OwnedBatchQueue
from mqlake.store.queues.owned_queues import OwnedQueues, Queue

_UNKNOWN = Position(0, 1)
"""A record before all others, which does not begin its queue."""


class ArrivingRun(NamedTuple):
    """Records of one queue with consecutive queue offsets."""

    topic: str
    queue_id: int
    first: Position
    last: Position

    @classmethod
    def of(cls, queue: tuple[bytes, int], data: memoryview, run: Sequence[int]) -> Self:
        """Return a run of queue entries.

        Args:
            data: queue entries.
            run: as in `Digest`.
        """
        _, start, end, offset = run
        first, last = (int(ENTRY.unpack_from(data, at * ENTRY_SIZE)[0]) for at in (start, end - 1))
        return cls(
            queue[0].decode(),
            queue[1],
            Position(first, offset),
            Position(last, offset + end - start - 1),
        )


class ArrivingStarts:
    """Finds the restarts of topics in records before they are dispatched. For one thread."""

    def __init__(self, queues: OwnedQueues) -> None:
        self._queues = queues
        self._begun: dict[tuple[str, int], int] = {}

    def befores(self, runs: Sequence[ArrivingRun]) -> dict[str, int]:
        """Return the physical offset before which the records of each topic are dead that was
        created again; topics without a restart are left out.

        Raises:
            StoreError: a queue's file cannot be read.
        """
        known, topics = set[tuple[str, int]](), set[str]()
        for run in runs:
            key = (run.topic, run.queue_id)
            if run.first.queue_offset == 0 and (key in known or self._follows_others(run)):
                topics.add(run.topic)
            known.add(key)
        return self._of(topics, runs) if topics else {}

    def _follows_others(self, run: ArrivingRun) -> bool:
        """Return whether a queue has entries of earlier records than one with queue offset 0.

        A step that ran out of time is repeated. It must not read the files of its queues again, or
        a step with thousands of them never ends. So `_begun` contains the position of the first
        record of each queue.
        """
        key, at = (run.topic, run.queue_id), run.first.physical_offset
        if self._begun.get(key) == at:
            return False
        queue = self._queues.existing(*key)
        if queue is not None and queue.end and _first(queue).physical_offset < at:
            return True
        self._begun[key] = at
        return False

    def _of(self, topics: set[str], runs: Sequence[ArrivingRun]) -> dict[str, int]:
        tracer, batches = RestartTracer(), set[tuple[str, int]]()
        for topic in topics:
            for queue_id in self._queues.ids(topic):
                if queue := self._queues.existing(topic, queue_id):
                    first = _first(queue)
                    tracer.see((topic, queue_id), first, first.queue_offset + 1, _last(queue))
                    if isinstance(queue, OwnedBatchQueue):
                        batches.add((topic, queue_id))
        for topic, queue_id, first, last in runs:
            if topic not in topics:
                continue
            # A step that is repeated sees records that have their entries already. The run may have
            # become longer: more has arrived since.
            known = tracer.traces.get((topic, queue_id))
            if known is None or first.physical_offset > known.last.physical_offset:
                tracer.see((topic, queue_id), first, 1, last)
            elif last.physical_offset > known.last.physical_offset:
                following = Position(last.physical_offset, known.last.queue_offset + 1)
                tracer.see((topic, queue_id), following, following.queue_offset + 1, last)

        def decide(queue: tuple[str, int], start: Start) -> bool:
            # The record after a batch has any queue offset.
            return queue in batches or is_restart(start)

        return befores(join([tracer.traces]), decide)


def _first(queue: Queue) -> Position:
    """Return the first record of a queue that has entries.

    Raises:
        StoreError: its file cannot be read.
    """
    if isinstance(queue, OwnedBatchQueue):
        unit = queue.unit(queue.places.first)
        return Position(unit.physical_offset, unit.base_offset) if unit else _UNKNOWN
    entry = queue.entry(queue.first)
    if entry is None or entry == BLANK_ENTRY:
        return _UNKNOWN
    return Position(entry.physical_offset, queue.first)


def _last(queue: Queue) -> Position:
    """Return the last record of a queue, as `_first` does."""
    places = queue.places if isinstance(queue, OwnedBatchQueue) else queue
    entry = places.entry(places.end - 1)
    return Position(entry.physical_offset, queue.end - 1) if entry else _UNKNOWN
