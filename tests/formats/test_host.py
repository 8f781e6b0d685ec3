"""Hosts: both widths, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.host import V4_SIZE, V6_SIZE, decode_host, encode_host
from tests.formats.strategies import HOSTS


@given(HOSTS)
def test_text_round_trip(text: str) -> None:
    assert decode_host(encode_host(text)) == text


@given(
    st.binary(min_size=V4_SIZE, max_size=V4_SIZE) | st.binary(min_size=V6_SIZE, max_size=V6_SIZE)
)
def test_bytes_round_trip(data: bytes) -> None:
    assert encode_host(decode_host(data)) == data


def test_java_writes_ipv6_uncompressed() -> None:
    assert decode_host(encode_host("[2001:db8::1]:10911")) == "[2001:db8:0:0:0:0:0:1]:10911"
    assert encode_host("127.0.0.1:10911") == b"\x7f\0\0\1\0\0\x2a\x9f"


@pytest.mark.parametrize("size", [0, 4, 7, 9, 16, 19, 21])
def test_other_widths_are_refused(size: int) -> None:
    with pytest.raises(FormatError):
        decode_host(bytes(size))


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:4294967296",
     "127.0.0:1", "localhost:1", "::1:1", "[::1]", "[127.0.0.1]:1", "[::1%eth0]:1", "[]:1"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        encode_host(text)
