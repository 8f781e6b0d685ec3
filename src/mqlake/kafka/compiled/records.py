"""Find the parts of the records of version 2 (`mqlake.formats.kafka.record_batch.decode_records`).

A body is the bytes from `at` to `end` of a buffer: the records of one batch, decompressed. Nothing
is loaded from outside of it.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.formats.kafka import batch, record_batch
from mqlake.formats.kafka.compression import CODEC_MASK
from mqlake.kernels.jit import inlined, kernel, outlined
from mqlake.kernels.memory import borrow, load_u8

_HEADER, _MAGIC_V2 = record_batch.HEADER_SIZE, batch.MAGIC_V2
_MIN_RECORD, _MAX_BASE = record_batch.MIN_RECORD, batch.MAX_LONG - batch.MAX_INT
_TIMESTAMP_TYPE = batch.TIMESTAMP_TYPE
_INT_BYTES, _LONG_BYTES = 5, 10

DAMAGED = -1


@outlined
def _long_varint(buffer, at, end, most):
    """Return (number, position after it); the position is DAMAGED if it is cut off or too long."""
    raw = 0
    for place in range(most):
        if at + place >= end:
            break
        byte = load_u8(buffer, at + place)
        raw |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if most == _INT_BYTES:
                raw &= 0xFFFFFFFF
            # The sign is the lowest bit, and the highest one must not be taken for it.
            return (raw >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1), at + place + 1
    return 0, DAMAGED


@inlined
def _varint(buffer, at, end, most):
    if at + 1 < end:
        low = load_u8(buffer, at)
        if low < 0x80:
            return low >> 1 ^ -(low & 1), at + 1
        high = load_u8(buffer, at + 1)
        if high < 0x80:
            raw = low & 0x7F | high << 7
            return raw >> 1 ^ -(raw & 1), at + 2
    return _long_varint(buffer, at, end, most)


@inlined
def _sized(buffer, at, end):
    """Return (position, length, position after it) of bytes with their length; -1 for null."""
    length, at = _varint(buffer, at, end, _INT_BYTES)
    if at == DAMAGED or length > end - at:
        return 0, 0, DAMAGED
    if length < 0:
        return at, -1, at
    return at, length, at + length


@outlined
def _pass_over_headers(buffer, at, end, count):
    """Return the position after the headers."""
    for _ in range(count):
        _, length, at = _sized(buffer, at, end)
        if at == DAMAGED or length < 0:
            return DAMAGED
        _, _, at = _sized(buffer, at, end)
        if at == DAMAGED:
            return DAMAGED
    return at


@inlined
def _decode(buffer, at, end, batch, number, first, records, count, fill):
    append_time = batch.attributes & _TIMESTAMP_TYPE != 0
    for index in range(first, batch.record_count):
        if fill and count == len(records):
            return at, index, count
        size, at = _varint(buffer, at, end, _INT_BYTES)
        if at == DAMAGED or size < 1 or size > end - at:
            return at, DAMAGED, count
        stop = at + size
        timestamp_delta, at = _varint(buffer, at + 1, stop, _LONG_BYTES)
        if at == DAMAGED:
            return at, DAMAGED, count
        offset_delta, at = _varint(buffer, at, stop, _INT_BYTES)
        if at == DAMAGED:
            return at, DAMAGED, count
        key_at, key_length, at = _sized(buffer, at, stop)
        if at == DAMAGED:
            return at, DAMAGED, count
        value_at, value_length, at = _sized(buffer, at, stop)
        if at == DAMAGED:
            return at, DAMAGED, count
        headers, at = _varint(buffer, at, stop, _INT_BYTES)
        # A header takes two bytes at least.
        if at == DAMAGED or headers < 0 or headers > (stop - at) // 2:
            return at, DAMAGED, count
        headers_at = at
        if headers:
            at = _pass_over_headers(buffer, at, stop, headers)
        if at != stop:
            return at, DAMAGED, count
        if fill:
            row = records[count]
            row.offset = batch.base_offset + offset_delta
            row.timestamp = (
                batch.max_timestamp if append_time else batch.base_timestamp + timestamp_delta
            )
            row.key_at, row.key_length = key_at, key_length
            row.value_at, row.value_length = value_at, value_length
            row.headers_at, row.headers_length = headers_at, stop - headers_at
            row.header_count = headers
            row.batch = number
            count += 1
    return at, batch.record_count, count


@inlined
def _can_be(batch, length):
    if batch.record_count == 0:
        return True
    return 0 < batch.record_count <= length // _MIN_RECORD and 0 <= batch.base_offset <= _MAX_BASE


@kernel
def decode_stretch(buffer, base, batches, first, records):
    """Fill rows for the records of the batches from row `first` on; return (row behind, count).

    It ends before a batch that is compressed, damaged, not of version 2, or not in the buffer,
    whose first byte is `base` in the log. `records` has a row for each 7 bytes of the buffer.
    """
    buffer = borrow(buffer)
    batches = borrow(batches)
    records = borrow(records)
    count = 0
    for number in range(first, len(batches)):
        batch = batches[number]
        at = batch.position - base + _HEADER
        end = batch.position - base + batch.size
        if batch.magic < _MAGIC_V2 or batch.attributes & CODEC_MASK or end > len(buffer):
            return number, count
        if batch.record_count and not _can_be(batch, end - at):
            return number, count
        if batch.record_count == 0:
            continue
        at, index, filled = _decode(buffer, at, end, batch, number, 0, records, count, True)
        if index == DAMAGED or at != end:
            return number, count
        count = filled
    return len(batches), count


@kernel
def is_good_body(buffer, batch, records):
    """Return whether the buffer holds the records of the one batch; nothing is filled."""
    buffer = borrow(buffer)
    if not _can_be(batch[0], len(buffer)):
        return False
    if batch[0].record_count == 0:
        return True
    at, index, _ = _decode(buffer, 0, len(buffer), batch[0], 0, 0, records, 0, False)
    return index != DAMAGED and at == len(buffer)


@kernel
def decode_body(buffer, batch, at, first, records):
    """Fill rows for the records of the one batch from number `first` on, which is at `at`.

    The buffer is a good body. Returns (position behind, number behind, count).
    """
    buffer = borrow(buffer)
    records = borrow(records)
    return _decode(buffer, at, len(buffer), batch[0], 0, first, records, 0, True)
