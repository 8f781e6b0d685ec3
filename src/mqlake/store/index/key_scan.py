"""Search keys in stretches of the log, without an index."""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple, Protocol

from mqlake.formats.dialect import Dialect
from mqlake.formats.java_string import index_key_hash
from mqlake.store.log.scan import SMALL, is_small, pieces, segment_scan, walk
from mqlake.store.log.segments import CommitLog, Segment
from mqlake.store.results import QueryBudget

_STEP = 64
"""Records of a step of the plain walk."""
_STEP_BYTES = 256 << 10
"""Bytes of a step of the compiled scan: less than a millisecond's work, however small the
records.
"""


class Sought(Protocol):
    """What is searched: see `KeyQuery`."""

    @property
    def topic(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def dialect(self) -> Dialect: ...
    def may_be_in(self, properties: bytes) -> bool: ...
    def has_time(self, milliseconds: int) -> bool: ...


class KeyScan:
    """Searches keys in stretches of the log.

    Short stretches are walked once, and cached by topic.

    Args:
        short: bytes up to which a stretch is short.
    """

    _MOST_KEPT = 8

    def __init__(self, log: CommitLog, short: int = SMALL) -> None:
        self._log, self._short = log, short
        self._kept: dict[tuple[int, int], _Stretch] = {}

    def offsets(
        self, start: int, end: int, query: Sought, budget: QueryBudget
    ) -> Iterator[int | None]:
        """Yield the physical offsets in [start, end) of records that may have the key, newest
        first, and None wherever others may be served.

        All of them were stored in the range of time.
        """
        if is_small(self._log, start, end, self._short):
            yield from self._walked(start, end, query, budget)
            return
        for piece in reversed(list(pieces(self._log, start, end))):
            # A scan must begin at a record, so a file is scanned whole or not at all.
            if budget.size <= 0:
                budget.exceed()
                return
            found = yield from self._scan(*piece, query, budget)
            yield from reversed(found)

    def _walked(
        self, start: int, end: int, query: Sought, budget: QueryBudget
    ) -> Iterator[int | None]:
        stretch = yield from self._stretch(start, end)
        budget.spend_bytes(end - start)
        for candidate in reversed(stretch.get(query.topic.encode("utf-8", "surrogatepass"), ())):
            is_in_time = query.has_time(candidate.store_timestamp)
            is_it = is_in_time and query.may_be_in(candidate.properties)
            yield candidate.offset if is_it else None

    def _stretch(self, start: int, end: int) -> Generator[None, None, _Stretch]:
        if (start, end) in self._kept:
            return self._kept[start, end]
        found: _Stretch = {}
        for number, step in enumerate(walk(self._log, start, end), 1):
            head = None if step.fault else step.head()
            if head is not None:
                candidate = _Candidate(step.offset, head.store_timestamp, step.properties())
                found.setdefault(head.topic, []).append(candidate)
            if number % _STEP == 0:
                yield
        if len(self._kept) >= self._MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[start, end] = found
        return found

    def _scan(
        self, segment: Segment, start: int, end: int, query: Sought, budget: QueryBudget
    ) -> Generator[None, None, Sequence[int]]:
        """Return the offsets in a piece of one file, ascending; the newest if they are too many."""
        from mqlake.dispatch.scan import Want

        wanted, found = index_key_hash(query.text), array("q")
        # A scan of its own for each step: the file may be removed in between.
        while start < end and self._log.segment_at(start) is not None:
            scan = segment_scan(
                self._log,
                segment,
                start,
                min(start + _STEP_BYTES, end),
                want=Want.DISPATCH,
                crc=False,
                dialect=query.dialect,
                window=_STEP_BYTES,
            )
            if scan is None:
                break
            for batch in scan:
                rows = batch.keys["record"][batch.keys["hash"] == wanted]
                times = batch.records["store_timestamp"][rows]
                rows = rows[(times >= query.begin) & (times <= query.end)]
                found.frombytes(batch.records["physical_offset"][rows].tobytes())
            if scan.stop <= start:
                break
            budget.spend_bytes(scan.stop - start)
            start = scan.stop
            most = max(1, budget.entries)  # More of them are not looked at.
            if len(found) > 2 * most:
                del found[:-most]
            yield
        return found


class _Candidate(NamedTuple):
    offset: int
    store_timestamp: int
    properties: bytes


_Stretch = dict[bytes, list[_Candidate]]
"""The records of a stretch, by topic."""
