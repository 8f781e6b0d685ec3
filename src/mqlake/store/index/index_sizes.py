"""Find the number of slots and entries of an index file (docs/store-reader.md).

The file's size is one equation with two unknowns. Its entries decide between the solutions, because
each entry's hash names the slot from which a chain must lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from mqlake.formats import index_file
from mqlake.formats.index_file import (
    DEFAULT_MAX_ENTRIES,
    DEFAULT_SLOTS,
    ENTRY,
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT,
    SLOT_SIZE,
    IndexHeader,
)
from mqlake.storage.remote.remote_file import Load, all_is_here

_CHECKED_ENTRIES = 16
_CHECKED_ELSEWHERE = 2
_CHECKED_LINKS = 10_000
_CHECKED_PLACES = 64
"""If none of this many positions is right, the bytes were made that way."""
_CHUNK = 1 << 20
_DEFAULT_RATIO = DEFAULT_MAX_ENTRIES // DEFAULT_SLOTS


class Sizes(NamedTuple):
    """The number of hash slots and of entries of a file.

    `is_proven`: whether entries agree with it; otherwise it is the default or has its proportion.
    """

    slots: int
    max_entries: int
    is_proven: bool


def find_sizes(view: memoryview, header: IndexHeader, load: Load = all_is_here) -> Sizes | None:
    """Return the sizes of an index file, None if no pair fits.

    Args:
        load: called before bytes of the view are accessed.
    """
    usual = list(_usual(len(view)))
    if header.index_count <= 1:
        return usual[0] if usual else None
    for slots in chain((sizes.slots for sizes in usual), _candidates(view, header, load)):
        max_entries = _max_entries(len(view), slots)
        if max_entries and _agrees(view, load, slots, max_entries, header.index_count):
            return Sizes(slots, max_entries, is_proven=True)
    return usual[0] if usual else None


def _usual(size: int) -> Iterator[Sizes]:
    """Yield the default sizes if they fit, and otherwise those with the default proportion."""
    slots = (size - HEADER_SIZE) // (SLOT_SIZE + _DEFAULT_RATIO * ENTRY_SIZE)
    if slots > 0 and index_file.file_size(slots, _DEFAULT_RATIO * slots) == size:
        yield Sizes(slots, _DEFAULT_RATIO * slots, is_proven=False)


def _max_entries(size: int, slots: int) -> int | None:
    rest = size - HEADER_SIZE - slots * SLOT_SIZE
    return (
        rest // ENTRY_SIZE if slots > 0 and rest >= ENTRY_SIZE and rest % ENTRY_SIZE == 0 else None
    )


def _candidates(view: memoryview, header: IndexHeader, load: Load) -> Iterator[int]:
    """Yield numbers of slots that put the last entry, or the first, where its offset is found."""
    load(0, len(view))
    last = header.index_count - 1
    anchors = (
        (header.end_physical_offset.to_bytes(8, "big", signed=True), last),
        (header.begin_physical_offset.to_bytes(8, "big", signed=True) + bytes(8), 1),
    )
    for pattern, number in anchors:
        for at in islice(_places_from_end(view, pattern), _CHECKED_PLACES):
            first_entry = at - SLOT_SIZE - number * ENTRY_SIZE
            slots, rest = divmod(first_entry - HEADER_SIZE, SLOT_SIZE)
            if rest == 0:
                yield slots


def _places_from_end(view: memoryview, pattern: bytes) -> Iterator[int]:
    """Yield the positions of a pattern, last one first. A pattern of zeros has none."""
    if not pattern.strip(b"\0"):
        return
    for base in range((len(view) - 1) // _CHUNK * _CHUNK, -1, -_CHUNK):
        chunk = bytes(view[base : base + _CHUNK + len(pattern) - 1])
        at = chunk.rfind(pattern)
        while at >= 0:
            yield base + at
            at = chunk.rfind(pattern, 0, at + len(pattern) - 1)


def _agrees(view: memoryview, load: Load, slots: int, max_entries: int, index_count: int) -> bool:
    """Return whether the first entries, and the last, are on the chains of their hashes' slots."""
    above = min(index_count, max_entries)
    if above <= 1:
        return False
    # In a remote file, each entry costs a request.
    most = _CHECKED_ENTRIES if load is all_is_here else _CHECKED_ELSEWHERE
    numbers = {*range(1, min(above, most + 1)), above - 1}
    return all(_is_chained(view, load, slots, number, above) for number in sorted(numbers))


def _is_chained(view: memoryview, load: Load, slots: int, number: int, above: int) -> bool:
    load(index_file.entry_at(slots, number), index_file.entry_at(slots, number + 1))
    key_hash = ENTRY.unpack_from(view, index_file.entry_at(slots, number))[0]
    if key_hash < 0:
        return False
    slot = index_file.slot_at(slots, key_hash)
    load(slot, slot + SLOT_SIZE)
    (link,) = SLOT.unpack_from(view, slot)
    for _ in range(_CHECKED_LINKS):
        if not number <= link < above:
            return False
        if link == number:
            return True
        load(index_file.entry_at(slots, link), index_file.entry_at(slots, link + 1))
        above, link = link, ENTRY.unpack_from(view, index_file.entry_at(slots, link))[3]
    return True
