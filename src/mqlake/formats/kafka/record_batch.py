"""Read and write record batches, Kafka's format version 2 (docs/formats/kafka/record_batch.md).

Upstream: `DefaultRecordBatch`, `DefaultRecord`.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.java_string import decode as decode_text
from mqlake.formats.kafka.batch import (
    CONTROL,
    LOG_OVERHEAD,
    MAGIC_V2,
    MAX_INT,
    MAX_LONG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Batch,
    Record,
    TimestampType,
)
from mqlake.formats.kafka.compression import MAX_DECOMPRESSED, Compression, compress, decompress
from mqlake.formats.kafka.crc32c import crc32c
from mqlake.formats.kafka.varint import decode_varint, decode_varlong, encode_varint

HEADER = Struct(
    ">"
    "q"  # base offset
    "i"  # length of what follows
    "i"  # partition leader epoch
    "b"  # magic: 2
    "I"  # CRC-32C of all that follows
    "h"  # attributes
    "i"  # last offset delta
    "q"  # base timestamp
    "q"  # max timestamp
    "q"  # producer id
    "h"  # producer epoch
    "i"  # base sequence
    "i"  # number of records
)
HEADER_SIZE = HEADER.size
CRC_AT = 17
CHECKED_AT = CRC_AT + 4

_CRC = Struct(">I")

# Length, attributes, both deltas, both lengths, number of headers: a byte each at least.
MIN_RECORD = 7
_LONG = 1 << 64


class NewRecord(NamedTuple):
    """A record to write: milliseconds, key, value, headers."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


def decode_header(data: bytes | bytearray | memoryview, at: int, position: int) -> Batch:
    """Return the fixed fields of the batch at index `at`, which is `position` of its file.

    61 bytes must be there; nothing is checked.
    """
    (
        base_offset, length, epoch, magic, crc, attributes, last_delta, base_timestamp,
        max_timestamp, producer_id, producer_epoch, base_sequence, count,
    ) = HEADER.unpack_from(data, at)  # fmt: skip
    last_offset = base_offset + last_delta
    if not -MAX_LONG <= last_offset <= MAX_LONG:
        last_offset = _wrapped(last_offset)
    return Batch(
        position, LOG_OVERHEAD + length, magic, base_offset, last_offset, epoch, crc,
        attributes, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence,
        count,
    )  # fmt: skip


def computed_crc(data: bytes) -> int:
    """Return the checksum that a whole batch ought to have."""
    return crc32c(data[CHECKED_AT:])


def decode_records(batch: Batch, data: bytes, limit: int = MAX_DECOMPRESSED) -> list[Record]:
    """Return the records of a whole batch, decompressed into at most `limit` bytes.

    Raises:
        FormatError: a structure that Kafka would not accept either.
    """
    if batch.record_count == 0:
        return []
    body = decompress(batch.compression, data[HEADER_SIZE:], limit)
    if not 0 < batch.record_count <= len(body) // MIN_RECORD:
        raise FormatError(f"a batch of {batch.record_count} records in {len(body)} bytes")
    if not 0 <= batch.base_offset <= MAX_LONG - MAX_INT:
        raise FormatError(f"a batch at offset {batch.base_offset}")
    try:
        records, end = _decode_records(batch, body)
    except IndexError:
        raise FormatError("a record goes beyond its batch") from None
    if end != len(body):
        raise FormatError(f"{len(body) - end} bytes are left after the last record of a batch")
    return records


