from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqlake.kernels import crc32 as module
from mqlake.kernels.jit import kernel

IMPLEMENTATIONS = {"chosen": module.crc32, "tables": module.crc32_tables}


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def crc32(request: pytest.FixtureRequest) -> Callable[[Any, int, int], int]:
    implementation = IMPLEMENTATIONS[request.param]

    @kernel
    def call(buffer: Any, start: int, length: int) -> int:
        return implementation(buffer, start, length)

    return call


def test_equals_zlib_for_each_length_and_alignment(crc32: Callable[[Any, int, int], int]) -> None:
    data = np.frombuffer(random.Random(1).randbytes(640), np.uint8)
    for length in range(601):
        for start in range(16):
            expected = zlib.crc32(data[start : start + length])
            assert expected == crc32(data, start, length), (start, length)


@pytest.mark.parametrize("byte", [0, 0xFF])
def test_equals_zlib_for_uniform_bodies(crc32: Callable[[Any, int, int], int], byte: int) -> None:
    data = np.full(5000, byte, np.uint8)
    for length in range(0, 5000, 83):
        assert zlib.crc32(data[:length]) == crc32(data, 0, length)


def test_equals_zlib_for_long_bodies(crc32: Callable[[Any, int, int], int]) -> None:
    chance = random.Random(2)
    data = np.frombuffer(chance.randbytes(1 << 20), np.uint8)
    for _ in range(50):
        start = chance.randrange(len(data))
        length = chance.randrange(len(data) - start)
        assert zlib.crc32(data[start : start + length]) == crc32(data, start, length)


def test_reads_nothing_outside(crc32: Callable[[Any, int, int], int]) -> None:
    """The bounds-checked build would raise."""
    for length in range(200):
        data = np.frombuffer(random.Random(length).randbytes(length), np.uint8)
        assert zlib.crc32(data) == crc32(data, 0, length)
