"""The checksum of a whole record, as RocketMQ writes it."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import record, record_crc
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


CRC = record_crc.encode(99)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"", b""),
        (CRC, b""),
        (CRC[:-1], b""),
        (CRC + CRC, b""),
        (b"a\x01b\x02" + CRC, b"a\x01b\x02"),
        (b"a\x01b\x02" + CRC[:-1], b"a\x01b\x02"),
        (CRC + b"a\x01b", b"a\x01b"),
        (b"a\x01b\x02" + CRC + b"\xffc\x02\x02" + CRC + b"d\0", b"a\x01b\x02\xffc\x02\x02d\0"),
        (b"__CRC32#\x01\x02a", b"a"),
        # Other names, and the end of another property's value.
        (b"a" + CRC, b"a" + CRC),
        (b"a\x01" + CRC, b"a\x01" + CRC),
        (b"__CRC32#\x02__CRC32##\x01a\x02__CRC32#", b"__CRC32#\x02__CRC32##\x01a\x02__CRC32#"),
    ],
)
def test_properties_of_that_name_are_dropped(data: bytes, kept: bytes) -> None:
    assert record_crc.drop(data) == kept


@given(st.lists(st.sampled_from([CRC, b"\x02", b"\x01", b"a\x01b", b"__CRC32#"]), max_size=9))
def test_what_is_left_is_what_a_reader_finds_without_it(parts: list[bytes]) -> None:
    data = b"".join(parts)
    pairs = decode_properties(data)
    pairs.pop(record_crc.NAME, None)
    assert decode_properties(record_crc.drop(data)) == pairs


@pytest.mark.parametrize("properties", [b"", b"a\x01b", b"a\x01b\x02", CRC, b"a\x01b\x02" + CRC])
def test_a_record_states_the_crc_of_all_before_it(properties: bytes) -> None:
    data = record.encode(topic="T", body=b"body", properties=properties, append_crc=True)
    found = record.decode(data)
    assert found.size == len(data)
    assert record_crc.stated(data[-record_crc.SIZE :]) == zlib.crc32(data[:-20]) & 0x7FFFFFFF
    expected = decode_properties(record_crc.drop(properties))
    assert found.properties == {**expected, record_crc.NAME: data[-11:-1].decode()}


def test_the_property_counts_against_the_limit() -> None:
    longest = 32767 - record_crc.SIZE
    record.encode(topic="T", body=b"", properties=longest * b"\x02", append_crc=True)
    for properties in (longest * b"a", (longest + 1) * b"\x02"):
        with pytest.raises(FormatError):
            record.encode(topic="T", body=b"", properties=properties, append_crc=True)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", True),
        (b"note\x01x" * 4, True),
        (b"note\x01" + b"x" * 20 + b"\0" * 20 + b"x" * 20, True),
        (b"note\x01\0" + b"x" * 19, False),
        (b"note\x01" + b"x" * 40 + b"\0", False),
        # The end of a property whose name only ends in this one's.
        (b"X" + record_crc.encode(7), False),
    ],
)
def test_properties_without_a_checksum_that_do_not_look_torn(data: bytes, expected: bool) -> None:
    assert record_crc.may_be_left_out(data) is expected
