from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import google_crc32c
import numpy as np
import pytest

from mqlake.kernels import crc32c as module
from mqlake.kernels.jit import kernel

IMPLEMENTATIONS = {"chosen": module.crc32c, "tables": module.crc32c_tables}

Crc32c = Callable[[Any, int, int], int]


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def crc32c(request: pytest.FixtureRequest) -> Crc32c:
    implementation = IMPLEMENTATIONS[request.param]

    @kernel
    def call(buffer: Any, start: int, length: int) -> int:
        return implementation(buffer, start, length)

    return call


def random_bytes(seed: int, length: int) -> Any:
    return np.frombuffer(random.Random(seed).randbytes(length), np.uint8)


def expected(data: Any) -> int:
    return google_crc32c.value(data.tobytes())


def test_the_check_value(crc32c: Crc32c) -> None:
    """The value that catalogues of CRCs give for these nine digits."""
    assert crc32c(np.frombuffer(b"123456789", np.uint8), 0, 9) == 0xE3069283


def test_equals_the_library_for_each_length_and_alignment(crc32c: Crc32c) -> None:
    data = random_bytes(1, 320)
    for length in range(300):
        for start in range(16):
            assert crc32c(data, start, length) == expected(data[start : start + length])


def test_equals_the_library_where_stretches_are_combined(crc32c: Crc32c) -> None:
    data = random_bytes(2, 5000)
    for length in (*range(1520, 1560), *range(3060, 3090), 4608, 5000):
        assert crc32c(data, 0, length) == expected(data[:length]), length


@pytest.mark.parametrize("byte", [0, 0xFF])
def test_equals_the_library_for_uniform_bytes(crc32c: Crc32c, byte: int) -> None:
    data = np.full(5000, byte, np.uint8)
    for length in range(0, 5000, 83):
        assert crc32c(data, 0, length) == expected(data[:length])


def test_reads_nothing_outside(crc32c: Crc32c) -> None:
    """The bounds-checked build would raise."""
    for length in (*range(100), 1536, 1537):
        data = random_bytes(length, length)
        assert crc32c(data, 0, length) == expected(data)
