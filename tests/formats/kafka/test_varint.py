from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.kafka.varint import decode_varint, decode_varlong, encode_varint

INTS = st.integers(-(1 << 31), (1 << 31) - 1)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("01", -1),
        ("02", 1),
        ("7e", 63),
        ("7f", -64),
        ("8001", 64),
        ("8101", -65),
        ("fe7f", 8191),
        ("feffffff0f", 2147483647),
        ("ffffffff0f", -2147483648),
    ],
)
def test_known_numbers(data: str, value: int) -> None:
    raw = bytes.fromhex(data)
    assert (value, len(raw)) == decode_varint(raw, 0)
    assert (value, len(raw)) == decode_varlong(raw, 0)
    assert raw == encode_varint(value)


@given(LONGS)
def test_longs_come_back(value: int) -> None:
    data = encode_varint(value)
    assert (value, len(data)) == decode_varlong(data, 0)


@given(INTS, st.binary(max_size=3))
def test_ints_come_back_from_the_middle(value: int, before: bytes) -> None:
    data = before + encode_varint(value) + b"\xff"
    assert (value, len(data) - 1) == decode_varint(data, len(before))


def test_bits_beyond_the_width_are_dropped() -> None:
    assert decode_varint(bytes.fromhex("8180808010"), 0) == (-1, 5)
    assert decode_varlong(bytes.fromhex("80808080808080808002"), 0) == (0, 10)


@pytest.mark.parametrize("data", ["", "80", "8080808080", "ffffffffff01"])
def test_no_int(data: str) -> None:
    with pytest.raises(FormatError):
        decode_varint(bytes.fromhex(data), 0)


def test_no_long() -> None:
    with pytest.raises(FormatError, match="more than 10 bytes"):
        decode_varlong(b"\x80" * 11, 0)
