"""Open a RocketMQ store directory and answer questions about it; nothing is ever written.

A running broker may have it open, or it may be left over from a crash, with derived files missing,
short or damaged: what they lack is found by scanning the log (docs/store-reader.md).
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Self

from mqlake.errors import StoreError
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import check_topic_name
from mqlake.storage.local import LocalDirectory
from mqlake.storage.protocol import Directory
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.index import key_query
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.index.key_query import TAG_TYPE, KeyQuery
from mqlake.store.log.nearby_store import NO_LOG, why_no_store
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.lookups import DEFAULT_LIMIT, Lookups
from mqlake.store.queues import queue_read, time_range
from mqlake.store.queues.queue_files import queue_ids
from mqlake.store.queues.tag_filter import TagFilter
from mqlake.store.queues.time_range import TimeRange
from mqlake.store.queues.time_search import Boundary, offset_by_time
from mqlake.store.results import FoundOffsets, GetResult, QueryBudget, QueryResult, QueueRange
from mqlake.store.snapshot import Snapshot, is_store

if TYPE_CHECKING:
    from mqlake.store.report import StoreReport


class StoreReader(Lookups):
    """A store directory, opened for reading. Not thread-safe.

    Answers are about the store as it was when it was opened, or at the last call of `refresh`. A
    topic that cannot be a directory name raises `FormatError`.
    """

    def __init__(
        self, directory: Directory, log: CommitLog, dialect: Dialect | None = None
    ) -> None:
        self._directory, self._log, self._dialect = directory, log, dialect
        self._snapshot = Snapshot(directory, log, dialect)

    @classmethod
    def open(
        cls, store: str | os.PathLike[str] | Directory, *, dialect: Dialect | None = None
    ) -> Self:
        """Open a store directory.

        Args:
            dialect: the RocketMQ generation that wrote the index; by default, detected from the
                store.

        Raises:
            StoreError: the path is not a directory, or has no commit log.
        """
        is_path = isinstance(store, str | os.PathLike)
        directory: Directory = LocalDirectory(store) if is_path else store
        _check_is_store(directory)
        return cls(directory, open_log(directory), dialect)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store's files."""
        self._log.close()

    def refresh(self) -> None:
        """Look at the store again, for what a running broker has added or deleted."""
        self._log.refresh()
        self._snapshot = Snapshot(self._directory, self._log, self._dialect)

    @property
    def incarnations(self) -> Incarnations:
        """Which records of deleted topics are dead: no answer contains them."""
        return self._snapshot.incarnations

    @property
    def max_offset(self) -> int:
        """Physical offset of the log's end: the first byte after its last good record."""
        return self._snapshot.end.offset

    @property
    def dialect(self) -> Dialect:
        """The RocketMQ generation that wrote the store."""
        return self._snapshot.detected.dialect

    def topics(self) -> list[str]:
        """Return the names of all topics that have a queue, sorted."""
        found = {topic for topic, _ in self._snapshot.undispatched.bounds}
        with_files = self._snapshot.topics_with_files
        return sorted(found.union(filter(self._snapshot.has_living_files, with_files)))

    def queues(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues, ascending."""
        return self._snapshot.queue_ids(check_topic_name(topic))

    def queue(self, topic: str, queue_id: int) -> QueueRange:
        """Return a queue's offsets; (0, 0) if there is no such queue."""
        return QueueRange(*self._snapshot.queue_range(check_topic_name(topic), queue_id))

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max: int = DEFAULT_LIMIT,  # noqa: A002
        tag: str | None = None,
    ) -> GetResult:
        """Return messages of a queue from an offset on; `tag` may be as in "TagA || TagB"."""
        view = self._snapshot.view(check_topic_name(topic), queue_id)
        return queue_read.get(view, offset, max, TagFilter(tag))

    def _search(
        self, query: KeyQuery, limit: int, budget: QueryBudget
    ) -> Generator[None, None, FoundOffsets]:
        index = self._snapshot.index
        if query.index_type == TAG_TYPE and self.dialect is not Dialect.V5_5:
            index = IndexFiles([], [])  # Older releases do not index tags.
        scan = self._snapshot.key_scan
        return key_query.find(
            log=self._log,
            log_end=self.max_offset,
            index=index,
            scan=scan,
            query=query,
            limit=limit,
            budget=budget,
        )

    def offset_by_time(
        self,
        topic: str,
        queue_id: int,
        milliseconds: int,
        boundary: Boundary | str | None = None,
    ) -> int:
        """Return the queue offset at a store time: see `Boundary`.

        The default boundary is that of the release that wrote the store: LOWER, and NEAREST for
        4.9.
        """
        if boundary is None:
            boundary = Boundary.NEAREST if self.dialect is Dialect.V4_9 else Boundary.LOWER
        view = self._snapshot.view(check_topic_name(topic), queue_id)
        return offset_by_time(view, milliseconds, Boundary(boundary))

    def by_time_range(
        self,
        topic: str,
        begin: int,
        end: int,
        max: int = DEFAULT_LIMIT,  # noqa: A002
        tag: str | None = None,
    ) -> QueryResult:
        """Return the first `max` messages stored in [begin, end] (ms), in store-time order.

        Messages with equal times are sorted by physical offset. Queues whose directory is missing
        are found by a scan.
        """
        times, tags = TimeRange(begin, end), TagFilter(tag)
        known = queue_ids(self._directory, check_topic_name(topic))
        sources = [
            time_range.in_queue(self._snapshot.view(topic, queue_id), times, tags)
            for queue_id in known
        ]
        missing = self._queues_without_files(topic, known) if known else None
        if missing is None or missing:
            found = time_range.in_log(self._log, self.max_offset, topic, missing, times)
            dead_before = self.incarnations.before(topic)
            sources.append(
                iter(sorted(each for each in found if each.physical_offset >= dead_before))
            )
        return QueryResult(*time_range.read(self._log, sources, max, tags))

    def _queues_without_files(self, topic: str, known: list[int]) -> set[int]:
        """Return the queues of a topic that may have messages, but have no files."""
        from mqlake.store.config.config_files import MOST_QUEUES, queue_count

        count = queue_count(self._directory, topic)
        undispatched = self._snapshot.undispatched.bounds
        with_records = {queue_id for name, queue_id in undispatched if name == topic}
        believed = builtins.max(count, min(known[-1], MOST_QUEUES))  # A name may contain anything.
        return with_records.union(range(believed)).difference(known)

    def inspect(self) -> StoreReport:
        """Return a report on the whole store."""
        from mqlake.store.inspect import inspect

        return inspect(self._snapshot)


def _check_is_store(directory: Directory) -> None:
    name = directory.describe()
    if not directory.is_directory("") or not is_store(directory):
        is_local = isinstance(directory, LocalDirectory)
        raise StoreError(f"{name}: {why_no_store(name) if is_local else NO_LOG}")
