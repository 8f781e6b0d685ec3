"""Read messages of Kafka's format versions 0 and 1 (docs/formats/kafka/message_set.md).

A message is a batch of one record, or, compressed, a wrapper whose value holds a message set.
Upstream: `LegacyRecord`, `AbstractLegacyRecordBatch`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.kafka.batch import (
    LOG_OVERHEAD,
    MAGIC_V0,
    MAGIC_V1,
    MIN_LENGTH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Batch,
    Record,
    TimestampType,
)
from mqlake.formats.kafka.compression import (
    CODEC_MASK,
    MAX_DECOMPRESSED,
    Compression,
    compression_of,
    decompress,
)

HEADER_V0 = Struct(
    ">"
    "q"  # offset
    "i"  # length of what follows
    "I"  # CRC-32 of all that follows
    "b"  # magic
    "b"  # attributes
)
HEADER_V1 = Struct(
    ">"
    "q"  # offset
    "i"  # length of what follows
    "I"  # CRC-32 of all that follows
    "b"  # magic
    "b"  # attributes
    "q"  # timestamp
)
CRC_AT = LOG_OVERHEAD
CHECKED_AT = CRC_AT + 4

_LENGTH = Struct(">i")
_ENTRY = Struct(">qi")


class _LegacyMessage(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def decode_header(data: bytes | bytearray | memoryview, at: int, position: int) -> Batch:
    """Return the fixed fields of the message at index `at`, which is `position` of its file.

    26 bytes must be there; nothing is checked.
    """
    offset, length, crc, magic, attributes = HEADER_V0.unpack_from(data, at)
    timestamp = NO_TIMESTAMP if magic == MAGIC_V0 else HEADER_V1.unpack_from(data, at)[5]
    return Batch(
        position, LOG_OVERHEAD + length, magic, offset, offset, NO_LEADER_EPOCH, crc,
        attributes, timestamp, timestamp, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, -1,
    )  # fmt: skip


def computed_crc(data: bytes) -> int:
    """Return the checksum that a whole message ought to have."""
    return zlib.crc32(memoryview(data)[CHECKED_AT:])


def decode_records(batch: Batch, data: bytes, limit: int = MAX_DECOMPRESSED) -> list[Record]:
    """Return the record of a message, or those inside of a wrapper.

    Raises:
        FormatError: a structure that Kafka would not accept either.
    """
    outer = _decode_message(data, 0, len(data))
    if compression_of(outer.attributes) is Compression.NONE:
        return [_record(outer, outer.offset, batch.timestamp_type, outer.timestamp)]
    inner = list(_unwrap(outer, limit))
    if not inner:
        raise FormatError("a compressed message without messages in it")
    # Version 1 counts from the wrapper's first offset; the wrapper has the last one. Some
    # producers leave the wrapper's at 0.
    first = 0
    if outer.magic == MAGIC_V1 and outer.offset != 0:
        first = outer.offset - inner[-1].offset
        if first < 0:
            raise FormatError(
                f"a wrapper at offset {outer.offset} of messages up to offset {inner[-1].offset}"
            )
    kind, by_broker = batch.timestamp_type, batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return [
        _record(
            message,
            first + message.offset,
            kind if message.magic == MAGIC_V1 else TimestampType.NONE,
            outer.timestamp if by_broker and message.magic == MAGIC_V1 else message.timestamp,
        )
        for message in inner
    ]


def first_offset(batch: Batch, data: bytes, limit: int = MAX_DECOMPRESSED) -> int:
    """Return the offset of a message's first record, which only the content of a wrapper tells."""
    return decode_records(batch, data, limit)[0].offset


def _record(message: _LegacyMessage, offset: int, kind: TimestampType, timestamp: int) -> Record:
    return Record(offset, timestamp, kind, NO_LEADER_EPOCH, message.key, message.value)


def _unwrap(outer: _LegacyMessage, limit: int) -> Iterator[_LegacyMessage]:
    codec = compression_of(outer.attributes)
    if codec is Compression.ZSTD:
        raise FormatError("zstd in a message of version 0 or 1")
    if outer.value is None:
        raise FormatError("a compressed message without a value")
    body = decompress(codec, outer.value, limit, magic=outer.magic)
    at = 0
    while at + LOG_OVERHEAD <= len(body):
        _, length = _ENTRY.unpack_from(body, at)
        if length < MIN_LENGTH:
            raise FormatError(f"a message of {length} bytes")
        end = at + LOG_OVERHEAD + length
        if end > len(body):
            return
        message = _decode_message(body, at, end)
        if message.attributes & CODEC_MASK:
            raise FormatError("a compressed message inside of a compressed message")
        yield message
        at = end


def _decode_message(data: bytes, at: int, end: int) -> _LegacyMessage:
    if end - at < LOG_OVERHEAD + MIN_LENGTH:
        raise FormatError(f"a message of {end - at} bytes")
    offset, _, _, magic, attributes = HEADER_V0.unpack_from(data, at)
    timestamp, header = NO_TIMESTAMP, HEADER_V0
    if magic == MAGIC_V1:
        header = HEADER_V1
        if end - at < header.size:
            raise FormatError("a message of version 1 is cut off")
        timestamp = header.unpack_from(data, at)[5]
    elif magic != MAGIC_V0:
        raise FormatError(f"a message of version {magic}")
    key, value_at = _sized(data, at + header.size, end)
    value, _ = _sized(data, value_at, end)
    return _LegacyMessage(offset, magic, attributes, timestamp, key, value)


def _sized(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    if at + _LENGTH.size > end:
        raise FormatError("a message is cut off")
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if length > end - at:
        raise FormatError(f"a field of {length} bytes where a message has {end - at}")
    return data[at : at + length], at + length
