"""Find rows in hash tables that Python changes, too: see `kernels.rows`."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.kernels.jit import inlined
from mqlake.kernels.rows.table import FULL

_USED, _OF = FULL


@inlined
def place_of(rows, name_hash):
    """Return the place of a row, or of the free row that it would get."""
    mask = np.uint64(len(rows) - 1)
    place = name_hash & mask
    while rows[np.int64(place)].number != 0 and rows[np.int64(place)].name_hash != name_hash:
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@inlined
def has_room(used, rows):
    """Return whether a row can be added to a table with so many rows, of which some are used."""
    return _OF * (used + 1) <= _USED * rows
