"""Blocks of headers are put together from their frames."""

from __future__ import annotations

import pytest

from mqlake.grpc.http2.frames import END_STREAM, ErrorCode, Http2Error
from mqlake.grpc.http2.header_blocks import HeaderBlocks
from mqlake.grpc.http2.headers import literal

BLOCK = literal("one", "1") + literal("two", "2")
FIELDS = {"one": "1", "two": "2"}


def test_a_block_of_one_frame_is_decoded() -> None:
    blocks = HeaderBlocks(1000)
    assert blocks.decode(BLOCK) == FIELDS
    assert blocks.decoded == 2 * (32 + 4)


@pytest.mark.parametrize("flags", [0, END_STREAM])
def test_a_block_of_several_frames_is_put_together(flags: int) -> None:
    blocks = HeaderBlocks(1000)
    blocks.begin(flags, 5, BLOCK[:3], 2.0)
    assert blocks.is_incomplete
    assert (blocks.held, blocks.began) == (3, 2.0)
    blocks.resume(5, BLOCK[3:4])
    blocks.resume(5, BLOCK[4:])
    assert blocks.end() == (FIELDS, bool(flags))
    assert (blocks.held, blocks.is_incomplete) == (0, False)


def test_an_empty_beginning_begins_a_block() -> None:
    blocks = HeaderBlocks(1000)
    blocks.begin(0, 5, b"", 0.0)
    assert blocks.is_incomplete
    blocks.resume(5, BLOCK)
    assert blocks.end() == (FIELDS, False)


def test_fields_that_are_too_large_change_the_table_only() -> None:
    blocks = HeaderBlocks(100)
    added = b"\x40" + literal("name", "v" * 60)[1:]
    assert blocks.decode(added) == {"name": "v" * 60}
    assert blocks.decode(b"\xbe\xbe") is None
    assert blocks.decode(b"\xbe") == {"name": "v" * 60}


def test_blocks_have_a_largest_size() -> None:
    blocks = HeaderBlocks(10)
    for begin in (lambda: blocks.decode(bytes(11)), lambda: blocks.begin(0, 1, bytes(11), 0.0)):
        with pytest.raises(Http2Error, match="11 bytes: the limit is 10"):
            begin()
    blocks.begin(0, 1, bytes(10), 0.0)
    with pytest.raises(Http2Error, match="11 bytes: the limit is 10") as caught:
        blocks.resume(1, b"1")
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM


def test_blocks_have_few_frames() -> None:
    blocks = HeaderBlocks(1000)
    blocks.begin(0, 1, b"", 0.0)
    for _ in range(15):
        blocks.resume(1, b"")
    with pytest.raises(Http2Error, match="more than 16 frames"):
        blocks.resume(1, b"")


def test_only_the_block_that_began_is_continued() -> None:
    blocks = HeaderBlocks(1000)
    with pytest.raises(Http2Error, match="continues no block"):
        blocks.resume(1, b"")
    blocks.begin(0, 1, b"", 0.0)
    with pytest.raises(Http2Error, match="continues no block"):
        blocks.resume(3, b"")
