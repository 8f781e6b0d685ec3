"""Java strings: a JVM's own answers, and what follows from the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.formats import java_string
from tests.formats.java_answers import lines
from tests.formats.strategies import TEXT


def test_decode_and_hash_as_a_jvm_does() -> None:
    table = lines("java_strings.txt.xz")
    for data, units, value in table:
        text = java_string.decode(bytes.fromhex(data))
        assert (units, int(value)) == (text.encode("utf-16-be").hex(), java_string.hash_code(text))
    assert len(table) > 1500
    assert sum("fffd" in units for _, units, _ in table) > 500


@given(st.binary())
def test_decode_gives_text_of_any_bytes(data: bytes) -> None:
    java_string.decode(data).encode()


@given(TEXT)
def test_well_formed_text_is_kept(text: str) -> None:
    assert java_string.decode(text.encode()) == text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xed\xa0\x80", "\ufffd"),  # Python alone: three
        (b"\xed\xa0", "\ufffd"),  # Python alone: two
        (b"\xed\xa0\x80\xed\xb0\x80", "\ufffd\ufffd"),
        (b"\xed\x9f\xbf", "\ud7ff"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
    ],
)
def test_malformed(data: bytes, expected: str) -> None:
    assert java_string.decode(data) == java_string.decode(memoryview(data)) == expected


@given(TEXT, TEXT)
def test_a_hash_goes_on_from_a_prefix(prefix: str, rest: str) -> None:
    assert java_string.hash_code(rest, java_string.hash_code(prefix)) == java_string.hash_code(
        prefix + rest
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("TagA", 2598919), ("polygenelubricants", -(1 << 31)), ("😀", 1772899)],
)
def test_hash_code(text: str, expected: int) -> None:
    assert java_string.hash_code(text) == expected


def test_a_lone_surrogate_can_be_hashed() -> None:
    assert java_string.hash_code("\ud83d") == 0xD83D


@given(TEXT)
def test_index_key_hash_is_javas_abs(text: str) -> None:
    value, signed = java_string.index_key_hash(text), java_string.hash_code(text)
    assert value == (abs(signed) if signed != -(1 << 31) else 0)


def test_the_hash_that_has_no_positive_is_indexed_as_0() -> None:
    assert java_string.index_key_hash("polygenelubricants") == 0
