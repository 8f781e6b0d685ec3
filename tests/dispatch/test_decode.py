"""Records decoded at once: the same as each decoded by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.dispatch import reference
from mqlake.dispatch.compiled import calls
from mqlake.dispatch.decode import decode
from mqlake.dispatch.kernel import Kernel
from mqlake.formats import record
from mqlake.formats.record import Record
from tests.dispatch.logs import log, random_log


def one_by_one(data: bytes) -> list[Record]:
    found: list[Record] = []
    at = 0
    while at < len(data):
        found.append(record.decode(data, at))
        at += found[-1].size
    return found


def at_once(data: bytes, kernel: Kernel, records: list[Record]) -> list[Record]:
    at = np.array([one.physical_offset for one in records], np.int64)
    sizes = np.array([one.size for one in records], np.int64)
    return decode(np.frombuffer(data, np.uint8), at, sizes, kernel)


@pytest.mark.parametrize("seed", range(10))
def test_decoded_records_equal_those_of_the_format(seed: int, kernel: Kernel) -> None:
    data = random_log(seed, 50)
    expected = one_by_one(data)
    random.Random(seed).shuffle(expected)
    assert at_once(data, kernel, expected) == expected
    assert at_once(data, kernel, []) == []


@pytest.mark.parametrize("seed", range(40))
def test_random_bytes_as_properties(seed: int, kernel: Kernel) -> None:
    chance = random.Random(seed)
    alphabet = b"\x01\x02TAGSKEYab " if seed % 2 else b"\x01\x02TAGSKEYab \xff\xe0\xed\xa0\x80"
    fields = [
        {"properties": bytes(chance.choices(alphabet, k=chance.randrange(150)))} for _ in range(9)
    ]
    expected = one_by_one(data := log(fields))
    found = at_once(data, kernel, expected)
    assert found == expected
    for one, other in zip(found, expected, strict=True):
        assert list(one.properties) == list(other.properties)


@pytest.mark.parametrize("seed", range(60))
def test_twins_agree_on_what_is_no_record(seed: int) -> None:
    chance = random.Random(seed)
    data = np.frombuffer(random_log(seed, 1), np.uint8).copy()
    for _ in range(3):
        data[chance.randrange(len(data))] = chance.randrange(256)
    data.flags.writeable = False  # the kernel is compiled for such arrays
    at, sizes = np.zeros(1, np.int64), np.array([len(data)], np.int64)
    found = [twin.packed(data, at, sizes) for twin in (calls, reference)]
    assert bool(len(found[0])) == bool(len(found[1]))
    if len(found[0]):
        assert decode(data, at, sizes, calls) == decode(data, at, sizes, reference)
