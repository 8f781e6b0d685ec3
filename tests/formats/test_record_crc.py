"""The checksum of a whole record, as RocketMQ writes it."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.formats import record_crc
from mqlake.formats.properties import decode_properties

CRCS = st.integers(0, 0x7FFFFFFF)


def test_the_bytes_are_rocketmqs() -> None:
    assert record_crc.encode(1234567890) == b"__CRC32#\x010987654321\x02"
    assert record_crc.encode(7) == b"__CRC32#\x017000000000\x02"
    assert record_crc.encode(0) == b"__CRC32#\x010000000000\x02"
    assert record_crc.encode(0x7FFFFFFF) == b"__CRC32#\x017463847412\x02"


def test_the_top_bit_is_not_stored() -> None:
    crc = zlib.crc32(b"a")
    assert crc > 0x7FFFFFFF
    assert record_crc.encode(crc) == record_crc.encode(crc & 0x7FFFFFFF)


@given(CRCS, st.binary(max_size=30))
def test_what_is_written_is_stated(crc: int, before: bytes) -> None:
    data = record_crc.encode(crc)
    assert len(data) == record_crc.SIZE == 20
    assert record_crc.stated(data) == crc
    assert record_crc.stated(before + b"\x02" + data) == crc
    assert record_crc.stated(memoryview(before + b"\x02" + data)) == crc
    assert record_crc.stated(bytearray(b"\x02" + data)) == crc


@given(CRCS)
def test_it_is_a_property(crc: int) -> None:
    pairs = decode_properties(b"a\x01b\x02" + record_crc.encode(crc))
    assert pairs == {"a": "b", record_crc.NAME: f"{crc:010d}"[::-1]}


GOOD = record_crc.encode(1234567890)


@pytest.mark.parametrize(
    "tail",
    [
        b"",
        GOOD[1:],
        GOOD[:-1],
        GOOD + b"\x02",
        GOOD + b"a\x01b\x02",
        # The end of another property's value.
        b"a\x01b" + GOOD,
        b"\0" * 20,
        GOOD[:12] + b"\0" * 8,
        GOOD.replace(b"0", b" "),
        GOOD.replace(b"0", b"-"),
        GOOD.replace(b"C", b"c"),
        GOOD.replace(b"\x01", b"\x02"),
        GOOD[:-1] + b"\0",
    ],
)
def test_anything_else_states_nothing(tail: bytes) -> None:
    assert record_crc.stated(tail) is None


@given(st.binary(max_size=40))
def test_any_bytes_can_be_asked(tail: bytes) -> None:
    record_crc.stated(tail)


def test_digits_may_say_more_than_a_crc_can() -> None:
    assert record_crc.stated(b"__CRC32#\x019999999999\x02") == 9999999999
