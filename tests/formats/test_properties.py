"""Properties: RocketMQ's own answers on odd bytes, round trips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import properties
from mqlake.formats.properties import decode_properties, encode_properties
from tests.formats.java_answers import lines
from tests.formats.strategies import PROPERTIES


def test_decode_as_rocketmq_does() -> None:
    table = lines("java_properties.txt.xz")
    for data, *pairs in table:
        expected = {
            bytes.fromhex(name).decode(): bytes.fromhex(value).decode()
            for name, _, value in (pair.partition("=") for pair in pairs)
        }
        assert expected == decode_properties(bytes.fromhex(data)), data
    assert sum(len(line) > 1 for line in table) > 100


@given(PROPERTIES)
def test_round_trip(props: dict[str, str]) -> None:
    assert decode_properties(encode_properties(props)) == props


@given(st.binary())
def test_decode_gives_pairs_of_any_bytes(data: bytes) -> None:
    props = decode_properties(data)
    assert all(props)
    assert all(props.values())
    assert decode_properties(memoryview(data)) == props


def test_properties_fit_into_a_signed_short() -> None:
    assert len(encode_properties({"n": "v" * (32767 - 3)})) == properties.MAX_LENGTH
    with pytest.raises(FormatError):
        encode_properties({"n": "v" * (32767 - 2)})


def test_order_is_kept_and_the_last_of_equal_names_wins() -> None:
    assert list(decode_properties(b"b\x011\x02a\x012\x02b\x013\x02").items()) == [
        ("b", "3"),
        ("a", "2"),
    ]


def test_rocketmq_4_leaves_out_the_last_separator() -> None:
    assert decode_properties(b"a\x011\x02b\x012") == {"a": "1", "b": "2"}
    assert encode_properties({"a": "1", "b": "2"}) == b"a\x011\x02b\x012\x02"


@pytest.mark.parametrize(
    "props",
    [
        {"": "v"},
        {"n": ""},
        {"n\x01": "v"},
        {"n\x02": "v"},
        {"n": "v\x02"},
        {"n": "\ud800"},
        {"n": "v" * properties.MAX_LENGTH},
    ],
)
def test_what_would_not_come_back_is_refused(props: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        encode_properties(props)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (None, []),
        ("a", ["a"]),
        ("a b a", ["a", "b", "a"]),
        ("  a  b ", ["a", "b"]),
        ("a\tb", ["a\tb"]),
    ],
)
def test_key_list(keys: str | None, expected: list[str]) -> None:
    assert properties.key_list({"KEYS": keys} if keys else {}) == expected
