"""Hash tables of rows that kernels and Python share (twin of `kernels.rows.compiled`).

A table is an array of 2^k rows, whose dtype begins with `name_hash`, a hash of 64 bits, by which a
row is known. Its field `number` is 0 in a row that is free. A row is at its hash modulo the length,
or after it; a search ends at a free row.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

FULL: Final = 3, 4
"""The share of the rows that are in use at most: so every search ends soon."""


def has_room(used: int, rows: int) -> bool:
    """Return whether a row can be added to a table with so many rows, of which some are used."""
    return FULL[1] * (used + 1) <= FULL[0] * rows


class RowTable:
    """The rows of a table, one at a time.

    Args:
        rows: the array.
        form: packs a row as its dtype has it.
    """

    __slots__ = ("_form", "_mask", "_number", "_view")

    def __init__(self, rows: npt.NDArray[np.void], form: Struct) -> None:
        names = rows.dtype.names
        assert names is not None
        assert form.size == rows.dtype.itemsize
        self._form, self._number, self._mask = form, names.index("number"), len(rows) - 1
        self._view = rows.view(np.uint8).data

    def find(self, name_hash: int) -> tuple[int, tuple[int, ...]]:
        """Return the place and the values of a row, or of the free row that it would get.

        At least one row must be free.
        """
        place, number = name_hash & self._mask, self._number
        while True:
            row = self._form.unpack_from(self._view, place * self._form.size)
            if row[0] == name_hash or not row[number]:
                return place, row
            place = place + 1 & self._mask

    def put(self, place: int, *values: int) -> None:
        """Set the values of a row."""
        self._form.pack_into(self._view, place * self._form.size, *values)
