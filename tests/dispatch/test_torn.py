"""Records that were written with a checksum, and have lost bytes since."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.dispatch.columns import RECORD, RecordColumns
from mqlake.dispatch.kernel import Kernel
from mqlake.formats import record, record_crc

PROPERTIES = (b"", b"A\1b\2", bytes(20), b"A\1" + bytes(600) + b"\2", b"A\1\xff\2", b"x" * 2000)


def checksummed(properties: bytes, body: bytes = b"body") -> bytes:
    """Return a record whose last property is its checksum."""
    return record.encode(topic="T", body=body, properties=properties, append_crc=True)


def rows_of(records: list[bytes], base: int) -> tuple[np.ndarray, RecordColumns]:
    """Return a buffer with slack, and the columns that count."""
    buffer = np.frombuffer(b"".join(records) + bytes(64), np.uint8)
    rows = np.zeros(len(records), RECORD)
    at = base
    for row, data in zip(rows, records, strict=True):
        _, layout = record.check(data, 0, len(data), crc=False)
        assert layout is not None
        row["physical_offset"], row["size"] = at, layout.size
        row["properties_length"] = layout.properties_length
        at += layout.size
    return buffer, rows


def first_torn(kernel: Kernel, records: list[bytes], base: int = 1 << 40) -> int:
    buffer, rows = rows_of(records, base)
    return kernel.first_torn(buffer, base, rows)


def test_whole_records_are_whole(kernel: Kernel) -> None:
    records = [checksummed(each, body=bytes(at)) for at, each in enumerate(PROPERTIES)]
    assert first_torn(kernel, records) == len(records)
    assert first_torn(kernel, []) == 0


@pytest.mark.parametrize("properties", PROPERTIES)
def test_what_a_lost_sector_leaves_is_torn(properties: bytes, kernel: Kernel) -> None:
    """Any bytes of the properties and of their checksum are zero."""
    whole = checksummed(properties)
    _, layout = record.check(whole, 0, len(whole))
    assert layout is not None
    dice = random.Random(len(properties))
    start, end = layout.properties_at, len(whole)
    for _ in range(60):
        at = dice.choice((dice.randrange(start, end), dice.randrange(end - 20, end)))
        stop = dice.choice((end, dice.randrange(at, end) + 1))
        lost = whole[:at] + bytes(stop - at) + whole[stop:]
        expected = 1 if lost != whole else 3
        assert first_torn(kernel, [whole, lost, whole]) == expected


def test_flipped_bits_anywhere_are_torn(kernel: Kernel) -> None:
    whole = checksummed(b"A\1b\2")
    for at in (8, 20, 30, 90, len(whole) - 5, len(whole) - 22):
        flipped = bytearray(whole)
        flipped[at] ^= 1
        assert first_torn(kernel, [whole, whole, bytes(flipped)]) == 2, at


@pytest.mark.parametrize(
    "properties",
    [
        b"",
        b"A\1b\2",
        b"A\1b\2".ljust(19, b"\0"),
        b"A\1" + bytes(600) + b"\2B\1" + b"c" * 30,
        record_crc.encode(7)[:-1] + b"x",
        record_crc.encode(7).replace(b"7", b"a"),
        b"__CRC32#" + b"\1" * 12,
    ],
)
def test_without_a_checksum_and_without_a_zero_in_its_place_nothing_is_torn(
    properties: bytes, kernel: Kernel
) -> None:
    assert first_torn(kernel, [record.encode(topic="T", properties=properties)]) == 1


def test_both_kernels_and_the_plain_check_agree(kernel: Kernel) -> None:
    dice = random.Random(3)
    for _ in range(300):
        data = bytearray(checksummed(dice.choice(PROPERTIES), body=dice.randbytes(9)))
        _, layout = record.check(data, 0, len(data))
        assert layout is not None
        for _ in range(dice.randrange(3)):
            at = dice.randrange(layout.properties_at, len(data))
            data[at] = dice.choice((0, 1, 2, ord("9"), dice.randrange(256)))
        torn = record.is_torn(memoryview(data), layout.properties_length)
        assert first_torn(kernel, [bytes(data)]) == (0 if torn else 1)
