"""Check many batches, and the index entries that point to them, in a single call.

The result is only whether all of them are right. If not, `mqlake.kafka.verify.segment` checks the
same batches one by one, and reports what is wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.formats.kafka.batch import CONTROL, MAGIC_V2, MAX_INT, MAX_LONG
from mqlake.formats.kafka.compression import CODEC_MASK, Compression
from mqlake.kafka.batches.columns import BatchColumns
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex

Longs = npt.NDArray[np.int64]


class VerifiedRows:
    """Neighbouring batches, at least one, and values derived from them.

    Attributes:
        rows: BATCH[n].
        records: as counted in the batches, 1 for each batch of version 0 and 1.
        largest: the largest timestamp up to the last of them.
        control: BATCH[m], the batches with transaction markers.
    """

    def __init__(self, rows: BatchColumns, largest: int) -> None:
        self.rows = rows
        is_new = rows["magic"] >= MAGIC_V2
        self.records = int(np.where(is_new, rows["record_count"], 1).sum(dtype=np.int64))
        self._times = np.maximum(np.maximum.accumulate(rows["max_timestamp"]), largest)
        self.largest = int(self._times[-1])
        self.control = rows[is_new & (rows["attributes"] & CONTROL != 0)]

    @property
    def next_offset(self) -> int:
        """The offset after the last of them."""
        return int(self.rows["last_offset"][-1]) + 1

    def are_sound(self, first_allowed: int, base_offset: int) -> bool:
        """Return whether offsets increase, and counts and codecs are possible.

        No offset may be below `first_allowed`, or 2^31 above the segment's base.
        """
        rows = self.rows
        first, last, count = rows["base_offset"], rows["last_offset"], rows["record_count"]
        if int(first.min()) < first_allowed or int(last.max()) > base_offset + MAX_INT:
            return False
        # If offsets are wrong from here on, their differences at least do not overflow.
        is_new = rows["magic"] >= MAGIC_V2
        return bool(
            (last >= first).all()
            and (first[1:] > last[:-1]).all()
            and ((count >= 0) & (count <= last - first + 1) | ~is_new).all()
            and ((rows["attributes"] & CODEC_MASK) <= max(Compression)).all()
        )

    def good_offset_entries(self, entries: EntryColumns, start: int) -> int | None:
        """Return how many entries point up to the last batch, or None if one of them may be wrong.

        Those before `start` were checked already.
        """
        return _matched(entries, start, self.rows["position"], self.rows["last_offset"])

    def good_time_entries(self, entries: EntryColumns, start: int) -> int | None:
        """Return how many entries point up to the last batch, or None if one of them may be wrong.

        Those before `start` were checked already.
        """
        return _matched(entries, start, self.rows["last_offset"], self._times)


class EntryColumns(NamedTuple):
    """The entries of an index.

    Attributes:
        keys: where they point, i8[n]: positions, or offsets in a time index.
        values: what they contain about it, i8[n]: offsets, or timestamps.
        are_ordered: whether all increase as they must.
    """

    keys: Longs
    values: Longs
    are_ordered: bool


def offset_entries(index: OffsetIndex) -> EntryColumns:
    """Return the entries of an offset index."""
    found = np.frombuffer(index.raw(), [("offset", ">i4"), ("position", ">i4")])
    positions, offsets = found["position"].astype(np.int64), found["offset"].astype(np.int64)
    are_ordered = _go_up(positions) and _go_up(offsets) and _is_small(index.base_offset)
    return EntryColumns(positions, offsets + _narrow(index.base_offset), are_ordered)


def time_entries(index: TimeIndex) -> EntryColumns:
    """Return the entries of a time index."""
    found = np.frombuffer(index.raw(), [("timestamp", ">i8"), ("offset", ">i4")])
    offsets, timestamps = found["offset"].astype(np.int64), found["timestamp"].astype(np.int64)
    are_ordered = (
        _go_up(timestamps)
        and bool((offsets[1:] >= offsets[:-1]).all())
        and _is_small(index.base_offset)
    )
    return EntryColumns(offsets + _narrow(index.base_offset), timestamps, are_ordered)


def _matched(entries: EntryColumns, start: int, keys: Longs, values: Longs) -> int | None:
    """Compare the entries up to the last of ascending `keys` with the batches' own values."""
    if not entries.are_ordered:
        return None
    end = int(np.searchsorted(entries.keys, int(keys[-1]), "right"))
    wanted = entries.keys[start:end]
    at = np.searchsorted(keys, wanted)
    if (keys[at] == wanted).all() and (values[at] == entries.values[start:end]).all():
        return max(start, end)
    return None


def _go_up(numbers: Longs) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _is_small(base_offset: int) -> bool:
    """Return whether no offset of a segment exceeds 63 bits."""
    return base_offset <= MAX_LONG - 2 * MAX_INT


def _narrow(base_offset: int) -> int:
    return base_offset if _is_small(base_offset) else 0
