"""Kernels load their arguments from an address."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

from mqlake.dispatch.kernel import is_compiled
from mqlake.kernels.entry_point import BYTES, INT, LONG_ROWS, LONGS
from mqlake.kernels.jit import brief_kernel
from mqlake.kernels.kept_arguments import KeptArguments, kept_arguments, tuple_kind

pytestmark = pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")


class Pair(NamedTuple):
    """Two arrays."""

    numbers: Any
    data: Any


KIND = tuple_kind(BYTES, tuple_kind(LONGS, BYTES, of=Pair), INT, LONG_ROWS)
_kept = kept_arguments(KIND)


@brief_kernel
def add(address):  # type: ignore[no-untyped-def]
    data, pair, number, rows = _kept(address)
    pair.numbers[0] += number
    rows[1, 2] = len(data) + len(pair.data)
    data[1] = pair.data[0]
    return pair.numbers[0]


def values(number: int) -> tuple[Any, ...]:
    pair = Pair(np.array([number], np.int64), np.array([9, 9, 9], np.uint8))
    return np.zeros(5, np.uint8), pair, number, np.zeros((2, 3), np.int64)


def test_a_kernel_reads_and_writes_what_is_kept() -> None:
    kept = KeptArguments(KIND)
    for number in (1, 10):
        data, pair, _, rows = arguments = values(number)
        kept.keep(arguments)
        assert [add(kept.address) for _ in range(2)] == [2 * number, 3 * number]
        assert (data[1], rows[1, 2], pair.numbers[0]) == (9, 8, 3 * number)


def test_calls_count_no_references() -> None:
    kept, arguments = KeptArguments(KIND), values(1)
    kept.keep(arguments)
    before = [sys.getrefcount(each) for each in arguments]
    for _ in range(100):
        add(kept.address)
    assert [sys.getrefcount(each) for each in arguments] == before


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.zeros(5, np.int8)),
        (0, np.zeros(10, np.uint8)[::2]),
        (0, np.frombuffer(b"read-only", np.uint8)),
        (2, 1.5),
        (3, np.zeros(6, np.int64)),
    ],
    ids=["numbers", "gaps", "read-only", "real", "dimensions"],
)
def test_arguments_of_other_types_are_refused(place: int, value: object) -> None:
    kept, arguments = KeptArguments(KIND), values(1)
    kept.keep(arguments)
    others = [*arguments[:place], value, *arguments[place + 1 :]]
    with pytest.raises(TypeError, match="arguments of another type"):
        kept.keep(tuple(others))
    assert add(kept.address) == 2
