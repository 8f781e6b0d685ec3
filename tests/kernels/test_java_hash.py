from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from mqlake.dispatch.window import SLACK
from mqlake.formats import java_string
from mqlake.kernels.java_hash import hash_text, index_key_hash, signed
from mqlake.kernels.jit import kernel
from mqlake.kernels.utf8 import is_valid

LEAD = 16


@kernel
def hash_of(value: int, buffer: Any, at: int, end: int) -> tuple[int, int]:
    value = hash_text(value, buffer, at, end)
    return signed(value), index_key_hash(value)


@kernel
def is_text(buffer: Any, at: int, end: int) -> bool:
    return is_valid(buffer, at, end)


def padded(data: bytes) -> Any:
    """Surround a text by what is no ASCII: nothing of it may count."""
    return np.frombuffer(b"\xff" * LEAD + data + b"\xff" * SLACK, np.uint8)


def assert_hashed(data: bytes, start: int = 0) -> None:
    text = java_string.decode(data)
    expected = java_string.hash_code(text, start)
    actual = hash_of(start & 0xFFFFFFFF, padded(data), LEAD, LEAD + len(data))
    assert (expected, 0 if expected == -(1 << 31) else abs(expected)) == actual


def test_every_length_of_ascii() -> None:
    for length in range(200):
        assert_hashed(bytes(33 + (7 * place) % 90 for place in range(length)))


def test_smallest_hash_has_no_absolute_value() -> None:
    text = "polygenelubricants"  # the known word whose hash is -2^31

    assert java_string.hash_code(text) == -(1 << 31)
    assert hash_of(0, padded(text.encode()), LEAD, LEAD + len(text)) == (-(1 << 31), 0)


@given(st.text(max_size=90), st.integers(-(1 << 31), (1 << 31) - 1))
def test_text(text: str, start: int) -> None:
    assert_hashed(text.encode("utf-8", "surrogatepass"), start)


PIECES = (
    *(b"a", b"\x80", b"\xbf", b"\xc0", b"\xc2", b"\xe0", b"\xe0\xa0", b"\xed\xa0", b"\xed\x9f"),
    *(b"\xf0", b"\xf0\x8f", b"\xf0\x90", b"\xf4\x8f", b"\xf4\x90", b"\xf5", b"\xff", b"\xef"),
)
MALFORMED = st.lists(st.sampled_from(PIECES), max_size=24).map(b"".join)


@given(MALFORMED | st.binary(max_size=70))
@example(b"\xed\xa0\x80" * 3)
@example(b"x" * 70 + b"\xf0\x90\x80")
def test_malformed_bytes_are_replaced_as_in_java(data: bytes) -> None:
    assert_hashed(data)


@given(MALFORMED | st.binary(max_size=70) | st.text(max_size=70).map(str.encode))
def test_validity(data: bytes) -> None:
    try:
        data.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert expected == is_text(padded(data), LEAD, LEAD + len(data))
