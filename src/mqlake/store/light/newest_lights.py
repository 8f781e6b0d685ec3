"""The newest entry of each light queue of a topic, in memory: no file is searched for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mqlake.kernels.rows.table import RowTable
from mqlake.store.light.light_columns import (
    NEWEST,
    NEWEST_ROW,
    LightBounds,
    Newest,
    NewestRows,
)
from mqlake.store.light.light_file import LightFile
from mqlake.store.light.light_kernel import LightKernel

_FEWEST = 16


class NewestLight(NamedTuple):
    """The newest entry of a light queue: a row of NEWEST."""

    name_hash: int
    physical_offset: int
    queue_offset: int
    number: int
    size: int


class NewestLights:
    """A hash table of the light queues of a topic: 43 to 85 bytes for each, if there are many.

    It follows from the files. A queue stays until the file with its newest entry is removed.
    """

    def __init__(self, kernel: LightKernel) -> None:
        self._kernel = kernel
        self._used = np.zeros(1, np.int64)
        self._rows: NewestRows = np.zeros(_FEWEST, NEWEST)
        self._table = RowTable(self._rows, NEWEST_ROW)

    def __len__(self) -> int:
        """Return how many light queues have an entry."""
        return int(self._used[0])

    @property
    def table(self) -> Newest:
        """The table as kernels know it, until it grows."""
        return Newest(self._rows, self._used)

    def find(self, name_hash: int) -> NewestLight | None:
        """Return a queue's newest entry; None without one."""
        found = NewestLight(*self._table.find(name_hash)[1])
        return found if found.number else None

    def accepts(self, message: np.void, bounds: LightBounds) -> bool:
        """Return whether `LightKernel.append` gives a message an entry if there is room."""
        if message["physical_offset"] < bounds.low:
            return False
        found = self.find(int(message["name_hash"]))
        if found is None or found.physical_offset < bounds.alive:
            return True
        return bool(message["queue_offset"] > found.queue_offset)

    def grow(self) -> None:
        """Make room for as many queues again."""
        self._move(2 * len(self._rows), 0)

    def forget_before(self, physical_offset: int) -> None:
        """Forget the queues whose newest entry is in a file that was removed.

        Args:
            physical_offset: base of the first file that is left.
        """
        self._move(len(self._rows), physical_offset)

    def collect(self, file: LightFile) -> None:
        """Note the entries of a file, which is newer than all before."""
        number = 1
        while (number := self._kernel.collect(file.buffer, number, self.table)) <= file.count:
            self.grow()

    def _move(self, size: int, low: int) -> None:
        source = self._rows
        self._rows, self._used = np.zeros(size, NEWEST), np.zeros(1, np.int64)
        self._table = RowTable(self._rows, NEWEST_ROW)
        self._kernel.move(source, self.table, low)
