"""Find which records belong to topics that were deleted after they were put.

The records of a deleted topic stay in the log, and a topic that is created again uses its queue
offsets again. The table of incarnations says which records are dead. Where it does not, the tasks
trace the queues of their splits, and the driver decides with the queue files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from mqlake.dispatch.batch import Batch
from mqlake.errors import FormatError
from mqlake.formats import batch_consume_queue, consume_queue
from mqlake.formats.batch_consume_queue import UNIT_SIZE, BatchQueueUnit
from mqlake.formats.config import Topics
from mqlake.formats.config.topics import Topic
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE
from mqlake.formats.file_name import check_topic_name, segment_name
from mqlake.jobs.queues.runs import EntryRun, QueueName, queues_of
from mqlake.jobs.source import StoreSource
from mqlake.storage.clock import SystemClock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.config.config_files import read_config, stated_queues
from mqlake.store.incarnations.evidence import Evidence, existing_topics
from mqlake.store.incarnations.restarts import Position, RestartTracer, Trace, join
from mqlake.store.incarnations.table import OwnedIncarnations, find_incarnations
from mqlake.store.queues.queue_kind import BATCH, SIMPLE, QueueKind
from mqlake.store.recovery.checkpoint_file import find_checkpoint

_OFFSET = np.dtype([("physical_offset", ">i8"), ("rest", "V12")])


class DeadRecords(msgspec.Struct, frozen=True):
    """Which records are dead, for tasks.

    Attributes:
        befores: by topic, the physical offset before which its records are dead.
        others: the same for topics that are not in `befores`.
        topics: the topics that exist; None if that is unknown.
        dispatched: the physical offset before which records of topics that do not exist are dead.
        is_complete: whether the table of incarnations has all deletions.
    """

    befores: dict[str, int] = {}
    others: int = 0
    topics: frozenset[str] | None = None
    dispatched: int = 0
    is_complete: bool = False

    def before(self, topic: str) -> int:
        """Return the physical offset before which a topic's records are dead."""
        before = self.befores.get(topic, self.others)
        if self.topics is None or topic in self.topics:
            return before
        return max(before, self.dispatched)


def living_mask(batch: Batch, dead: DeadRecords) -> NDArray[np.bool_]:
    """Return bool[n]: which of a batch's records are not dead. Its scan has numbered the queues."""
    befores = np.array([dead.before(topic.decode()) for topic, _ in batch.table] + [0], np.int64)
    return batch.records["physical_offset"] >= befores[batch.records["queue"]]


class QueueTracer:
    """Trace the queues of a task's records, and leave the dead records out."""

    def __init__(self, dead: DeadRecords) -> None:
        self._dead, self._tracer = dead, RestartTracer()
        self._befores: dict[str, int] = {}
        self.dead_by_topic: Counter[str] = Counter()

    @property
    def dead(self) -> int:
        """The number of dead records."""
        return self.dead_by_topic.total()

    @property
    def traces(self) -> dict[tuple[str, int], Trace]:
        """What was traced."""
        return self._tracer.traces

    def living(self, run: EntryRun) -> EntryRun | None:
        """Trace a run; return its living records, None if all are dead."""
        entries = np.frombuffer(run.entries, _OFFSET)["physical_offset"]
        first, last = Position(int(entries[0]), run.first), Position(int(entries[-1]), run.end - 1)
        self._tracer.see(run.queue, first, run.first + 1, last)
        before = self._before(run.queue.topic)
        if first.physical_offset >= before:
            return run
        dead = int(np.searchsorted(entries, before))
        self.dead_by_topic[run.queue.topic] += dead
        rest = run.entries[dead * ENTRY_SIZE :]
        return EntryRun(run.queue, run.first + dead, rest) if len(rest) else None

    def living_units(
        self, queue: QueueName, units: Iterable[BatchQueueUnit]
    ) -> list[BatchQueueUnit]:
        """Trace the units of records; return those of living records."""
        before = self._before(queue.topic)
        living: list[BatchQueueUnit] = []
        for unit in units:
            position = Position(unit.physical_offset, unit.base_offset)
            self._tracer.see(queue, position, unit.end_offset, position)
            if unit.physical_offset >= before:
                living.append(unit)
            else:
                self.dead_by_topic[queue.topic] += 1
        return living

    def _before(self, topic: str) -> int:
        before = self._befores.get(topic)
        if before is None:
            before = self._befores[topic] = self._dead.before(topic)
        return before


