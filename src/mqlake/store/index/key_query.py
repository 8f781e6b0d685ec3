"""Find messages by key, unique key or tag (docs/store-reader.md, "Keys").

A query is a generator that yields wherever others may be served: after a few index entries, after
each record, and after each step of a scan. So a server does it in slices of its event loop.

Upstream: `DefaultMessageStore.queryMessage`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mqlake.formats import sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import IndexEntry, index_key
from mqlake.formats.java_string import index_key_hash
from mqlake.formats.properties import TAGS, UNIQ_KEY, decode_properties, key_list
from mqlake.formats.record import Fault, check
from mqlake.store.index.index_files import IndexFile, IndexFiles
from mqlake.store.index.key_scan import KeyScan
from mqlake.store.log.scan import Head, WalkStep
from mqlake.store.log.segments import CommitLog
from mqlake.store.results import FoundOffsets, QueryBudget

TAG_TYPE = "T"
"""Index type of tags, as `MessageConst.INDEX_TAG_TYPE`."""

_REPLACEMENT = "\ufffd"
_MOST_SECONDS = 0x7FFFFFFF
_STEP = 64
"""Index entries of a step."""
_RECORD_COST = 16
"""Index entries that take as long as one record."""
_MOST_JUDGED = 1 << 16
"""Records whose judgement is kept: the entries of one record nearly always follow each other."""


@dataclass(frozen=True)
class KeyQuery:
    """The query: a key of a topic's messages, stored in [begin, end] (ms)."""

    topic: str
    key: str
    begin: int
    end: int
    index_type: str | None = None
    is_unique: bool = False
    """Whether the key is a unique key: then keys in KEYS do not count."""
    dead_before: int = 0
    """Physical offset before which all records of the topic belong to deleted incarnations."""

    @property
    def text(self) -> str:
        """The text that RocketMQ indexes."""
        return index_key(self.topic, self.key, self.index_type)

    @property
    def dialect(self) -> Dialect:
        """The oldest release whose index has such keys."""
        return Dialect.V5_5 if self.index_type == TAG_TYPE else Dialect.V5_3

    def matches(self, head: Head, encoded: bytes) -> bool:
        """Return whether a record has the topic and the key; its time is not checked.

        Args:
            encoded: the record's properties.
        """
        if head.topic != self.topic.encode("utf-8", "surrogatepass"):
            return False
        if not sys_flag.is_indexed(head.sys_flag) or not self.may_be_in(encoded):
            return False
        properties = decode_properties(encoded)
        if self.index_type == TAG_TYPE:
            return properties.get(TAGS) == self.key
        if properties.get(UNIQ_KEY) == self.key:
            return True
        return not self.is_unique and self.key in key_list(properties)

    def may_be_in(self, properties: bytes) -> bool:
        """Return whether encoded properties can contain the key."""
        # Malformed bytes are decoded as replacement characters.
        key = self.key.encode("utf-8", "surrogatepass")
        return key in properties or _REPLACEMENT in self.key

    def has_time(self, milliseconds: int) -> bool:
        """Return whether a time is in the range."""
        return self.begin <= milliseconds <= self.end


class _PossibleMatch(NamedTuple):
    """A record that may match; `is_in_time` if the index says so."""

    offset: int
    is_in_time: bool


def find(
    *,
    log: CommitLog,
    log_end: int,
    index: IndexFiles,
    scan: KeyScan,
    query: KeyQuery,
    limit: int,
    budget: QueryBudget,
) -> Generator[None, None, FoundOffsets]:
    """Find the newest `limit` records that match."""
    found: set[int] = set()
    # The time of each record that has the key, None of those that do not.
    judged: dict[int, int | None] = {}
    for candidate in _candidates(log, log_end, index, scan, query, budget):
        if budget.is_exceeded:
            break
        if candidate is None:
            yield
            continue
        offset, is_in_time = candidate
        if offset in found:
            continue
        if offset not in judged:
            if not budget.spend(_RECORD_COST):
                break
            if len(judged) >= _MOST_JUDGED:
                judged.clear()
            judged[offset] = _time_of(log, offset, query)
            yield
        time = judged[offset]
        if time is not None and (is_in_time or query.has_time(time)) and _is_good(log, offset):
            if len(found) == limit:
                return FoundOffsets(sorted(found), True)
            found.add(offset)
            yield
    return FoundOffsets(sorted(found), budget.is_exceeded)


def _time_of(log: CommitLog, offset: int, query: KeyQuery) -> int | None:
    """Return the store time of the record at a physical offset if it has the key."""
    place = log.place(offset)
    if place is None:
        return None
    fault, layout = check(place.view, place.at, place.end, offset, crc=False)
    step = WalkStep(offset, fault, layout, place)
    head = None if fault else step.head()
    if head is None or not query.matches(head, step.properties()):
        return None
    return head.store_timestamp


def _is_good(log: CommitLog, offset: int) -> bool:
    return log.check(offset)[0] is Fault.GOOD


def _candidates(
    log: CommitLog,
    log_end: int,
    index: IndexFiles,
    scan: KeyScan,
    query: KeyQuery,
    budget: QueryBudget,
) -> Iterator[_PossibleMatch | None]:
    """Yield candidates, newest first, and None wherever others may be served."""
    # Sources that end later come first; a scanned stretch contains everything that a file has
    # there.
    first = max(log.min_offset, query.dead_before)
    sources: list[tuple[int, int, IndexFile | tuple[int, int]]] = []
    for number, (start, end) in enumerate(index.gaps(log, first, log_end), 1):
        sources.append((end, 1, (start, end)))
        if number % _STEP == 0:
            yield None
    sources += [(file.header.end_physical_offset, 0, file) for file in index.files]
    for _, _, source in sorted(sources, key=lambda source: source[:2], reverse=True):
        if isinstance(source, IndexFile):
            yield from _from_index(source, first, log_end, query, budget)
        else:
            for offset in scan.offsets(*source, query, budget):
                yield None if offset is None else _PossibleMatch(offset, is_in_time=False)


def _from_index(
    file: IndexFile, first: int, log_end: int, query: KeyQuery, budget: QueryBudget
) -> Iterator[_PossibleMatch | None]:
    wanted = index_key_hash(query.text)
    for number, entry in enumerate(file.slot(wanted), 1):
        if number % _STEP == 0:
            budget.spend(_STEP)
            yield None
        if entry.key_hash != wanted or not first <= entry.physical_offset < log_end:
            continue
        is_in_time = query.has_time(file.store_time(entry))
        if is_in_time or _may_be_in_time(file, entry, query):
            yield _PossibleMatch(entry.physical_offset, is_in_time)


def _may_be_in_time(file: IndexFile, entry: IndexEntry, query: KeyQuery) -> bool:
    """Return whether the record's own time, which the entry has in whole seconds, can be in
    range.
    """
    if not 0 < entry.seconds < _MOST_SECONDS:
        return True  # The clock went back below the file's first entry, or far ahead.
    time = file.store_time(entry)
    return time <= query.end and time + 999 >= query.begin
