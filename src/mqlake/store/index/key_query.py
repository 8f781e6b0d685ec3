"""Find messages by key, unique key or tag (docs/store-reader.md, "Keys").

Upstream: `DefaultMessageStore.queryMessage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mqlake.formats import sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import IndexEntry, index_key
from mqlake.formats.java_string import index_key_hash
from mqlake.formats.record import Record
from mqlake.store.index.index_files import IndexFile, IndexFiles
from mqlake.store.log.scan import batches, is_small, walk
from mqlake.store.log.segments import CommitLog

TAG_TYPE = "T"
"""Index type of tags, as `MessageConst.INDEX_TAG_TYPE`."""

_REPLACEMENT = "\ufffd"
_MOST_SECONDS = 0x7FFFFFFF


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

    @property
    def text(self) -> str:
        """The text that RocketMQ indexes."""
        return index_key(self.topic, self.key, self.index_type)

    def matches(self, record: Record) -> bool:
        """Return whether a record has the topic and the key; its time is not checked."""
        if record.topic != self.topic or not sys_flag.is_indexed(record.sys_flag):
            return False
        if self.index_type == TAG_TYPE:
            return record.tags == self.key
        if record.unique_key == self.key:
            return True
        return not self.is_unique and self.key in record.keys

    def may_be_in(self, properties: bytes) -> bool:
        """Return whether encoded properties can contain the key."""
        # Malformed bytes are decoded as replacement characters.
        key = self.key.encode("utf-8", "surrogatepass")
        return key in properties or _REPLACEMENT in self.key

    def has_time(self, milliseconds: int) -> bool:
        """Return whether a time is in the range."""
        return self.begin <= milliseconds <= self.end


def find(
    log: CommitLog,
    log_end: int,
    index: IndexFiles,
    scan: KeyScan,
    query: KeyQuery,
    limit: int,
) -> tuple[list[Record], bool]:
    """Return the newest `limit` records that match, ascending, and whether there are more."""
    found: dict[int, Record] = {}
    seen: set[int] = set()
    for offset, is_in_time in _candidates(log, log_end, index, scan, query):
        if offset in found or (offset in seen and not is_in_time):
            continue
        seen.add(offset)
        record = log.record(offset)
        if record is None or not query.matches(record):
            continue
        if is_in_time or query.has_time(record.store_timestamp):
            if len(found) == limit:
                return [found[at] for at in sorted(found)], True
            found[offset] = record
    return [found[at] for at in sorted(found)], False


def _candidates(
    log: CommitLog, log_end: int, index: IndexFiles, scan: KeyScan, query: KeyQuery
) -> Iterator[tuple[int, bool]]:
    """Yield physical offsets, newest first, and whether the index says that the time is in
    range.
    """
    # Sources that end later come first; a scanned stretch contains everything that a file has
    # there.
    sources: list[tuple[int, int, IndexFile | tuple[int, int]]] = [
        (end, 1, (start, end)) for start, end in index.gaps(log.min_offset, log_end)
    ]
    sources += [(file.header.end_physical_offset, 0, file) for file in index.files]
    for _, _, source in sorted(sources, key=lambda source: source[:2], reverse=True):
        if isinstance(source, IndexFile):
            yield from _from_index(source, log, log_end, query)
        else:
            for offset in reversed(scan.offsets(*source, query)):
                yield offset, False


def _from_index(
    file: IndexFile, log: CommitLog, log_end: int, query: KeyQuery
) -> Iterator[tuple[int, bool]]:
    for entry in file.entries(query.text):
        if not log.min_offset <= entry.physical_offset < log_end:
            continue
        is_in_time = query.has_time(file.store_time(entry))
        if is_in_time or _may_be_in_time(file, entry, query):
            yield entry.physical_offset, is_in_time


def _may_be_in_time(file: IndexFile, entry: IndexEntry, query: KeyQuery) -> bool:
    """Return whether the record's own time, which the entry has in whole seconds, can be in
    range.
    """
    if not 0 < entry.seconds < _MOST_SECONDS:
        return True  # The clock went back below the file's first entry, or far ahead.
    time = file.store_time(entry)
    return time <= query.end and time + 999 >= query.begin


class KeyScan:
    """Searches keys in stretches of the log, without an index.

    Short stretches are scanned once, and cached by topic.
    """

    _KEPT = 8

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._kept: dict[tuple[int, int], dict[bytes, list[_Candidate]]] = {}

    def offsets(self, start: int, end: int, query: KeyQuery) -> list[int]:
        """Return the physical offsets in [start, end) of records that may have the key, ascending.

        All of them were stored in the range of time.
        """
        if not is_small(self._log, start, end):
            return list(self._scan(start, end, query))
        return [
            candidate.offset
            for candidate in self._stretch(start, end).get(query.topic.encode(), ())
            if query.has_time(candidate.store_timestamp) and query.may_be_in(candidate.properties)
        ]

    def _stretch(self, start: int, end: int) -> dict[bytes, list[_Candidate]]:
        if (start, end) in self._kept:
            return self._kept[start, end]
        found: dict[bytes, list[_Candidate]] = {}
        for step in walk(self._log, start, end):
            head = None if step.fault else step.head()
            if head is not None:
                candidate = _Candidate(step.offset, head.store_timestamp, step.properties())
                found.setdefault(head.topic, []).append(candidate)
        if len(self._kept) >= self._KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[start, end] = found
        return found

    def _scan(self, start: int, end: int, query: KeyQuery) -> Iterator[int]:
        from mqlake.dispatch.scan import Want

        wanted = index_key_hash(query.text)
        dialect = Dialect.V5_5 if query.index_type == TAG_TYPE else Dialect.V5_3
        for batch in batches(self._log, start, end, Want.DISPATCH, dialect):
            rows = batch.keys["record"][batch.keys["hash"] == wanted]
            times = batch.records["store_timestamp"][rows]
            rows = rows[(times >= query.begin) & (times <= query.end)]
            yield from batch.records["physical_offset"][rows].tolist()


class _Candidate(NamedTuple):
    offset: int
    store_timestamp: int
    properties: bytes
