"""Derive what a few records at the end of a log add to queues and index, in one call.

This does for a tick of a live store what `mqlake.dispatch.scan` and `queue_entries` do for windows
of the log. If few records arrive in a tick, calls and small arrays take longer than the work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mqlake.dispatch.batch import Bytes, Ints, Longs
from mqlake.dispatch.columns import KEY, RECORD, KeyColumns, RecordColumns
from mqlake.dispatch.kernel import is_compiled
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.window import SLACK
from mqlake.formats.consume_queue import ENTRY_SIZE

MOST_RECORDS = 128
MOST_BYTES = 64 << 10
_MOST_KEYS = MOST_BYTES // 2 + 1
_LARGEST_FILE = 1 << 31


class Digest(NamedTuple):
    """What some records add.

    Attributes:
        rows: how many records they are.
        runs: entries of a queue with consecutive queue offsets: (number of the queue, first entry,
            entry after the last, first queue offset), by queue, in the log's order.
        keys: how many index entries there are.
        ends_with_key: whether the last record has one.
        last, last_queued: (physical offset, store timestamp in ms) of the last record, and of the
            last one that has a queue.
    """

    rows: int
    runs: list[list[int]]
    keys: int
    ends_with_key: bool
    last: tuple[int, int]
    last_queued: tuple[int, int]


class Digester:
    """Digest records of one log.

    Attributes:
        entries: u8[n], the queue entries that runs are ranges of.
        hashes, offsets, times: i4[n], i8[n], i8[n], the index entries: of keys, physical offsets
            and store timestamps.
        records, keys: RECORD[n], KEY[n], the records and their keys, as of a scan.

    All are overwritten by the next call.
    """

    def __init__(
        self,
        reserve_slots: Callable[[QueueTable, int], None],
        kernel: Callable[..., Any],
        delay_levels: Longs,
        *,
        index_tags: bool,
    ) -> None:
        self._reserve_slots, self.kernel = reserve_slots, kernel
        self._delay_levels, self._index_tags = delay_levels, index_tags
        self.records: RecordColumns = np.empty(MOST_RECORDS, RECORD)
        self.entries: Bytes = np.empty(MOST_RECORDS * ENTRY_SIZE, np.uint8)
        self._runs: Longs = np.empty((MOST_RECORDS, 4), np.int64)
        self.keys: KeyColumns = np.empty(_MOST_KEYS, KEY)
        self.hashes: Ints = np.empty(_MOST_KEYS, np.int32)
        self.offsets: Longs = np.empty(_MOST_KEYS, np.int64)
        self.times: Longs = np.empty(_MOST_KEYS, np.int64)

    def digest(
        self, file: Bytes, base: int, start: int, end: int, table: QueueTable
    ) -> Digest | None:
        """Digest the records from one physical offset to another.

        Args:
            file: a file of the log, which begins at physical offset `base`.

        Returns:
            None if they are not within it, or too many, or not all good: then `table` at most knows
            more queues.
        """
        at, stop, size = start - base, end - base, len(file)
        if at < 0 or not 0 < stop - at <= MOST_BYTES:
            return None
        if stop + SLACK > size or size > _LARGEST_FILE:
            return None
        table.reserve(MOST_RECORDS, stop - at)
        self._reserve_slots(table, len(table) + MOST_RECORDS)
        rows, runs, keys, ends_with_key, *last = self.kernel(
            *self.arguments(file, at, stop, base, table)
        )
        if not rows:
            return None
        return Digest(
            rows,
            self._runs[:runs].tolist(),
            keys,
            ends_with_key,
            (last[0], last[1]),
            (last[2], last[3]),
        )

    def arguments(
        self, file: Bytes, at: int, end: int, base: int, table: QueueTable
    ) -> tuple[Any, ...]:
        """Return the kernel's arguments."""
        return (
            file,
            at,
            end,
            base,
            self.records,
            self.keys,
            table.slots,
            table.queues,
            table.arena,
            table.fill,
            table.seed,
            self._delay_levels,
            self._index_tags,
            self.entries,
            self._runs,
            self.hashes,
            self.offsets,
            self.times,
        )


def load_digester(delay_levels: Longs, *, index_tags: bool) -> Digester | None:
    """Return a digester; None without compiled kernels.

    Args:
        delay_levels: i8[n], milliseconds of each delay level; writable and contiguous.
        index_tags: whether tags are also index keys.
    """
    if not is_compiled():
        return None
    from mqlake.dispatch.compiled import calls

    return Digester(calls.reserve_slots, _compiled(), delay_levels, index_tags=index_tags)


@cache
def _compiled() -> Callable[..., Any]:
    """Return the compiled function: to find the types of its arguments takes milliseconds."""
    from mqlake.dispatch.compiled.calls import reserve_slots
    from mqlake.dispatch.compiled.digest import digest
    from mqlake.kernels.entry_point import entry_point_for

    model = Digester(reserve_slots, digest, np.zeros(1, np.int64), index_tags=False)
    nothing = np.zeros(1, np.uint8)
    return entry_point_for(digest, *model.arguments(nothing, 0, 0, 0, QueueTable()))
