"""Windows over a segment file: the bytes that a kernel works on, in reused buffers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from mqlake.dispatch.batch import Window
from mqlake.dispatch.columns import KEY, RECORD
from mqlake.dispatch.record_view import record_view
from mqlake.formats import record
from mqlake.formats.record import Fault
from mqlake.storage.protocol import ReadableFile

DEFAULT_WINDOW = 8 << 20
"""Bytes of one read. Small enough to be in the CPU's cache when the kernels reach them; large
enough that Python's work for each window and queue hardly counts."""

SLACK = 64
"""Bytes after the window that kernels may load (and ignore), because they load whole blocks."""

_KEPT_BUFFERS = 8


class Buffers:
    """The arrays of one running scan. Pages that are never accessed take no memory."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.data = np.empty(window + SLACK, np.uint8)
        self.data[window:] = 0
        self.records = np.empty(window // record.MIN_SIZE + 1, RECORD)
        # A key takes at least one byte of KEYS, and a separator.
        self.keys = np.empty(window // 2 + 1, KEY)

    def grow(self, size: int) -> None:
        """Make room for a record of `size` bytes."""
        if size > self.window:
            self.__init__(size)


_free: dict[int, list[Buffers]] = {}


@contextmanager
def borrowed(window: int) -> Generator[Buffers]:
    """Lend buffers to a scan. Fresh memory costs a page fault per 4 KiB; used memory costs none."""
    window = max(window, record.MIN_SIZE)
    free = _free.setdefault(window, [])
    try:
        buffers = free.pop()
    except IndexError:
        buffers = Buffers(window)
    try:
        yield buffers
    finally:
        if buffers.window == window and len(free) < _KEPT_BUFFERS:
            free.append(buffers)


class WindowReader:
    """Moves a window forwards over a segment file."""

    def __init__(self, file: ReadableFile, base: int, data_end: int, buffers: Buffers) -> None:
        self._file, self._base, self._buffers = file, base, buffers
        self._data_end = data_end
        self._start = self._end = base

    def at(self, position: int) -> Window:
        """Return a window with the bytes at a physical offset: at least a record's frame."""
        if not self.has(position):
            self._read(position)
        return Window(
            self._buffers.data,
            self._start,
            self._end - self._start,
            self._data_end - self._start,
            self._base + self._file.size - self._start,
        )

    def has(self, position: int) -> bool:
        """Return whether the window has a record's frame there, or all bytes to the data's end."""
        if not self._start <= position <= self._end:
            return False
        return self._end - position >= record.FRAME_SIZE or self._end == self._data_end

    def more(self, position: int) -> Fault:
        """Move the whole record at a physical offset into the window; return what is there.

        The window grows only for a record whose lengths agree.
        """
        if position == self._start:
            fault, layout = record.check(
                record_view(self._file, position - self._base, self._data_end - self._base),
                position - self._base,
                self._data_end - self._base,
                position,
                crc=False,
            )
            if fault is not Fault.GOOD or layout is None:
                return fault
            self._buffers.grow(layout.size)
        self._read(position)
        return Fault.GOOD

    def _read(self, position: int) -> None:
        length = max(0, min(self._buffers.window, self._data_end - position))
        target = self._buffers.data.data[:length]
        got = self._file.read_into(target, position - self._base)
        self._start, self._end = position, position + got
        if got < length:
            # The file was cut after it was opened.
            self._data_end = self._end
