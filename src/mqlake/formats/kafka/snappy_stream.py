"""Snappy as Kafka has it: xerial's stream of blocks, or one raw block.

A stream is `82 "SNAPPY" 00`, a version and a lowest compatible version (4 bytes each, big-endian),
then blocks: length (4 bytes, big-endian) and raw snappy. librdkafka and others write one raw block
without the header. Upstream: `SnappyCompression` over snappy-java's `SnappyInputStream`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from mqlake.errors import FormatError

MAGIC = b"\x82SNAPPY\x00"
HEADER = Struct(">8sii")
BLOCK_LENGTH = Struct(">i")

# What snappy-java cuts its input into.
BLOCK_BYTES = 32 << 10


def compress(data: bytes, compress_block: Callable[[bytes], bytes]) -> bytes:
    """Return a xerial stream of blocks of 32 KiB."""
    parts = [HEADER.pack(MAGIC, 1, 1)]
    for at in range(0, len(data), BLOCK_BYTES):
        block = compress_block(data[at : at + BLOCK_BYTES])
        parts += BLOCK_LENGTH.pack(len(block)), block
    return b"".join(parts)


def decompress_into(data: bytes, output: memoryview, library: Any) -> int:
    """Decompress a stream or a raw block into `output`; return the bytes written.

    Raises:
        FormatError: cut off, or more than `output` can hold.
        Exception: what the library raises for damaged blocks.
    """
    done = 0
    for block in _blocks(data):
        length = library.decompress_raw_len(block)
        if length > len(output) - done:
            raise FormatError(f"snappy data grows beyond {len(output)} bytes")
        if length:
            done += library.decompress_raw_into(block, output[done : done + length])
    return done


def _blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(MAGIC):
        yield data
        return
    at = 0
    while at < len(data):
        if data.startswith(MAGIC, at):
            # Streams may follow one another.
            at += HEADER.size
            continue
        if len(data) - at < BLOCK_LENGTH.size:
            raise FormatError("a snappy stream is cut off")
        (length,) = BLOCK_LENGTH.unpack_from(data, at)
        at += BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - at:
            raise FormatError(f"a snappy block of {length} bytes where {len(data) - at} are left")
        yield data[at : at + length]
        at += length
