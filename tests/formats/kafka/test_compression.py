from __future__ import annotations

import contextlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.kafka import lz4_frame, snappy_stream
from mqlake.formats.kafka.compression import Compression, compress, decompress

CODECS = [codec for codec in Compression if codec]
TEXT = b"".join(b"line %d of a log that is compressed\n" % number for number in range(5000))


@given(st.sampled_from(Compression), st.binary(max_size=3000), st.integers(1, 40))
def test_both_ways(codec: Compression, data: bytes, times: int) -> None:
    assert data * times == decompress(codec, compress(codec, data * times))


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_stopped_at_the_bound(codec: Compression) -> None:
    bomb = compress(codec, bytes(8 << 20))
    assert len(bomb) < 1 << 19
    with pytest.raises(FormatError, match=f"grows beyond {1 << 20} bytes"):
        decompress(codec, bomb, 1 << 20)
    assert bytes(8 << 20) == decompress(codec, bomb, 8 << 20)


@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_is_an_error_or_the_beginning(codec: Compression) -> None:
    data = compress(codec, TEXT[:2000])
    for end in range(len(data)):
        with contextlib.suppress(FormatError):
            assert TEXT[:2000].startswith(decompress(codec, data[:end]))


@settings(max_examples=300)
@given(st.sampled_from(CODECS), st.data())
def test_changed_bytes_never_crash(codec: Compression, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, TEXT[:400]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    for magic in (0, 2):
        with contextlib.suppress(FormatError):
            assert len(decompress(codec, bytes(packed), 1 << 16, magic=magic)) <= 1 << 16


def test_snappy_without_a_stream() -> None:
    block = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Compression.SNAPPY, block) == TEXT


def test_snappy_streams_one_after_the_other() -> None:
    data = compress(Compression.SNAPPY, TEXT)
    assert data.startswith(snappy_stream.MAGIC)
    assert decompress(Compression.SNAPPY, data + data) == TEXT + TEXT


def test_snappy_that_lies_about_its_length() -> None:
    # A raw block that says 4 GiB - 1.
    with pytest.raises(FormatError, match="grows beyond"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0fabc")


@pytest.mark.parametrize("text", [b"", b"x", TEXT, bytes(300_000)])
def test_lz4_with_a_wrong_header_check_sum(text: bytes) -> None:
    data = bytearray(compress(Compression.LZ4, text))
    data[6] ^= 0xFF
    assert text == decompress(Compression.LZ4, bytes(data), magic=0)
    with pytest.raises(FormatError):
        decompress(Compression.LZ4, bytes(data))


def test_lz4_blocks_that_are_not_compressed() -> None:
    header = bytes.fromhex("04224d18604000")
    frame = header + (0x80000003).to_bytes(4, "little") + b"abc" + bytes(4)
    output = bytearray(10)
    assert lz4_frame.decompress_into(frame, memoryview(output), cramjam.lz4) == 3
    assert output[:3] == b"abc"
    with pytest.raises(FormatError, match="grows beyond 2 bytes"):
        lz4_frame.decompress_into(frame, memoryview(output)[:2], cramjam.lz4)


@pytest.mark.parametrize("attributes", [5, 6, 7])
def test_codecs_that_do_not_exist(attributes: int) -> None:
    from mqlake.formats.kafka.compression import compression_of

    with pytest.raises(FormatError, match="unknown compression"):
        compression_of(attributes)
