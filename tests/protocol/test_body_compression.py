"""Compressed bodies of messages."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.sys_flag import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_ZLIB
from mqlake.protocol.messages.body_compression import compress, decompress


@given(st.binary(max_size=5000), st.sampled_from(("zlib", "lz4", "zstd")))
def test_compressed_bodies_are_decompressed(body: bytes, codec: str) -> None:
    packed, flag = compress(body, codec, 3)  # type: ignore[arg-type]
    assert decompress(packed, flag) == body


def test_producers_before_compression_types_mean_zlib() -> None:
    assert decompress(zlib.compress(b"old"), COMPRESSED) == b"old"


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (b"no zlib", COMPRESSED | COMPRESSION_ZLIB),
        (zlib.compress(b"cut off" * 99)[:-3], COMPRESSED | COMPRESSION_ZLIB),
        (zlib.compress(bytes(1001)), COMPRESSED | COMPRESSION_ZLIB),
        (b"no lz4", COMPRESSED | COMPRESSION_LZ4),
        (compress(bytes(1001), "zstd", 3)[0], compress(b"", "zstd", 3)[1]),
        (b"", COMPRESSED | 7 << 8),
    ],
)
def test_invalid_compressed_bodies_are_refused(body: bytes, flag: int) -> None:
    with pytest.raises(FormatError):
        decompress(body, flag, longest=1000)


def test_decompresses_what_grpc_clients_have_compressed_with_gzip() -> None:
    body = b"a body of more than four thousand bytes " * 200
    for flag in (COMPRESSED, COMPRESSED | COMPRESSION_ZLIB):
        assert decompress(gzip.compress(body), flag) == body
        with pytest.raises(FormatError, match="truncated"):
            decompress(gzip.compress(body)[:-1], flag)
