"""Walk over the batches in a stretch of log (`mqlake.formats.kafka.versions.read_header`).

Positions are relative to the buffer, whose first byte is `base` in the log. `length` bytes are
valid, and the log ends at `end`, which may be beyond them. The code checks that bytes are valid
before it loads them.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.formats.kafka import batch, message_set, record_batch
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.crc32c import crc32c
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, load_i32, load_i64, load_u8, load_u16, load_u32

_PREFIX, _OVERHEAD, _MIN_LENGTH = batch.PREFIX_SIZE, batch.LOG_OVERHEAD, batch.MIN_LENGTH
_HEADER = record_batch.HEADER_SIZE
_MAGIC_V0, _MAGIC_V2 = batch.MAGIC_V0, batch.MAGIC_V2
_NONE = -1

# Positions of the fields in `batch.PREFIX`, `record_batch.HEADER` and `message_set.HEADER_V1`.
_LENGTH_AT, _EPOCH_AT, _MAGIC_AT = 8, 12, 16
_CRC_AT, _CHECKED_AT = record_batch.CRC_AT, record_batch.CHECKED_AT
_ATTRIBUTES_AT, _LAST_DELTA_AT, _BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = 21, 23, 27, 35
_PRODUCER_ID_AT, _PRODUCER_EPOCH_AT, _SEQUENCE_AT, _COUNT_AT = 43, 51, 53, 57
_OLD_CRC_AT, _OLD_CHECKED_AT = message_set.CRC_AT, message_set.CHECKED_AT
_OLD_ATTRIBUTES_AT, _OLD_TIMESTAMP_AT = 17, 18


@inlined
def _signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


@inlined
def _fill(row, buffer, at, position, size, magic):
    row.position = position
    row.size = size
    row.magic = magic
    row.base_offset = load_i64(buffer, at)
    if magic >= _MAGIC_V2:
        row.last_offset = row.base_offset + load_i32(buffer, at + _LAST_DELTA_AT)
        row.leader_epoch = load_i32(buffer, at + _EPOCH_AT)
        row.crc = load_u32(buffer, at + _CRC_AT)
        row.attributes = _signed(load_u16(buffer, at + _ATTRIBUTES_AT), 16)
        row.base_timestamp = load_i64(buffer, at + _BASE_TIMESTAMP_AT)
        row.max_timestamp = load_i64(buffer, at + _MAX_TIMESTAMP_AT)
        row.producer_id = load_i64(buffer, at + _PRODUCER_ID_AT)
        row.producer_epoch = _signed(load_u16(buffer, at + _PRODUCER_EPOCH_AT), 16)
        row.base_sequence = load_i32(buffer, at + _SEQUENCE_AT)
        row.record_count = load_i32(buffer, at + _COUNT_AT)
    else:
        timestamp = _NONE if magic == _MAGIC_V0 else load_i64(buffer, at + _OLD_TIMESTAMP_AT)
        row.last_offset = row.base_offset
        row.leader_epoch = _NONE
        row.crc = load_u32(buffer, at + _OLD_CRC_AT)
        row.attributes = _signed(load_u8(buffer, at + _OLD_ATTRIBUTES_AT), 8)
        row.base_timestamp = row.max_timestamp = timestamp
        row.producer_id = row.producer_epoch = row.base_sequence = row.record_count = _NONE


@inlined
def _is_sound(buffer, at, size, magic):
    if magic >= _MAGIC_V2:
        stated = load_u32(buffer, at + _CRC_AT)
        return crc32c(buffer, at + _CHECKED_AT, size - _CHECKED_AT) == stated
    stated = load_u32(buffer, at + _OLD_CRC_AT)
    return crc32(buffer, at + _OLD_CHECKED_AT, size - _OLD_CHECKED_AT) == stated


@kernel
def walk(buffer, at, length, base, end, check, rows):
    """Describe up to len(rows) batches from `at` on; return (position after them, count).

    Stops at the log's end, at bytes that are not a batch, at a batch cut off by the log's end, and
    at a batch that is not within the window: all of it with `check`, otherwise its fixed fields.
    """
    buffer = borrow(buffer)
    rows = borrow(rows)
    count = 0
    while count < len(rows) and at < end - _PREFIX and length - at >= min(_HEADER, end - at):
        size = _OVERHEAD + load_i32(buffer, at + _LENGTH_AT)
        magic = _signed(load_u8(buffer, at + _MAGIC_AT), 8)
        least = _HEADER if magic >= _MAGIC_V2 else _OVERHEAD + _MIN_LENGTH
        if size < least or size > end - at or magic < _MAGIC_V0:
            break
        if check and (size > length - at or not _is_sound(buffer, at, size, magic)):
            break
        _fill(rows[count], buffer, at, base + at, size, magic)
        at += size
        count += 1
    return at, count
