"""Write a record: the one function of kernels that lays its bytes out (`mqlake.formats.record`).

Its readable twin is `mqlake.formats.record.encode_around`.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.dispatch.compiled.record_crc import missing_separator, put_record_crc
from mqlake.formats import host, properties, record, record_crc, sys_flag
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import copy, load_i32, publish_i32, store_i32, store_i64, store_u8

REFUSED = -1
MAX_PROPERTIES = properties.MAX_LENGTH
PAIR_END = ord(properties.PROPERTY_SEPARATOR)
UNQUEUED_BIT = sys_flag.TRANSACTION_PREPARED & sys_flag.TRANSACTION_ROLLBACK
_V4, _V6, _V2_MAGIC = host.V4_SIZE, host.V6_SIZE, record.V2_MAGIC
_FIXED_SIZE = record.HEAD_SIZES[0] - 2 * _V4 + 2
_BORN_BIT, _STORE_BIT = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_CRC_MASK, _RECORD_CRC_SIZE = record.CRC_MASK, record_crc.SIZE
_BORN_HOST_AT = record.BORN_HOST_AT
_INT_SIZE, _INT_MIN, _INT_MAX = 4, -(1 << 31), (1 << 31) - 1

# Positions in a route, bytes.
(
    QUEUE_ID_AT,
    MAGIC_AT,
    LONGEST_BODY_AT,
    CRC_SIZE_AT,
    BORN_SIZE_AT,
    STORE_SIZE_AT,
    PART_LENGTH_AT,
    BORN_HOST_AT,
) = range(0, 64, 8)
STORE_HOST_AT = BORN_HOST_AT + 24
PART_AT = STORE_HOST_AT + 24


@inlined
def is_int(number):
    """Return whether a number fits into 32 bits."""
    return _INT_MIN <= number <= _INT_MAX


@inlined
def prefix_size(magic):
    """Return the bytes of a topic's length in a record."""
    return 2 if magic == _V2_MAGIC else 1


@inlined
def stored_size(texts, at, length, crc):
    """Return the bytes that properties of a length take in a record, with its CRC if `crc`."""
    if crc == 0:
        return length
    return length + missing_separator(texts, at, length) + _RECORD_CRC_SIZE


@inlined
def record_size(hosts_size, body_size, magic, topic_size, properties_size):
    """Return the bytes of a record."""
    around = _FIXED_SIZE + hosts_size + prefix_size(magic) + topic_size
    return around + body_size + properties_size


@inlined
def _put_host(target, to, source, at, size):
    if size == _V4:  # A copy of a known length is one instruction.
        copy(target, to, source, at, _V4)
        return to + _V4
    copy(target, to, source, at, _V6)
    return to + _V6


@inlined
def write_record(target, start, size, numbers, hosts, topic, body, texts, crc):
    """Write a record whose parts are checked, and which has `size` bytes.

    Args:
        numbers: magic, queue id, flag, queue offset, physical offset, system flag, born timestamp
            (0 for that of the store), store timestamp, reconsume times, prepared transaction
            offset.
        hosts: the born host (array, position, size), then the store host.
        topic, body, texts: (array, position, length); `texts` has the properties.
        crc: whether to state the record's CRC in its last property: 0 or 1.
    """
    magic, queue_id, flag, queue_offset, physical_offset = numbers[:5]
    flags, born_timestamp, now, reconsume_times, prepared = numbers[5:]
    born, born_at, born_size, own, own_at, own_size = hosts
    names, name_at, name_size = topic
    source, body_at, body_size = body
    data, data_at, data_size = texts
    flags &= ~(_BORN_BIT | _STORE_BIT)
    if born_size != _V4:
        flags |= _BORN_BIT
    if own_size != _V4:
        flags |= _STORE_BIT
    store_i32(target, start, size)
    store_i32(target, start + 4, magic)
    store_i32(target, start + 8, crc32(source, body_at, body_size) & _CRC_MASK)
    store_i32(target, start + 12, queue_id)
    store_i32(target, start + 16, flag)
    store_i64(target, start + 20, queue_offset)
    store_i64(target, start + 28, physical_offset)
    store_i32(target, start + 36, flags)
    store_i64(target, start + 40, now if born_timestamp == 0 else born_timestamp)
    to = _put_host(target, start + _BORN_HOST_AT, born, born_at, born_size)
    store_i64(target, to, now)
    to = _put_host(target, to + 8, own, own_at, own_size)
    store_i32(target, to, reconsume_times)
    store_i64(target, to + 4, prepared)
    store_i32(target, to + 12, body_size)
    copy(target, to + 16, source, body_at, body_size)
    to += 16 + body_size
    if magic == _V2_MAGIC:
        store_u8(target, to, name_size >> 8)
        to += 1
    store_u8(target, to, name_size)
    copy(target, to + 1, names, name_at, name_size)
    to += 1 + name_size
    stored = stored_size(data, data_at, data_size, crc)
    store_u8(target, to, stored >> 8)
    store_u8(target, to + 1, stored)
    copy(target, to + 2, data, data_at, data_size)
    to += 2 + data_size
    if crc != 0:
        if missing_separator(data, data_at, data_size) != 0:
            store_u8(target, to, PAIR_END)
            to += 1
        put_record_crc(target, start, to)


@inlined
def publish(buffer, at, records, start, size):
    """Copy records into the log. The first one's size is stored last: without it, these are no
    records.
    """
    copy(buffer, at + _INT_SIZE, records, start + _INT_SIZE, size - _INT_SIZE)
    publish_i32(buffer, at, load_i32(records, start))
