"""The index entries of many batches at once, as long as nothing about them is unusual.

Twin: `mqlake.kafka.index.builder.IndexBuilder.add`, to which everything unusual is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.formats.kafka.batch import MAX_INT
from mqlake.formats.kafka.offset_index import OffsetPosition
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.batches.columns import BatchColumns
from mqlake.kafka.compiled.index_entries import choose
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex

Longs = npt.NDArray[np.int64]

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


class IndexRows(NamedTuple):
    """Entries to be added, and how far the rule has come.

    Attributes:
        offsets, positions: of the offset index: i8[n].
        timestamps, timestamp_offsets: what was the largest at each of them: i8[n].
        since_entry: bytes since the last entry.
        largest: the largest timestamp so far.
    """

    offsets: Longs
    positions: Longs
    timestamps: Longs
    timestamp_offsets: Longs
    since_entry: int
    largest: TimestampOffset

    def append(self, offset_index: OffsetIndex, time_index: TimeIndex) -> bool:
        """Add the entries; return False, and do nothing, if one of them may not be allowed."""
        if not len(self.offsets):
            return True
        base = offset_index.base_offset
        later = self._later(time_index)
        if later is None or not self._fit(offset_index):
            return False
        if not (offset_index.has_room(len(self.offsets)) and time_index.has_room(len(later) + 1)):
            return False
        entries = np.empty(len(self.offsets), _OFFSET_ENTRY)
        entries["offset"], entries["position"] = self.offsets - base, self.positions
        last = OffsetPosition(int(self.offsets[-1]), int(self.positions[-1]))
        offset_index.extend(entries.tobytes(), last)
        if len(later):
            times = np.empty(len(later), _TIME_ENTRY)
            times["timestamp"] = self.timestamps[later]
            times["offset"] = self.timestamp_offsets[later] - base
            newest = later[-1]
            last_time = TimestampOffset(
                int(self.timestamps[newest]), int(self.timestamp_offsets[newest])
            )
            time_index.extend(times.tobytes(), last_time)
        return True

    def _fit(self, index: OffsetIndex) -> bool:
        base = index.base_offset
        first_allowed = max(base, index.last_offset + 1 if index.entries else base)
        return bool(
            self.offsets[0] >= first_allowed
            and self.offsets[-1] <= base + MAX_INT
            and self.positions[-1] <= MAX_INT
            and (self.offsets[1:] > self.offsets[:-1]).all()
        )

    def _later(self, index: TimeIndex) -> Longs | None:
        """Return which of the entries go into the time index; None if one is not allowed."""
        last = index.last_entry
        times = np.concatenate(([last.timestamp], self.timestamps))
        later = np.flatnonzero(times[1:] > times[:-1])
        before = last.offset if index.entries else index.base_offset
        offsets = self.timestamp_offsets
        is_allowed = (
            times[1] >= last.timestamp
            and (not index.entries or offsets[0] >= before)
            and (offsets[1:] >= offsets[:-1]).all()
            and (offsets[later] >= index.base_offset).all()
            and (offsets[later] <= index.base_offset + MAX_INT).all()
        )
        return later if is_allowed else None


def index_rows(
    rows: BatchColumns, interval: int, since_entry: int, largest: TimestampOffset
) -> IndexRows:
    """Choose the batches that get entries: see `IndexBuilder`."""
    chosen, timestamps, offsets = (np.empty(len(rows), np.int64) for _ in range(3))
    count, since_entry, timestamp, offset = choose(
        rows, interval, since_entry, *largest, chosen, timestamps, offsets
    )
    picked = rows[chosen[:count]]
    return IndexRows(
        picked["last_offset"],
        picked["position"],
        timestamps[:count],
        offsets[:count],
        int(since_entry),
        TimestampOffset(int(timestamp), int(offset)),
    )
