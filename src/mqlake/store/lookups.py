"""Find messages by offset, id or key: in a directory, or in a store that is being written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator

from mqlake.formats.file_name import check_topic_name
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.record import Record
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.index.key_query import TAG_TYPE, KeyQuery
from mqlake.store.log.segments import CommitLog
from mqlake.store.results import FoundOffsets, QueryBudget, QueryResult

LAST_TIME = (1 << 63) - 1
DEFAULT_LIMIT = 64


class Lookups(ABC):
    """Look-ups in one commit log. A topic that cannot be a directory raises `FormatError`."""

    _log: CommitLog

    @property
    def min_offset(self) -> int:
        """Physical offset of the log's first byte."""
        return self._log.min_offset

    @property
    @abstractmethod
    def incarnations(self) -> Incarnations:
        """Which records of deleted topics are dead: no answer contains them."""

    @property
    @abstractmethod
    def max_offset(self) -> int:
        """Physical offset after the last message that may be read."""

    def record_at(self, physical_offset: int) -> Record | None:
        """Return the message that starts at a physical offset."""
        if not self.min_offset <= physical_offset < self.max_offset:
            return None
        record = self._log.record(physical_offset)
        if record is not None and self.incarnations.is_dead(record.topic, physical_offset):
            return None
        return record

    def by_message_id(self, message_id: str) -> Record | None:
        """Return the message with an offset message id.

        Raises:
            FormatError: not 32 or 56 hex digits.
        """
        _, physical_offset = decode_message_id(message_id)
        record = self.record_at(physical_offset)
        is_same = record is not None and record.message_id == message_id.upper()
        return record if is_same else None

    def by_unique_key(self, topic: str, key: str) -> Record | None:
        """Return the message with a unique key; the newest if a producer retried."""
        dead_before = self.incarnations.before(check_topic_name(topic))
        query = KeyQuery(topic, key, 0, LAST_TIME, is_unique=True, dead_before=dead_before)
        found = _result(self._search(query, 1, QueryBudget())).offsets
        return self._log.record(found[0]) if found else None

    def by_key(
        self,
        topic: str,
        key: str,
        begin: int = 0,
        end: int = LAST_TIME,
        max: int = DEFAULT_LIMIT,  # noqa: A002
        index_type: str | None = None,
    ) -> QueryResult:
        """Return the newest `max` messages with a key, by physical offset.

        A message matches its unique key and each of its KEYS; with `index_type` "T", its tags. The
        range contains messages stored in [begin, end] (ms), and those that RocketMQ, which stores
        only whole seconds, includes. What the index lacks is found in the log.
        """
        job = self.search(
            topic, key, begin=begin, end=end, max=max, index_type=index_type, budget=QueryBudget()
        )
        offsets, is_truncated = _result(job)
        records = (self._log.record(offset) for offset in offsets)
        return QueryResult([record for record in records if record is not None], is_truncated)

    def search(
        self,
        topic: str,
        key: str,
        *,
        begin: int,
        end: int,
        max: int,  # noqa: A002
        index_type: str | None,
        budget: QueryBudget,
    ) -> Generator[None, None, FoundOffsets]:
        """Find what `by_key` returns, in steps of less than a millisecond.

        Args:
            budget: what the query may look at.
        """
        kind = TAG_TYPE if index_type == TAG_TYPE else None
        dead_before = self.incarnations.before(check_topic_name(topic))
        query = KeyQuery(topic, key, begin, end, kind, dead_before=dead_before)
        return self._search(query, max, budget)

    @abstractmethod
    def _search(
        self, query: KeyQuery, limit: int, budget: QueryBudget
    ) -> Generator[None, None, FoundOffsets]: ...


def _result(search: Generator[None, None, FoundOffsets]) -> FoundOffsets:
    while True:
        try:
            next(search)
        except StopIteration as stop:
            return stop.value
