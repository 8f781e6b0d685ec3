"""The next queue offsets of lite topics, in a hash table that the lane's kernel changes, too."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Longs
from mqlake.kernels.rows.table import RowTable, has_room

NEXT: Final = np.dtype(
    [
        ("name_hash", "u8"),  # of the queue's name: see `LightQueues.name_hash`
        ("following", "i8"),  # the next queue offset; FORGOTTEN if it must be searched
        ("number", "i8"),  # of the parent topic, from 1 on; 0 in a row that is free
    ],
    align=True,
)
_ROW: Final = Struct("=Qqq")
NextRows = npt.NDArray[np.void]
"""An array of NEXT: a hash table (`kernels.rows`)."""

FORGOTTEN: Final = -1
_FEWEST, _GROWTH = 1 << 6, 8
"""Rows of a new table, and how many times as many it gets when it grows. To move a row takes about
0.3 us: if tables grew in smaller steps, the last one would delay others for longer.
"""


class NextTables(NamedTuple):
    """What the lane's kernel knows of next offsets.

    Attributes:
        rows, used: those of the table that counts: see `NextOffsets`.
        earlier: the rows of the table before it.
    """

    rows: NextRows
    used: Longs
    earlier: NextRows


class NextOffsets:
    """The next offset of each of some queues: 32 to 256 bytes for each, if there are many.

    A queue is known by the hash of its name, which is also all that light queues know it by.

    Attributes:
        rows: the hash table; another array after `grow`.
        used: i8[1], how many rows are in use.
    """

    def __init__(self) -> None:
        self.rows: NextRows = np.zeros(0, NEXT)
        self.used: Longs = np.zeros(1, np.int64)
        self._take_over(np.zeros(0, NEXT), _FEWEST)

    def __len__(self) -> int:
        """Return how many rows are in use."""
        return int(self.used[0])

    @property
    def has_room(self) -> bool:
        """Whether another queue can be added."""
        return has_room(len(self), len(self.rows))

    def get(self, name_hash: int) -> int | None:
        """Return the next offset of a queue; None if the queue is not here."""
        _, following, topic = self._table.find(name_hash)[1]
        return following if topic and following != FORGOTTEN else None

    def put(self, name_hash: int, following: int, topic: int) -> None:
        """Set the next offset of a queue; if the queue is not here, there must be room.

        Args:
            topic: the number of the parent topic.
        """
        place, (_, _, known) = self._table.find(name_hash)
        self.used[0] += not known
        self._table.put(place, name_hash, following, topic)

    def grow(self) -> None:
        """Make room for more queues."""
        is_used = (self.rows["number"] != 0) & (self.rows["following"] != FORGOTTEN)
        self._take_over(self.rows[is_used], _GROWTH * len(self.rows))

    def forget(self, topic: int) -> None:
        """Forget the next offsets of a parent topic's queues."""
        self.rows["following"][self.rows["number"] == topic] = FORGOTTEN

    def _take_over(self, left: NextRows, size: int) -> None:
        """Enter rows, of different queues, into a new table of a size, in which they have room."""
        rows = self.rows = np.zeros(size, NEXT)
        self._table = RowTable(rows, _ROW)
        homes = (left["name_hash"] & np.uint64(size - 1)).astype(np.int64)
        order, numbers = np.argsort(homes), np.arange(len(left))
        # Each gets the row at its hash, or the first one after those of the rows before it.
        places = np.maximum.accumulate(homes[order] - numbers) + numbers
        end = int(np.searchsorted(places, size))
        rows[places[:end]] = left[order[:end]]
        self.used[0] = end
        for name_hash, following, topic in left[order[end:]].tolist():
            self.put(name_hash, following, topic)