class Deletions:
    """What a job's driver knows about deleted topics.

    Args:
        dispatched: physical offset before which all records were dispatched.
        is_strict: in doubt whether a topic was deleted or lost queue files, its records are living,
            as in recovery: a job that replaces the files would lose these records for ever.
    """

    def __init__(self, source: StoreSource, dispatched: int, *, is_strict: bool = False) -> None:
        self._source = source
        self._dispatched, self._is_strict = dispatched, is_strict
        self._names: set[str] = set()
        self.dead = self._stored()

    def learn(self, stretches: Iterable[Mapping[tuple[str, int], Trace]]) -> bool:
        """Note what the traces of consecutive splits show; return whether it is new.

        Raises:
            StoreError: a file cannot be read.
        """
        before = self.dead
        self.dead = self._stored()  # A running broker may have deleted a topic meanwhile.
        traces = join(stretches)
        self._names = {topic for topic, _ in traces}
        evidence = Evidence(
            self._begins(traces),
            self.dead.topics,
            self._dispatched,
            self.dead.is_complete,
            self._queue_counts() if self._is_strict else None,
        )
        for topic, found in evidence.befores(traces).items():
            if found > self.dead.before(topic):
                self.dead.befores[topic] = found
        return self.dead != before

    def keep(self, directory: OwnedDirectory) -> None:
        """Store what is known in the table of incarnations: new queue files show less than the old.

        Raises:
            StoreError: a file cannot be read.
            DiskError: the system refused it.
        """
        table = OwnedIncarnations.load(directory, SystemClock())
        for topic in sorted(self._names):
            table.end_topic(topic, self.dead.before(topic))
        if (pending := table.write()) is not None:
            pending.complete()

    def of_existing(self, counts: Mapping[str, int]) -> int:
        """Return how many of the records, counted by topic, are of topics with settings.

        Raises:
            DiskError: the process has no descriptor or memory for the file now.
        """
        named = self._settings or {}
        return sum(count for topic, count in counts.items() if topic in named)

    def _stored(self) -> DeadRecords:
        """Return what the tables and the names of queues say.

        Files that are missing show a deletion, unless the table is complete: then they were lost.
        """
        table, is_whole, _ = find_incarnations(self._source.directory)
        if is_whole and find_checkpoint(self._source.directory).resume is not None:
            return DeadRecords(table.befores, table.others, is_complete=True)
        queues = self._queues()
        has_files = any(map(self._source.directory.names, queues.values()))
        with_files = {queue.topic for queue in queues} if has_files else set[str]()
        topics = existing_topics(with_files, self._settings)
        return DeadRecords(table.befores, table.others, topics, self._dispatched)

    @cached_property
    def _settings(self) -> Mapping[str, Topic] | None:
        topics = read_config(self._source.directory, Topics)
        return None if topics is None else topics.topic_config_table

    def _queue_counts(self) -> dict[str, int]:
        return {name: stated_queues(topic) for name, topic in (self._settings or {}).items()}

    def _queues(self) -> dict[QueueName, str]:
        """Return the queues that have a directory, and its path."""
        directory = self._source.directory
        return {
            queue: f"{kind.directory}/{queue.topic}/{queue.queue_id}"
            for kind in (SIMPLE, BATCH)
            for queue in queues_of(directory, kind)
        }

    def _begins(self, traces: Mapping[tuple[str, int], Trace]) -> dict[tuple[str, int], int | None]:
        """Return the record with which the files of queues begin, of topics that may have been
        deleted.
        """
        queues = self._queues()
        suspects = {
            queue[0]
            for queue, trace in traces.items()
            if queue not in queues or any(start.previous is not None for start in trace.starts)
        }
        return {
            queue: self._begin(queue, traces.get(queue))
            for queue, path in queues.items()
            if queue.topic in suspects and self._source.directory.names(path)
        }

    def _begin(self, queue: QueueName, trace: Trace | None) -> int | None:
        known = {start.physical_offset for start in trace.starts} if trace else set[int]()
        for begin in (self._first_entry(queue), self._first_unit(queue)):
            is_expired = begin is not None and begin < self._source.log.min_offset
            if begin in known or is_expired:
                return begin
        return None

    def _first_entry(self, queue: tuple[str, int]) -> int | None:
        data = self._first_bytes(SIMPLE, queue, ENTRY_SIZE)
        entry = consume_queue.decode(data) if data else BLANK_ENTRY
        is_there = consume_queue.is_written(entry) and not consume_queue.is_blank(entry)
        return entry.physical_offset if is_there else None

    def _first_unit(self, queue: tuple[str, int]) -> int | None:
        data = self._first_bytes(BATCH, queue, UNIT_SIZE)
        unit = batch_consume_queue.decode(data) if data else None
        is_first = unit and batch_consume_queue.is_written(unit) and unit.base_offset == 0
        return unit.physical_offset if unit and is_first else None

    def _first_bytes(self, kind: QueueKind, queue: tuple[str, int], size: int) -> bytes | None:
        """Return the bytes with which a queue's files begin, None if they do not begin at 0."""
        topic, queue_id = queue
        try:
            path = f"{kind.directory}/{check_topic_name(topic)}/{queue_id}/{segment_name(0)}"
        except FormatError:
            return None  # No directory can have the name.
        data = read_file(self._source.directory, path, size)
        return data if data and len(data) == size else None
