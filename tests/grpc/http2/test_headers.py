"""Blocks of headers are decoded as RFC 7541 has it."""

from __future__ import annotations

import pytest

from mqlake.grpc.http2 import huffman
from mqlake.grpc.http2.frames import ErrorCode, Http2Error
from mqlake.grpc.http2.headers import MALFORMED, HeaderDecoder, literal

REQUESTS = [
    (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com"},
    ),
    (
        "828684be5886a8eb10649cbf",
        {
            ":method": "GET",
            ":scheme": "http",
            ":path": "/",
            ":authority": "www.example.com",
            "cache-control": "no-cache",
        },
    ),
    (
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        {
            ":method": "GET",
            ":scheme": "https",
            ":path": "/index.html",
            ":authority": "www.example.com",
            "custom-key": "custom-value",
        },
    ),
]
"""The examples of RFC 7541, appendix C.4."""


def test_the_examples_of_the_standard() -> None:
    decoder = HeaderDecoder(16_384)
    for block, fields in REQUESTS:
        assert decoder.decode(bytes.fromhex(block)) == fields


def test_literals_are_read_again_whatever_their_length() -> None:
    decoder = HeaderDecoder(1 << 20)
    for size in (0, 1, 126, 127, 128, 254, 255, 300, 40_000):
        assert decoder.decode(literal("name", "v" * size)) == {"name": "v" * size}


def test_fields_of_one_name_are_joined() -> None:
    decoder = HeaderDecoder(16_384)
    assert decoder.decode(literal("a", "1") + literal("a", "2")) == {"a": "1,2"}


@pytest.mark.parametrize(
    "field",
    [
        literal(":status", "200"),
        literal("Name", "x"),
        literal("", "x"),
        literal("a", "b\nc"),
        b"\x00\x01a\x01\xff",
    ],
)
def test_fields_that_no_request_may_have_are_named_so(field: bytes) -> None:
    decoder = HeaderDecoder(16_384)
    assert list(decoder.decode(b"\x40" + field[1:]) or ()) == [MALFORMED]
    assert list(decoder.decode(b"\xbe") or ()) == [MALFORMED]


def test_a_pseudo_header_is_there_once() -> None:
    found = HeaderDecoder(16_384).decode(literal(":path", "1") + literal(":path", "2"))
    assert MALFORMED in (found or ())
    assert list(HeaderDecoder(16_384).decode(b"\x88") or ()) == [MALFORMED]


def test_entries_are_evicted_when_the_table_is_full() -> None:
    decoder = HeaderDecoder(1 << 20)
    for number in range(200):
        value = f"{number:064}"
        assert decoder.decode(b"\x40" + literal("name", value)[1:]) == {"name": value}
    kept = 4096 // (4 + 64 + 32)
    index = 62 + kept - 1
    assert decoder.decode(bytes((0x80 | index,))) == {"name": f"{200 - kept:064}"}
    with pytest.raises(Http2Error) as caught:
        decoder.decode(bytes((0x80 | index + 1,)))
    assert caught.value.code is ErrorCode.COMPRESSION_ERROR


def test_a_smaller_table_evicts() -> None:
    decoder = HeaderDecoder(1 << 20)
    decoder.decode(b"\x40" + literal("name", "value")[1:])
    assert decoder.decode(b"\xbe") == {"name": "value"}
    with pytest.raises(Http2Error):
        decoder.decode(b"\x20\xbe")


@pytest.mark.parametrize(
    "block",
    ["3fe21f", "80", "ff8080808001", "40", "4001", "400161", "0085ffffffffff", "4081ff81ff"],
)
def test_what_is_wrong_is_an_error(block: str) -> None:
    with pytest.raises(Http2Error):
        HeaderDecoder(16_384).decode(bytes.fromhex(block))


def test_more_than_allowed_is_none_and_keeps_the_table() -> None:
    decoder = HeaderDecoder(100)
    assert decoder.decode(b"\x40" + literal("name", "v" * 80)[1:]) is None
    assert decoder.decode(b"\x40" + literal("n", "v")[1:] + b"\xbe") == {"n": "v,v"}


def test_the_code_of_texts_is_complete() -> None:
    """No code is the beginning of another one, and every text has one."""
    total = sum(2.0**-length for _, length in huffman.codes().values())
    assert total == 1.0
    for text in (bytes(range(256)), b"", b"www.example.com", b"\xff" * 9):
        bits = "".join(f"{code:0{size}b}" for code, size in map(huffman.codes().get, text))
        bits += "1" * (-len(bits) % 8)
        coded = int(bits, 2).to_bytes(len(bits) // 8) if bits else b""
        assert huffman.decode(coded) == text


@pytest.mark.parametrize("data", [b"\xff", b"\xff\xff\xff\xff", b"\x1f\xff", b"\x00"])
def test_wrong_padding_is_an_error(data: bytes) -> None:
    with pytest.raises(huffman.HuffmanError):
        huffman.decode(data)
