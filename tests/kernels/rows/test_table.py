"""Hash tables of rows: kernels and Python find the same."""

from __future__ import annotations

import random
from struct import Struct
from typing import Any

import numpy as np
import pytest

from mqlake.kernels.jit import kernel
from mqlake.kernels.rows import compiled
from mqlake.kernels.rows.table import FULL, RowTable, has_room

LAST = (1 << 64) - 1
WIDE = np.dtype([("name_hash", "u8"), ("value", "i8"), ("number", "i8")], align=True)
NARROW = np.dtype([("name_hash", "u8"), ("number", "i4"), ("value", "i4")], align=True)
FORMS = [(WIDE, Struct("=Qqq"), 2), (NARROW, Struct("=Qii"), 1)]


@kernel
def find(rows: Any, name_hash: Any) -> Any:
    return compiled.place_of(rows, name_hash)


@kernel
def may_add(used: Any, rows: Any) -> Any:
    return compiled.has_room(used, rows)


@pytest.mark.parametrize(("dtype", "form", "number_at"), FORMS, ids=["wide", "narrow"])
def test_kernels_and_python_find_the_same_rows(
    dtype: np.dtype[np.void], form: Struct, number_at: int
) -> None:
    dice, rows = random.Random(1), np.zeros(64, dtype)
    table, expected = RowTable(rows, form), dict[int, int]()
    # Of few different ends: rows stand close together, and continue at the beginning.
    known = [dice.choice((0, 1, LAST)) ^ (number << 32) for number in range(47)]
    for name_hash in [*known, *known]:
        place, row = table.find(name_hash)
        assert place == find(rows, np.uint64(name_hash))
        assert row[number_at] == expected.get(name_hash, 0)
        expected[name_hash] = number = 1 + dice.randrange(1000)
        table.put(place, *((name_hash, 7, number) if number_at == 2 else (name_hash, number, 7)))
        assert rows[place].item() == table.find(name_hash)[1]
        assert rows[place]["number"] == number
    assert np.count_nonzero(rows["number"]) == 47
    for name_hash in (5 << 40, 1 << 63):
        place, row = table.find(name_hash)
        assert place == find(rows, np.uint64(name_hash))
        assert row[number_at] == 0


def test_a_quarter_of_the_rows_stays_free() -> None:
    for size in (16, 64, 1024):
        for used in range(size):
            assert has_room(used, size) == bool(may_add(used, size))
            assert has_room(used, size) == (used + 1 <= size * FULL[0] / FULL[1])
