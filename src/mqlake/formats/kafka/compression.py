"""Compress and decompress the records of a batch (docs/formats/kafka/compression.md).

Upstream: `org.apache.kafka.common.compress`, `CompressionType`.
"""

from __future__ import annotations

import enum
import mmap
import threading
from functools import cache
from typing import TYPE_CHECKING

from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.kafka import lz4_frame, snappy_stream

if TYPE_CHECKING:
    from types import ModuleType

# What one batch may grow to unless the caller says otherwise: 256 MiB.
MAX_DECOMPRESSED = 1 << 28

# A thread keeps its output buffer for the next batch unless this much of it has been touched.
_KEPT = 1 << 24

_local = threading.local()

# The bits of a batch's attributes that name its codec.
CODEC_MASK = 0x07


class Compression(enum.IntEnum):
    """The codec in the lowest three bits of a batch's attributes. Upstream: `CompressionType`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compression_of(attributes: int) -> Compression:
    """Return the codec of a batch.

    Raises:
        FormatError: 5, 6 or 7, which stand for nothing.
    """
    try:
        return Compression(attributes & CODEC_MASK)
    except ValueError:
        raise FormatError(f"unknown compression {attributes & CODEC_MASK}") from None


def compress(codec: Compression, data: bytes) -> bytes:
    """Return `data` as Kafka's producers write it: xerial blocks for snappy, a frame for lz4."""
    if codec is Compression.NONE:
        return data
    cramjam = _cramjam()
    if codec is Compression.SNAPPY:
        return snappy_stream.compress(data, lambda block: bytes(cramjam.snappy.compress_raw(block)))
    if codec is Compression.LZ4:
        # Kafka reads independent blocks only.
        compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    if codec is Compression.GZIP:
        return bytes(cramjam.gzip.compress(data))
    return bytes(cramjam.zstd.compress(data, level=3))


def decompress(
    codec: Compression, data: bytes, limit: int = MAX_DECOMPRESSED, *, magic: int = 2
) -> bytes:
    """Return the records of a batch; never more than `limit` bytes of memory are touched.

    `magic` is the format version of the batch: Kafka wrote lz4 frames with a wrong header checksum
    in version 0.

    Raises:
        FormatError: damaged, or more than `limit` bytes.
    """
    if codec is Compression.NONE:
        return data
    output = _output(limit)
    try:
        length = _decompress_into(codec, data, memoryview(output)[:limit], magic)
    except FormatError:
        _local.output = None
        raise
    except (_cramjam().DecompressionError, OSError, ValueError) as error:
        _local.output = None
        # What does not fit into the buffer has no error class of its own.
        if "buffer" in str(error):
            raise FormatError(f"{codec.name.lower()} data grows beyond {limit} bytes") from None
        raise FormatError(f"{codec.name.lower()} data is damaged: {error}") from None
    content = output[:length]
    if length > _KEPT:
        _local.output = None
    return content


def _decompress_into(codec: Compression, data: bytes, output: memoryview, magic: int) -> int:
    cramjam = _cramjam()
    if codec is Compression.SNAPPY:
        return snappy_stream.decompress_into(data, output, cramjam.snappy)
    if codec is Compression.LZ4 and magic == 0:
        return lz4_frame.decompress_into(data, output, cramjam.lz4)
    return getattr(cramjam, codec.name.lower()).decompress_into(data, output)


def _output(limit: int) -> mmap.mmap:
    # Anonymous memory costs nothing until it is written, so one attempt with the whole limit is
    # both exact and safe, while growing a buffer would decompress again and again.
    output: mmap.mmap | None = getattr(_local, "output", None)
    if output is None or len(output) < limit:
        output = _local.output = mmap.mmap(-1, max(limit, mmap.PAGESIZE))
    return output


@cache
def _cramjam() -> ModuleType:
    try:
        import cramjam
    except ImportError:
        # No FormatError: the bytes are not to be taken for damaged.
        raise MqlakeError(
            "compressed batches need a package: pip install 'mqlake[kafka]'"
        ) from None
    return cramjam