def _decode_records(batch: Batch, body: bytes) -> tuple[list[Record], int]:  # noqa: C901
    # The loop of the whole package, in one piece because calls would take most of its time:
    # numbers of one or two bytes, nearly all of them, are read in place.
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    kind, epoch, is_control = batch.timestamp_type, batch.leader_epoch, batch.is_control
    append_time = batch.max_timestamp if kind is TimestampType.LOG_APPEND_TIME else None
    records: list[Record] = []
    at = 0
    for _ in range(batch.record_count):
        size = body[at]
        if size < 0x80:
            size, at = size >> 1 ^ -(size & 1), at + 1
        elif (high := body[at + 1]) < 0x80:
            size, at = (size & 0x7F | high << 7) >> 1 ^ -(size & 1), at + 2
        else:
            size, at = decode_varint(body, at)
        end = at + size
        if size < 0 or end > len(body):
            raise FormatError(f"a record of {size} bytes where {len(body) - at} are left")
        at += 1  # attributes, unused
        delta = body[at]
        if delta < 0x80:
            delta, at = delta >> 1 ^ -(delta & 1), at + 1
        elif (high := body[at + 1]) < 0x80:
            delta, at = (delta & 0x7F | high << 7) >> 1 ^ -(delta & 1), at + 2
        else:
            delta, at = decode_varlong(body, at)
        timestamp = base_timestamp + delta
        if not -MAX_LONG <= timestamp <= MAX_LONG:
            timestamp = _wrapped(timestamp)
        delta = body[at]
        if delta < 0x80:
            delta, at = delta >> 1 ^ -(delta & 1), at + 1
        else:
            delta, at = decode_varint(body, at)
        offset = base_offset + delta
        length = body[at]
        if length < 0x80:
            length, at = length >> 1 ^ -(length & 1), at + 1
        else:
            length, at = decode_varint(body, at)
        if length < 0:
            key = None
        else:
            key = body[at : at + length]
            at += length
        length = body[at]
        if length < 0x80:
            length, at = length >> 1 ^ -(length & 1), at + 1
        elif (high := body[at + 1]) < 0x80:
            length, at = (length & 0x7F | high << 7) >> 1 ^ -(length & 1), at + 2
        else:
            length, at = decode_varint(body, at)
        if length < 0:
            value = None
        else:
            value = body[at : at + length]
            at += length
        if body[at] == 0:
            headers, at = (), at + 1
        else:
            headers, at = _decode_headers(body, at, end)
        # Slices stop at the end of the data, but `at` does not: this catches all that overran.
        if at != end:
            raise FormatError(f"a record's fields end {at - end:+} bytes from where it says")
        if append_time is not None:
            timestamp = append_time
        records.append(Record(offset, timestamp, kind, epoch, key, value, headers, is_control))
    return records, at


def _timestamp_delta(timestamp: int, base_timestamp: int) -> int:
    if not -_LONG // 2 <= timestamp < _LONG // 2:
        raise FormatError(f"not a timestamp: {timestamp}")
    return _wrapped(timestamp - base_timestamp)


def _wrapped(number: int) -> int:
    """Return what Java's sum of two longs is."""
    return (number + _LONG // 2) % _LONG - _LONG // 2


def _decode_headers(
    body: bytes, at: int, end: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, at = decode_varint(body, at)
    # A header takes two bytes at least.
    if not 0 <= count <= max(0, end - at) // 2:
        raise FormatError(f"{count} headers in {end - at} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, at = decode_varint(body, at)
        if length < 0:
            raise FormatError("a header without a name")
        name = decode_text(body[at : at + length])
        length, at = decode_varint(body, at + length)
        value = None if length < 0 else body[at : at + length]
        at += max(0, length)
        if at > end:
            raise FormatError("a header goes beyond its record")
        headers.append((name, value))
    return tuple(headers), at


def encode(
    base_offset: int,
    records: Sequence[NewRecord],
    *,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = NO_TIMESTAMP,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Return a batch of records with consecutive offsets from `base_offset` on.

    `append_time` (milliseconds) is what readers see with LOG_APPEND_TIME.

    Raises:
        FormatError: no records, or a number that its field cannot hold.
    """
    if not records:
        raise FormatError("a batch needs a record")
    base_timestamp = records[0].timestamp
    body = b"".join(
        _encode_record(delta, _timestamp_delta(record.timestamp, base_timestamp), record)
        for delta, record in enumerate(records)
    )
    body = compress(compression, body)
    by_broker = timestamp_type is TimestampType.LOG_APPEND_TIME
    max_timestamp = append_time if by_broker else max(record.timestamp for record in records)
    attributes = (
        compression
        | (TIMESTAMP_TYPE if by_broker else 0)
        | (TRANSACTIONAL if is_transactional else 0)
        | (CONTROL if is_control else 0)
    )
    try:
        header = HEADER.pack(
            base_offset, HEADER_SIZE - LOG_OVERHEAD + len(body), leader_epoch, MAGIC_V2, 0,
            attributes, len(records) - 1, base_timestamp, max_timestamp,
            producer_id, producer_epoch, base_sequence, len(records),
        )  # fmt: skip
    except OverflowError as error:
        raise FormatError(f"not a batch's field: {error}") from None
    checked = header[CHECKED_AT:] + body
    return header[:CRC_AT] + _CRC.pack(crc32c(checked)) + checked


def _encode_record(offset_delta: int, timestamp_delta: int, record: NewRecord) -> bytes:
    parts = [
        b"\0",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        *_sized(record.key),
        *_sized(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += *_sized(name.encode()), *_sized(value)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (encode_varint(-1),) if data is None else (encode_varint(len(data)), data)
