"""Append entries of light queues, and note the newest ones (twin of `compiled.entries`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mqlake.formats.light.light_queue_file import (
    ENTRY,
    SLOT,
    LightEntry,
    entry_at,
    slot_at,
)
from mqlake.kernels.rows.table import RowTable, has_room
from mqlake.store.light.light_columns import (
    NEWEST_ROW,
    LightAppended,
    LightBounds,
    LightBuffer,
    LightMessages,
    Newest,
    NewestRows,
)


def append(
    file: LightBuffer,
    newest: Newest,
    messages: LightMessages,
    first: int,
    bounds: LightBounds,
    accepted: npt.NDArray[np.bool_],
) -> LightAppended:
    refused, table = -1, RowTable(newest.rows, NEWEST_ROW)
    for row in range(first, len(messages)):
        key, physical_offset, queue_offset, *_, size, _ = messages[row].item()
        accepted[row] = False
        if physical_offset < bounds.low:
            continue
        place, (_, last_physical, last_offset, number, _) = table.find(key)
        if number and last_physical >= bounds.alive and queue_offset <= last_offset:
            refused = row if refused < 0 else refused
            continue
        if not number and not has_room(int(newest.used[0]), len(newest.rows)):
            return LightAppended(row, file.following, file.queues, refused)
        accepted[row] = True
        if file.following > file.capacity:
            continue
        previous = number if number and last_physical >= file.base else 0
        added = LightEntry(key, physical_offset, queue_offset, size, 0, previous, 0)
        file = _put(file, added)
        newest.used[0] += not number
        table.put(place, key, physical_offset, queue_offset, file.following - 1, size)
    return LightAppended(len(messages), file.following, file.queues, refused)


def _put(file: LightBuffer, entry: LightEntry) -> LightBuffer:
    """Write an entry whose links in the slot and by jumps are open; return the file."""
    data, number = file.data.data, file.following
    slot = slot_at(file.slots, entry.name_hash)
    (slot_previous,) = SLOT.unpack_from(data, slot)
    jump = _jump(file, entry.previous) if entry.previous else number
    linked = entry._replace(slot_previous=slot_previous, jump=jump)
    ENTRY.pack_into(data, entry_at(file.slots, number), *linked)
    SLOT.pack_into(data, slot, number)
    return file._replace(following=number + 1, queues=file.queues + (not entry.previous))


def _jump(file: LightBuffer, previous: int) -> int:
    """Return the second way back of an entry after `previous`: searches take few steps.

    Two jumps of equal length become one of twice the length.
    """
    last = _entry(file, previous)
    middle = _entry(file, _bounded(last.jump, previous))
    first = _entry(file, jump := _bounded(middle.jump, previous))
    near, far = last.queue_offset - middle.queue_offset, middle.queue_offset
    return jump if near == far - first.queue_offset else previous


def _bounded(jump: int, previous: int) -> int:
    """Return the number to which a link leads, whatever the bytes are."""
    return jump if 0 < jump < previous else previous


def _entry(file: LightBuffer, number: int) -> LightEntry:
    return LightEntry(*ENTRY.unpack_from(file.data.data, entry_at(file.slots, number)))


def collect(file: LightBuffer, number: int, newest: Newest) -> int:
    while number < file.following:
        entry = _entry(file, number)
        if not _note(newest, (*entry[:3], number, entry.size)):
            break
        number += 1
    return number


def move(source: NewestRows, newest: Newest, low: int) -> None:
    for row in source[source["number"] != 0].tolist():
        if row[1] >= low:
            _note(newest, row)


def _note(newest: Newest, row: tuple[int, ...]) -> bool:
    """Put a row into a table; return whether there was room."""
    table = RowTable(newest.rows, NEWEST_ROW)
    place, found = table.find(row[0])
    is_new = not found[3]
    if is_new and not has_room(int(newest.used[0]), len(newest.rows)):
        return False
    newest.used[0] += is_new
    table.put(place, *row)
    return True
