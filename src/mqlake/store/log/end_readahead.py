"""Whether the system reads the last file of the log ahead around the log's end.

A page of a mapping that is not in memory is filled with zeros if nothing was written to it yet, and
so are the pages after it, which are many (`read_ahead_kb` of the disk). For records that are
written through the mapping, this is the cheapest way to get their pages. Records that are written
by calls need no such page, and each is a loss: the call overwrites it. The dispatch causes that,
because it reads these records through the mapping.
"""

from __future__ import annotations

from mqlake.storage.readahead import set_readahead

_LAG = 16 << 20
"""Bytes before the end that the dispatch may still have to read."""

_STEP = 1 << 20
"""Readahead is switched for whole steps of a file: its pages have up to 64 KiB."""


class EndReadahead:
    """Chooses from time to time how the mapping of the last file is read ahead. For one thread."""

    def __init__(self) -> None:
        self._mapped = memoryview(b"")
        self._chosen_at = self._by_call = 0
        self._off_from: int | None = None

    def begin(self, mapped: memoryview, position: int) -> None:
        """Begin another file, at a position in it; whatever was chosen last applies to it, too.

        The last file is read ahead as usual from now on.
        """
        is_off = self._off_from is not None
        self._switch_on()
        self._mapped = mapped
        self._chosen_at, self._by_call = position, 0
        if is_off:
            self._switch_off(position)

    def note_call(self, size: int) -> None:
        """Note that so many bytes were written by a call, and not through the mapping."""
        self._by_call += size

    def choose(self, position: int) -> None:
        """Choose what suits how the bytes before a position were written since the last choice."""
        if position == self._chosen_at:
            return
        is_by_call = 2 * self._by_call > position - self._chosen_at
        self._chosen_at, self._by_call = position, 0
        if is_by_call:
            self._switch_off(position)
        else:
            self._switch_on()

    def _switch_off(self, position: int) -> None:
        """Switch readahead off for the end of the file. Reads of what is before it need it."""
        start = max(0, position - _LAG) // _STEP * _STEP
        if self._off_from is None:
            set_readahead(self._mapped, start, len(self._mapped), on=False)
        else:
            set_readahead(self._mapped, self._off_from, start, on=True)
        self._off_from = start

    def _switch_on(self) -> None:
        if self._off_from is not None:
            set_readahead(self._mapped, self._off_from, len(self._mapped), on=True)
            self._off_from = None
