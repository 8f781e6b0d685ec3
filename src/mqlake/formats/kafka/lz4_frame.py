"""Read an lz4 frame without its header checksum.

Kafka's version-0 messages carry frames whose header checksum was computed over the wrong bytes, so
a library refuses them; blocks are independent in all of Kafka's frames. Kafka:
`Lz4BlockInputStream` with `ignoreFlagDescriptorChecksum`.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from mqlake.errors import FormatError

MAGIC = 0x184D2204
_HEADER = Struct(
    "<"
    "I"  # magic
    "B"  # flags
    "B"  # block descriptor
)
_BLOCK = Struct("<I")

_CONTENT_SIZE = 0x08
_BLOCK_CHECKSUM = 0x10
_UNCOMPRESSED = 0x80000000
_CHECKSUM_BYTES = 4
_CONTENT_SIZE_BYTES = 8
_LARGEST_BLOCK = 4 << 20


def decompress_into(data: bytes, output: memoryview, library: Any) -> int:
    """Decompress a frame of independent blocks into `output`; return the bytes written.

    Raises:
        FormatError: no such frame, cut off, or more than `output` can hold.
        Exception: what the library raises for damaged blocks.
    """
    flags, at = _header(data)
    done = 0
    while True:
        (length,) = _unpack(data, at)
        at += _BLOCK.size
        if length == 0:
            return done
        block = data[at : at + (length & ~_UNCOMPRESSED)]
        if len(block) < length & ~_UNCOMPRESSED:
            raise FormatError("an lz4 frame is cut off")
        at += len(block) + (_CHECKSUM_BYTES if flags & _BLOCK_CHECKSUM else 0)
        target = output[done : done + _LARGEST_BLOCK]
        if not length & _UNCOMPRESSED:
            # The length says that the block does not begin with one.
            done += library.decompress_block_into(block, target, output_len=len(target))
        elif len(block) > len(target):
            raise FormatError(f"an lz4 frame grows beyond {len(output)} bytes")
        else:
            target[: len(block)] = block
            done += len(block)


def _header(data: bytes) -> tuple[int, int]:
    if len(data) < _HEADER.size or _HEADER.unpack_from(data)[0] != MAGIC:
        raise FormatError("not an lz4 frame")
    _, flags, _ = _HEADER.unpack_from(data)
    header_checksum = 1
    content_size = _CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0
    return flags, _HEADER.size + content_size + header_checksum


def _unpack(data: bytes, at: int) -> tuple[int]:
    if at + _BLOCK.size > len(data):
        raise FormatError("an lz4 frame is cut off")
    return _BLOCK.unpack_from(data, at)
