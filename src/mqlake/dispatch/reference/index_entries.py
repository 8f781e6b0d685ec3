"""Insert into an index file, look keys up, link again (twin of `compiled.index_entries`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.formats import index_file
from mqlake.formats.index_file import ENTRY, SLOT, IndexEntry, entry_at, slot_at

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Ints, Longs

_LONG = 1 << 63


def insert_entries(
    buffer: Bytes,
    slots: int,
    number: int,
    begin: int,
    hashes: Ints,
    offsets: Longs,
    timestamps: Longs,
) -> int:
    data, used = buffer.data, 0
    for key_hash, offset, timestamp in zip(
        hashes.tolist(), offsets.tolist(), timestamps.tolist(), strict=True
    ):
        slot = slot_at(slots, key_hash)
        (previous,) = SLOT.unpack_from(data, slot)
        if not 0 < previous <= number:
            previous = 0
            used += 1
        SLOT.pack_into(data, slot, number)
        entry = IndexEntry(key_hash, offset, index_file.seconds_since(begin, timestamp), previous)
        ENTRY.pack_into(data, entry_at(slots, number), *entry)
        number += 1
    return used


def lookup_entries(
    buffer: Bytes, slots: int, limit: int, hashes: Ints, begin: int, end: int, most: int
) -> tuple[Ints, Longs]:
    import numpy as np

    data = buffer.data
    file_begin = index_file.decode_header(data).begin_timestamp
    rows, offsets = list[int](), list[int]()
    for row, key_hash in enumerate(hashes.tolist()):
        left = most
        number, bound = _head(data, slots, key_hash), limit
        while 0 < number < bound and left > 0:
            entry = index_file.decode_entry(data, slots, number)
            # A damaged file may begin so late that this exceeds Java's long.
            time = (file_begin + entry.seconds * 1000 + _LONG) % (2 * _LONG) - _LONG
            # RocketMQ: selectPhyOffset ends at a negative age, and at the first entry too old.
            if entry.seconds < 0:
                break
            if entry.key_hash == key_hash and begin <= time <= end:
                rows.append(row)
                offsets.append(entry.physical_offset)
                left -= 1
            if time < begin:
                break
            number, bound = entry.previous, number
    return np.array(rows, np.int32), np.array(offsets, np.int64)


def relink(buffer: Bytes, slots: int, count: int) -> tuple[int, int, int, int, int]:
    data, heads = buffer.data, dict[int, int]()
    wrong_links = list[int]()
    for number in range(1, count):
        entry = index_file.decode_entry(data, slots, number)
        slot = entry.key_hash % slots
        if entry.key_hash < 0 or entry.previous != heads.get(slot, 0):
            wrong_links.append(number)
        if entry.key_hash >= 0:
            heads[slot] = number
    wrong_slots = [slot for slot in range(slots) if _head(data, slots, slot) != heads.get(slot, 0)]
    return (
        len(heads),
        len(wrong_links),
        wrong_links[0] if wrong_links else 0,
        len(wrong_slots),
        wrong_slots[0] if wrong_slots else -1,
    )


def _head(data: memoryview, slots: int, key_hash: int) -> int:
    return SLOT.unpack_from(data, slot_at(slots, key_hash))[0] if key_hash >= 0 else 0
