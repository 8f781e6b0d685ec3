"""Choose the access path of a query: the one that reads the fewest bytes."""

from __future__ import annotations

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.query.reading.conditions import (
    MOST,
    Selection,
    interval,
    named_queues,
    offsets_in,
)
from mqlake.query.store.access import index_path, point_path, queue_path
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.access.stretches import Stretch, join, size
from mqlake.query.store.place import OpenStore

WORTH_A_LOOK = 16 << 20
"""Bytes of log below which a scan is as fast as reading queue files."""

_SEEK = 256 << 10
"""Bytes that could be read in the time that one more position costs."""


class AccessPath(msgspec.Struct, frozen=True):
    """How messages are found.

    Attributes:
        path: "points", "index", "queues" or "scan".
        stretches: the parts of the log that are read, ascending.
        bytes_read: how many bytes are read, including those to find the messages.
        considered: bytes that each access path would read.
        log_bytes: the bytes of the whole log.
    """

    path: str
    stretches: list[Stretch]
    bytes_read: int
    considered: dict[str, int]
    log_bytes: int

    def explain(self) -> str:
        """Describe in one line what was chosen, and from which candidates."""
        others = ", ".join(
            f"{path} {_amount(read)}" for path, read in self.considered.items() if path != self.path
        )
        chosen = (
            f"access path {self.path}: {_amount(self.bytes_read)} of {_amount(self.log_bytes)} "
            f"of log in {len(self.stretches)} places"
        )
        return f"{chosen} (instead of {others})" if others else chosen


def choose(
    store: OpenStore,
    boundaries: Boundaries,
    selection: Selection,
    asked: str = "auto",
    *,
    is_split: bool = True,
) -> AccessPath:
    """Return the cheapest access to the messages of a selection, or the requested one.

    Args:
        is_split: whether messages are selected within inner batches, whose keys no index has.

    Raises:
        StoreError: the requested access path is not possible.
    """
    log = boundaries.end - boundaries.start
    stretch = narrow(store, boundaries, selection)
    ways: dict[str, tuple[list[Stretch], int]] = {}
    if asked in ("auto", "scan"):
        whole = join([stretch])
        ways["scan"] = whole, size(whole)
    if asked in ("auto", "points"):
        _consider(ways, "points", point_path.find(store, boundaries, selection, stretch), 0)
    has_hidden_keys = is_split and index_path.lacks_keys(store, selection)
    if asked in ("auto", "index") and "points" not in ways and not has_hidden_keys:
        _consider(ways, "index", index_path.find(store, boundaries, selection, stretch), 0)
    if _asks_queues(boundaries, selection, asked, ways):
        found = queue_path.find(store, boundaries, selection, stretch)
        _consider(ways, "queues", found, queue_path.entries(boundaries) * ENTRY_SIZE)
    if not ways:
        raise StoreError(_impossible(asked, has_hidden_keys=has_hidden_keys))
    path = min(ways, key=lambda path: ways[path][1] + _SEEK * len(ways[path][0]))
    considered = {path: read for path, (_, read) in ways.items()}
    return AccessPath(path, ways[path][0], ways[path][1], considered, log)


def narrow(store: OpenStore, boundaries: Boundaries, selection: Selection) -> Stretch:
    """Return the stretch of the log that contains all selected messages."""
    start, end = boundaries.start, boundaries.end
    low, high = interval(selection, "physicalOffset")
    if low > start:
        start = max(start, boundaries.at_or_before(min(low, end)))
    if high < end:
        end = min(end, boundaries.at_or_after(high + 1) or _segment_end(store, high, end))
    begin, last = interval(selection, "storeTimestamp")
    if begin > -MOST or last < MOST:
        first, behind = boundaries.stored_in(begin, last)
        start, end = max(start, first), min(end, behind)
    queues = named_queues(selection)
    if queues:
        start = max(start, _first_of(boundaries, selection, start))
    return start, max(start, end)


def _first_of(boundaries: Boundaries, selection: Selection, start: int) -> int:
    """Return the position of the first message of the named queues, according to their entries."""
    found: list[int] = []
    for queue in named_queues(selection) or ():
        first, end = offsets_in(selection, queue)
        if first < end:
            found.append(boundaries.at_offset(queue, first) or start)
    return min(found, default=start)


def _segment_end(store: OpenStore, position: int, end: int) -> int:
    segment = store.log.segment_at(max(position, store.log.min_offset))
    return segment.end if segment else end


def _consider(
    ways: dict[str, tuple[list[Stretch], int]],
    path: str,
    found: list[Stretch] | None,
    spent: int,
) -> None:
    if found is not None:
        ways[path] = found, size(found) + spent


def _asks_queues(
    boundaries: Boundaries,
    selection: Selection,
    asked: str,
    ways: dict[str, tuple[list[Stretch], int]],
) -> bool:
    """Return whether reading all queue files can pay off."""
    if asked == "queues":
        return True
    if asked != "auto" or not selection:
        return False
    cheapest = min(read for _, read in ways.values())
    if cheapest < WORTH_A_LOOK:
        return False
    count = queue_path.entries(boundaries)
    return 0 < count <= queue_path.MOST_ENTRIES and count * ENTRY_SIZE < cheapest // 2


_NEEDS = {
    "index": "an index needs option keys or a filter on uniqKey, and index files",
    "points": "points need a filter by which physicalOffset or msgId equals one or several values",
}


_HIDDEN_KEYS = (
    "the index lacks the keys of messages in topics of type BatchCQ: name other topics with "
    "option subscribe"
)


def _impossible(asked: str, *, has_hidden_keys: bool) -> str:
    needs = _HIDDEN_KEYS if asked == "index" and has_hidden_keys else _NEEDS[asked]
    return f"accessPath={asked} is not possible: {needs}"


def _amount(count: int) -> str:
    """Return a readable number of bytes."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError
