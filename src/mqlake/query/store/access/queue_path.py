"""Find messages through the consume queues (access path "queues").

The entries of all queues cover the log: each contains the position and the length of a record.
Records that certainly have another queue, offset or tag are skipped; all other bytes are read. So
nothing is missed that the queue files lack, such as a half message, a lost entry or queue, or the
end that is not yet dispatched. Entries that overlap are not trusted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.columns import QUEUE_ENTRY
from mqlake.errors import StoreError
from mqlake.formats import java_string
from mqlake.formats.consume_queue import ENTRY_SIZE, SCHEDULE_TOPIC
from mqlake.formats.record import MIN_SIZE, Fault
from mqlake.query.reading.conditions import Selection, offsets_in, texts
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.access.stretches import Stretch, join
from mqlake.query.store.place import OpenStore
from mqlake.store.log.scan import Queue
from mqlake.store.queues.queue_files import DIRECTORY, QueueFiles

MOST_ENTRIES = 50_000_000
"""With more entries, laying them out would take too much of the driver's memory: 17 bytes each,
twice.
"""

_LEAST_SKIPPED = 64 << 10
"""Bytes of unselected records that are read as well, because a new position costs more."""

_INT_BITS = 1 << 31


Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Tiles = tuple[Longs, Longs, Flags]
"""Start and end of records (physical offsets), and whether they may be selected."""


def entries(boundaries: Boundaries) -> int:
    """Return how many entries all queues have."""
    return sum(files.end - files.first for files in boundaries.queues.values())


def find(
    store: OpenStore, boundaries: Boundaries, selection: Selection, stretch: Stretch
) -> list[Stretch]:
    """Return the parts of a stretch that may have selected messages."""
    start, end = stretch
    tiles = _tiles(store, boundaries, selection, stretch)
    found: list[Stretch] = []
    for first, last_tile, last in _unwanted(tiles):
        found.append((start, first))
        if not _starts_record(store, tiles, last):
            last = last_tile  # The size in the last entry is wrong.
        start = last
    found.append((start, end))
    return join(found)


def _starts_record(store: OpenStore, tiles: Tiles, at: int) -> bool:
    """Return whether something starts at the end of a record according to its entry."""
    place = int(np.searchsorted(tiles[0], at))
    if place < len(tiles[0]) and tiles[0][place] == at:
        return True  # Another entry confirms it.
    return store.log.check(at, crc=False)[0] in (Fault.GOOD, Fault.BLANK, Fault.SHORT)


def _unwanted(tiles: Tiles) -> list[tuple[int, int, int]]:
    """Return long runs of records that are certainly not selected: start, last record, end."""
    starts, ends, wanted = tiles
    before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
    after = np.concatenate((starts[1:], [np.iinfo(np.int64).max]))
    sure = (starts >= before) & (ends <= after) & ~wanted
    starts, ends = starts[sure], ends[sure]
    opens = np.flatnonzero(np.concatenate(([True], starts[1:] != ends[:-1]))[: len(starts)])
    closes = np.concatenate((opens[1:] - 1, [len(starts) - 1]))[: len(opens)]
    runs = np.stack((starts[opens], starts[closes], ends[closes]), axis=1)
    return [(a, b, c) for a, b, c in runs[runs[:, 2] - runs[:, 0] >= _LEAST_SKIPPED].tolist()]


def _tiles(
    store: OpenStore, boundaries: Boundaries, selection: Selection, stretch: Stretch
) -> Tiles:
    """Return the records that entries name within a stretch, each once, by physical offset."""
    found: list[Tiles] = [_NONE]
    codes = _tag_codes(selection)
    for queue, files in boundaries.queues.items():
        for first, data in _entry_blocks(store, queue, files, stretch):
            found.append(_block(queue, first, data, selection, codes, stretch))
    starts, ends, wanted = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((ends, starts))
    starts, ends, wanted = starts[order], ends[order], wanted[order]
    # Messages that are in light queues, too, have an entry in each.
    is_new = np.concatenate(([True], (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])))
    firsts = np.flatnonzero(is_new[: len(starts)])
    any_wanted = np.logical_or.reduceat(wanted, firsts) if len(firsts) else wanted
    return starts[firsts], ends[firsts], any_wanted


_NONE: Tiles = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))


def _entry_blocks(
    store: OpenStore, queue: Queue, files: QueueFiles, stretch: Stretch
) -> list[tuple[int, npt.NDArray[np.void]]]:
    """Return (queue offset of the first entry, entries) of the files that reach into a stretch."""
    low = max(files.first, files.first_at_or_after(stretch[0]))
    high = min(files.end, files.first_at_or_after(stretch[1]))
    found: list[tuple[int, npt.NDArray[np.void]]] = []
    for file in files.files:
        first, last = max(low, file.first), min(high, file.end)
        if first < last:
            path = f"{DIRECTORY}/{queue[0]}/{queue[1]}/{file.name}"
            try:
                opened = store.directory.open(path)
            except StoreError:
                continue  # deleted since it was listed: its messages are read from the log
            at = (first - file.first) * ENTRY_SIZE
            data = opened.read(at, (last - first) * ENTRY_SIZE)
            opened.close()
            found.append((first, np.frombuffer(data, QUEUE_ENTRY, len(data) // ENTRY_SIZE)))
    return found


def _block(
    queue: Queue,
    first: int,
    data: npt.NDArray[np.void],
    selection: Selection,
    codes: Longs | None,
    stretch: Stretch,
) -> Tiles:
    starts = data["physical_offset"].astype(np.int64)
    sizes = data["size"].astype(np.int64)
    low, high = offsets_in(selection, queue)
    offsets = np.arange(first, first + len(data))
    wanted = (offsets >= low) & (offsets < high)
    if codes is not None and queue[0] != SCHEDULE_TOPIC and wanted.any():
        of_entry = data["tags_code"].astype(np.int64)
        # Codes beyond 32 bits are addresses in the consume queue extension.
        is_hash = (of_entry >= -_INT_BITS) & (of_entry < _INT_BITS)
        wanted &= ~is_hash | np.isin(of_entry, codes)
    inside = (starts >= stretch[0]) & (sizes >= MIN_SIZE) & (starts <= stretch[1] - sizes)
    return starts[inside], (starts + sizes)[inside], wanted[inside]


def _tag_codes(selection: Selection) -> Longs | None:
    tags = texts(selection, "tags")
    if tags is None:
        return None
    return np.array(sorted(java_string.hash_code(tag) for tag in tags), np.int64)
