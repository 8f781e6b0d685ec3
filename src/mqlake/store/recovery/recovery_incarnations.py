"""Derive which records are dead if the table of incarnations does not state it.

The table lacks deletions if it was lost, or if RocketMQ wrote the store. Then the queue files and
the table of topics show more (`from_files`). A topic that was deleted and created again a moment
before a crash may not be in the table either, but its queues begin again in the log (`from_log`).

If there is doubt, a record lives: to lose a message is worse than to repeat it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.formats.config.topics import Topics
from mqlake.storage.protocol import Directory
from mqlake.store.config.config_files import read_config, stated_queues
from mqlake.store.incarnations.evidence import existing_topics
from mqlake.store.incarnations.restarts import (
    Position,
    RestartTracer,
    Start,
    befores,
    is_restart,
    join,
)
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.log.scan import Queue
from mqlake.store.recovery.queue_bytes import FoundQueue
from mqlake.store.recovery.recovery_queues import Judges, QueueBegin


def from_files(
    table: Incarnations,
    directory: Directory,
    queues: Collection[FoundQueue],
    judges: Judges,
    min_offset: int,
    dispatched: int,
) -> Incarnations:
    """Return a table together with what queue files and the table of topics show.

    All living records of a topic are after the first ones of its queues, if all of its queues have
    files that begin with queue offset 0. A topic that neither has files nor settings was deleted.

    Args:
        table: which records are known to be dead.
        queues: the queues that have a directory.
        judges: trusts entries of all records.
        min_offset: physical offset of the log's first byte.
        dispatched: physical offset before which every record was dispatched.

    Raises:
        StoreError: a file cannot be read.
    """
    settings = read_config(directory, Topics)
    named = None if settings is None else settings.topic_config_table
    with_files = {queue.topic for queue in queues if queue.bases}
    existing = existing_topics(with_files, named)
    if named is None or existing is None or dispatched <= min_offset:
        return table
    begins: dict[str, dict[int, QueueBegin | None]] = {}
    for queue in queues:
        begins.setdefault(queue.topic, {})[queue.queue_id] = judges.begin(queue)
    topics = dict.fromkeys(existing, 0)
    for topic, found in begins.items():
        if topic in named and found.keys() >= {*range(max(1, stated_queues(named[topic])))}:
            topics[topic] = _first(found.values(), min_offset)
    return table.derived(topics, max(table.others, dispatched))


def _first(begins: Iterable[QueueBegin | None], min_offset: int) -> int:
    """Return the least physical offset, 0 if a queue does not begin with queue offset 0."""
    first = (1 << 63) - 1
    for begin in begins:
        if begin is None or begin.queue_offset or begin.physical_offset < min_offset:
            return 0
        first = min(first, begin.physical_offset)
    return first


def from_log(
    batches: Iterator[Batch],
    topics: Collection[str],
    known: Incarnations,
    before: Mapping[Queue, tuple[Position, Position]],
    batch_topics: Collection[str],
) -> dict[str, int]:
    """Return the physical offset before which the records of each topic are dead that begins again
    in a part of the log; topics that do not begin again are left out.

    Args:
        batches: the records of that part.
        topics: those that may begin again.
        known: which records are known to be dead.
        before: the first and the last living record before that part, of each queue with some.
        batch_topics: the topics with batch consume queues.
    """
    tracer = RestartTracer()
    for queue, (first, last) in before.items():
        tracer.see(queue, first, first.queue_offset + 1, last)
    for batch in batches:
        _trace(batch, topics, known, tracer)

    def decide(queue: Queue, start: Start) -> bool:
        # The record after a batch has any queue offset.
        return queue[0] in batch_topics or is_restart(start)

    return befores(join([tracer.traces]), decide)


def _trace(
    batch: Batch, topics: Collection[str], known: Incarnations, tracer: RestartTracer
) -> None:
    numbers = batch.records["queue"]
    for number in np.unique(numbers[numbers >= 0]).tolist():
        name, queue_id = batch.table[number]
        topic = name.decode()
        if topic not in topics:
            continue
        rows = batch.records[numbers == number]
        rows = rows[rows["physical_offset"] >= known.before(topic)]
        at, offsets = rows["physical_offset"].tolist(), rows["queue_offset"].tolist()
        breaks = (np.flatnonzero(np.diff(rows["queue_offset"]) != 1) + 1).tolist()
        for start, stop in pairwise([0, *breaks, len(rows)]):
            if start < stop:
                first, last = (Position(at[row], offsets[row]) for row in (start, stop - 1))
                tracer.see((topic, queue_id), first, first.queue_offset + 1, last)
