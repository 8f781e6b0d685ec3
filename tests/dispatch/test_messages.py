"""A few records as one Arrow batch: the same columns as those of a scanned batch."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from mqlake.dispatch import arrow, messages
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.storage.memory import MemoryFile
from tests.dispatch.logs import log, random_log


def both(data: bytes, kernel: Kernel) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the batch of a scan, and the one of its records at their positions."""
    file = MemoryFile(data)
    scan = SegmentScan(file, 0, 0, len(data), exact=True, want=Want.EXPORT, kernel=kernel)
    (batch,) = scan
    found = messages.to_arrow(
        np.frombuffer(data, np.uint8),
        np.ascontiguousarray(batch.records["physical_offset"]),
        batch.records["size"].astype(np.int64),
        kernel,
    )
    found.validate(full=True)
    return arrow.to_arrow(batch, kernel=kernel), found


def read_only(data: bytearray) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return bytes as records are read: a kernel is compiled again for bytes that it may change."""
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)


@pytest.mark.parametrize("seed", range(10))
def test_columns_are_those_of_a_scan(seed: int, kernel: Kernel) -> None:
    expected, found = both(random_log(seed, 1 + 7 * seed), kernel)
    assert found.equals(expected)


@pytest.mark.parametrize(
    "properties",
    [
        b"\xed\xa0\x80\x01a\x02TAGS\x01\xff\x02KEYS\x01a \xf0\x90 b",
        b"a\x01b\x02a\x01c\x02b\x01d\x02a\x01e",
        b"a\x01\x01b\x02\x01c\x02d\x01\x02e",
        b"",
        b"\x02" * 100,
        b"".join(b"%d\x01v\x02" % (number % 700) for number in range(3000)),
    ],
)
def test_odd_properties(properties: bytes, kernel: Kernel) -> None:
    expected, found = both(log([{"properties": properties}, {"properties": {"x": "y"}}]), kernel)
    assert found.equals(expected)


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_as_properties(seed: int, kernel: Kernel) -> None:
    chance = random.Random(seed)
    alphabet = b"\x01\x02TAGSKEYab " if seed % 2 else b"\x01\x02TAGSKEYab \xff\xe0\xed\xa0\x80"
    fields = [
        {"properties": bytes(chance.choices(alphabet, k=chance.randrange(120)))} for _ in range(20)
    ]
    expected, found = both(log(fields), kernel)
    assert found.equals(expected)


def test_no_records(kernel: Kernel) -> None:
    nothing = np.zeros(0, np.int64)
    found = messages.to_arrow(np.frombuffer(b"", np.uint8), nothing, nothing, kernel)
    found.validate(full=True)
    assert (found.num_rows, found.schema) == (0, arrow.SCHEMA)


def test_the_columns_are_copies(kernel: Kernel) -> None:
    data = bytearray(log([{"body": b"before"}]))
    size = np.array([len(data)], np.int64)
    found = messages.to_arrow(read_only(data), np.zeros(1, np.int64), size, kernel)
    data[:] = bytes(len(data))
    assert found.column("body").to_pylist() == [b"before"]


@pytest.mark.parametrize("seed", range(30))
def test_twins_agree_on_what_is_no_record(seed: int) -> None:
    from mqlake.dispatch import reference
    from mqlake.dispatch.compiled import calls

    chance = random.Random(seed)
    content = bytearray(random_log(seed, 1))
    for _ in range(3):
        content[chance.randrange(len(content))] = chance.randrange(256)
    data = read_only(content)
    at, size = np.zeros(1, np.int64), np.array([len(data)], np.int64)
    head = np.frombuffer(bytes(range(200)) * 5, np.uint8)
    one, other = (twin.message_columns(data, at, size, head, 8) for twin in (calls, reference))
    assert one[1:] == other[1:]
    assert one.data.tobytes() == other.data.tobytes()
