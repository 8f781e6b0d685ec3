"""Find units in the files of one batch consume queue by queue offset.

The position of a unit does not follow from its queue offset. The files are read in windows, each of
which is sorted by itself, so that a damaged unit hides no other one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from mqlake.errors import StoreError, raise_passing
from mqlake.formats import batch_consume_queue
from mqlake.formats.batch_consume_queue import UNIT_SIZE, BatchQueueUnit
from mqlake.formats.file_name import check_topic_name, parse_segment_name, segment_name
from mqlake.jobs.queues.runs import QueueName
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.store.queues.queue_kind import BATCH

_WINDOW = 1024 * UNIT_SIZE
_MOST_LOADED = 4


class UnitPosition(NamedTuple):
    """The location of a unit: a file relative to the store, and the position in it, in bytes."""

    path: str
    position: int


class _Row(NamedTuple):
    """A written unit of a window, sorted by its base offset."""

    base_offset: int
    position: int
    unit: BatchQueueUnit


class BatchUnitFiles:
    """The units of one queue, without those of holes."""

    def __init__(self, store: Directory, queue: QueueName) -> None:
        self._store = store
        self._path = f"{BATCH.directory}/{check_topic_name(queue.topic)}/{queue.queue_id}"
        self._open: tuple[str, ReadableFile] | None = None
        self._loaded: OrderedDict[int, list[_Row]] = OrderedDict()
        names = [name for name in store.names(self._path) if parse_segment_name(name) is not None]
        windows = (self._windows_of(f"{self._path}/{name}") for name in names)
        self._windows = [window for each in windows for window in each]
        firsts = ((self._first(number), number) for number in range(len(self._windows)))
        self._by_first = sorted(each for each in firsts if each[0] >= 0)
        self._current = 0
        start = UnitPosition(f"{self._path}/{segment_name(0)}", 0)
        self._expected = self._windows[0] if self._windows else start

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def find(self, base_offset: int) -> tuple[UnitPosition, BatchQueueUnit | None]:
        """Return the unit of a base offset and its location; if it does not exist, the expected
        location.
        """
        for number in self._likely(base_offset):
            rows = self._rows(number)
            index = bisect_left(rows, base_offset, key=_base_offset)
            if index < len(rows) and rows[index].base_offset == base_offset:
                found, path = rows[index], self._windows[number].path
                self._current = number
                self._expected = UnitPosition(path, found.position + UNIT_SIZE)
                return UnitPosition(path, found.position), found.unit
        return self._expected, None

    def beyond(self, queue_offset: int) -> BatchQueueUnit | None:
        """Return the first unit whose batch ends after a queue offset."""
        number = self._window_of(queue_offset)
        for rows in map(self._rows, (number, number + 1)):
            index = bisect_right(rows, queue_offset, key=_base_offset)
            if index and rows[index - 1].unit.end_offset > queue_offset:
                return rows[index - 1].unit
            if index < len(rows):
                return rows[index].unit
        return None

    def read(self, place: UnitPosition) -> BatchQueueUnit | None:
        """Return the unit at a location."""
        return next((row.unit for row in self._read(place, UNIT_SIZE)), None)

    def written(self) -> Iterator[tuple[UnitPosition, BatchQueueUnit]]:
        """Yield all units with their locations, in the order of the files."""
        for window in self._windows:
            for row in self._read(window, _WINDOW):
                yield UnitPosition(window.path, row.position), row.unit

    def last(self) -> BatchQueueUnit | None:
        """Return the last written unit."""
        windows = (self._read(window, _WINDOW) for window in reversed(self._windows))
        return next((rows[-1].unit for rows in windows if rows), None)

    def _windows_of(self, path: str) -> list[UnitPosition]:
        """Return the windows of a file that contain data, not only a hole."""
        file = self._file(path)
        last, windows = -1, list[UnitPosition]()
        for start, end in file.data_ranges(0, file.size) if file else ():
            for number in range(max(last + 1, start // _WINDOW), -(-end // _WINDOW)):
                windows.append(UnitPosition(path, number * _WINDOW))
                last = number
        return windows

    def _first(self, number: int) -> int:
        """Return the base offset of a window's first unit, -1 for a window without units."""
        window = self._windows[number]
        rows = self._read(window, UNIT_SIZE) or self._read(window, _WINDOW)
        return rows[0].base_offset if rows else -1

    def _likely(self, base_offset: int) -> Iterator[int]:
        """Yield the windows that may contain a base offset, most likely ones first.

        If the first unit of a window is damaged, its other units are found from the window before.
        """
        yield from (self._current, self._current + 1)
        number = self._window_of(base_offset)
        yield from (number, number + 1)

    def _window_of(self, queue_offset: int) -> int:
        index = bisect_right(self._by_first, queue_offset, key=lambda each: each[0]) - 1
        return self._by_first[index][1] if index >= 0 else 0

    def _rows(self, number: int) -> list[_Row]:
        """Return the units of a window by base offset; a number past the last window has none."""
        rows = self._loaded.pop(number, None)
        if rows is None:
            is_window = number < len(self._windows)
            rows = sorted(self._read(self._windows[number], _WINDOW)) if is_window else []
        self._loaded[number] = rows
        if len(self._loaded) > _MOST_LOADED:
            self._loaded.popitem(last=False)
        return rows

    def _read(self, place: UnitPosition, length: int) -> list[_Row]:
        """Return the written units of a stretch of a file, in the file's order."""
        file = self._file(place.path)
        data = file.read(place.position, length) if file else b""
        whole = range(0, len(data) - UNIT_SIZE + 1, UNIT_SIZE)
        units = ((at, batch_consume_queue.decode(data, at)) for at in whole)
        return [
            _Row(unit.base_offset, place.position + at, unit)
            for at, unit in units
            if batch_consume_queue.is_written(unit)
        ]

    def _file(self, path: str) -> ReadableFile | None:
        if self._open is not None:
            if self._open[0] == path:
                return self._open[1]
            self.close()
        try:
            file = self._store.open(path)
        except StoreError as error:
            raise_passing(error)
            return None  # The file was deleted since it was listed.
        self._open = path, file
        return file


def _base_offset(row: _Row) -> int:
    return row.base_offset
