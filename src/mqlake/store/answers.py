"""Questions that both facades of a live store answer, each with its own guard for the core."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from mqlake.formats.record import Record
from mqlake.store.lookups import DEFAULT_LIMIT, LAST_TIME
from mqlake.store.owned_store import OwnedStore
from mqlake.store.queues.time_search import Boundary
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.results import QueryResult, QueueRange


class _Guarded(Protocol):
    core: OwnedStore

    @property
    def guard(self) -> AbstractContextManager[object]: ...


class StoreAnswers:
    """Questions about a live store. A topic that cannot be a directory raises `FormatError`."""

    def topics(self: _Guarded) -> list[str]:
        """Return the names of all topics that have a queue, sorted."""
        with self.guard:
            return self.core.reads.topics()

    def queues(self: _Guarded, topic: str) -> list[int]:
        """Return the ids of a topic's queues, ascending."""
        with self.guard:
            return self.core.reads.queues(topic)

    def queue(self: _Guarded, topic: str, queue_id: int) -> QueueRange:
        """Return a queue's offsets; (0, 0) if the queue does not exist."""
        with self.guard:
            return self.core.reads.queue(topic, queue_id)

    def get(
        self: _Guarded,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int = 32,
        *,
        tags: str | None = None,
        max_bytes: int | None = None,
        crc: bool = True,
    ) -> LiveGetResult:
        """Return messages of a queue from an offset on: see `LiveReads.get`."""
        with self.guard:
            return self.core.reads.get(
                topic, queue_id, offset, max_messages, tags=tags, max_bytes=max_bytes, crc=crc
            )

    def record_at(self: _Guarded, physical_offset: int) -> Record | None:
        """Return the message that starts at a physical offset."""
        with self.guard:
            return self.core.reads.record_at(physical_offset)

    def by_message_id(self: _Guarded, message_id: str) -> Record | None:
        """Return the message with an offset message id.

        Raises:
            FormatError: not 32 or 56 hex digits.
        """
        with self.guard:
            return self.core.reads.by_message_id(message_id)

    def by_unique_key(self: _Guarded, topic: str, key: str) -> Record | None:
        """Return the message with a unique key; the newest if a producer retried."""
        with self.guard:
            return self.core.reads.by_unique_key(topic, key)

    def by_key(
        self: _Guarded,
        topic: str,
        key: str,
        begin: int = 0,
        end: int = LAST_TIME,
        max: int = DEFAULT_LIMIT,  # noqa: A002
        index_type: str | None = None,
    ) -> QueryResult:
        """Return the newest `max` messages with a key, by physical offset."""
        with self.guard:
            return self.core.reads.by_key(topic, key, begin, end, max, index_type)

    def offset_by_time(
        self: _Guarded,
        topic: str,
        queue_id: int,
        milliseconds: int,
        boundary: Boundary | str = Boundary.LOWER,
    ) -> int:
        """Return the queue offset at a store time: see `Boundary`."""
        with self.guard:
            return self.core.reads.offset_by_time(topic, queue_id, milliseconds, boundary)

    def by_time_range(
        self: _Guarded,
        topic: str,
        begin: int,
        end: int,
        max: int = DEFAULT_LIMIT,  # noqa: A002
        tag: str | None = None,
    ) -> QueryResult:
        """Return the first `max` messages stored in [begin, end] (ms), in store-time order."""
        with self.guard:
            return self.core.reads.by_time_range(topic, begin, end, max, tag)
