"""Compress bodies as producers do, and decompress them as consumers do.

Upstream: `Compressor`, `CompressionType`.
"""

from __future__ import annotations

import zlib
from types import ModuleType
from typing import Literal

from mqlake.errors import FormatError
from mqlake.formats.sys_flag import (
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_ZLIB,
    COMPRESSION_ZSTD,
    compression,
)

Codec = Literal["zlib", "lz4", "zstd"]

MAX_BODY = 64 * 1024 * 1024
"""Longest body in bytes that is decompressed."""

_FLAGS: dict[str, int] = {
    "zlib": COMPRESSED | COMPRESSION_ZLIB,
    "lz4": COMPRESSED | COMPRESSION_LZ4,
    "zstd": COMPRESSED | COMPRESSION_ZSTD,
}
_FIRST_ROOM = 64 * 1024
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32
"""Recognizes either by its first bytes."""


class MissingCodecError(FormatError):
    """The package of a codec is not installed."""


def compress(body: bytes, codec: Codec, level: int) -> tuple[bytes, int]:
    """Compress a body; return it with the bits of the system flag that name the codec.

    Raises:
        MissingCodecError: the package of the codec is missing.
    """
    if codec == "zlib":
        return zlib.compress(body, level), _FLAGS[codec]
    module = _cramjam(codec)
    if codec == "lz4":
        return bytes(module.lz4.compress(body)), _FLAGS[codec]
    return bytes(module.zstd.compress(body, level)), _FLAGS[codec]


def decompress(body: bytes, sys_flag: int, longest: int = MAX_BODY) -> bytes:
    """Return a body as its producer sent it.

    Args:
        longest: the maximum length, in bytes.

    Raises:
        FormatError: the body is not what the flag says, or is too long.
        MissingCodecError: the package of the codec is missing.
    """
    codec = compression(sys_flag)
    if codec is None:
        return body
    if codec == "zlib":
        return _inflate(body, longest)
    if codec not in ("lz4", "zstd"):
        raise FormatError("the body is compressed with an unknown codec")
    return _expand(getattr(_cramjam(codec), codec), body, longest)


def _inflate(body: bytes, longest: int) -> bytes:
    # RocketMQ 5's gRPC clients compress with gzip, and brokers set no other flag for it.
    inflater = zlib.decompressobj(wbits=_ZLIB_OR_GZIP)
    try:
        data = inflater.decompress(body, longest + 1)
    except zlib.error as error:
        raise FormatError(f"the body is not valid zlib data: {error}") from None
    if len(data) > longest:
        raise FormatError(f"the body has more than {longest} bytes")
    if not inflater.eof:
        raise FormatError("the body is truncated")
    return data


def _expand(module: ModuleType, body: bytes, longest: int) -> bytes:
    """Decompress into a buffer that grows: a frame need not state its length, and may state a wrong
    one.
    """
    room = min(longest, max(_FIRST_ROOM, 4 * len(body)))
    while True:
        output = bytearray(room)
        try:
            size: int = module.decompress_into(body, output)
            return bytes(memoryview(output)[:size])
        except Exception as error:  # noqa: BLE001 (its errors do not say what is wrong)
            if room >= longest:
                raise FormatError(f"the body cannot be decompressed: {error}") from None
        room = min(longest, 4 * room)


def _cramjam(codec: str) -> ModuleType:
    try:
        import cramjam
    except ImportError:
        raise MissingCodecError(
            f"{codec} bodies need a package: pip install 'mqlake[codecs]'"
        ) from None
    return cramjam
