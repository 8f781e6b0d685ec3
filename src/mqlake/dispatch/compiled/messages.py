"""All columns of a few records in one call (`mqlake.dispatch.messages`).

The arrays are those of `mqlake.dispatch.arrow`, one buffer after another as in an Arrow message.
For so few rows, a call for each array would take longer than its work.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.hosts import host_texts, message_ids
from mqlake.dispatch.compiled.lists import key_texts, property_texts
from mqlake.dispatch.compiled.properties import find_properties
from mqlake.dispatch.compiled.record import is_safe_topic, lay_out
from mqlake.formats import host, record, sys_flag
from mqlake.formats.record import Fault
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import CHUNK, borrow, copy, load_i32, load_i64
from mqlake.kernels.values import are_text, copy_spans, in_blocks, put_spans, span_offsets

_GOOD = int(Fault.GOOD)
_BORN_HOST_V6, _STORE_HOST_V6 = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_V4_SIZE, _V6_SIZE = host.V4_SIZE, host.V6_SIZE
_BODY_CRC_AT, _QUEUE_ID_AT, _FLAG_AT = record.BODY_CRC_AT, record.QUEUE_ID_AT, record.FLAG_AT
_QUEUE_OFFSET_AT, _PHYSICAL_OFFSET_AT = record.QUEUE_OFFSET_AT, record.PHYSICAL_OFFSET_AT
_SYS_FLAG_AT, _BORN_TIMESTAMP_AT = record.SYS_FLAG_AT, record.BORN_TIMESTAMP_AT
_BORN_HOST_AT, _MIN_SIZE = record.BORN_HOST_AT, record.MIN_SIZE
_ALIGNMENT = 8
_BODIES_FROM_END = 4
"""Of all parts: those of message ids follow the bodies."""


@inlined
def _bitmap(lengths):
    """Return Arrow's validity bits of the values with a length, and how many have none."""
    bits, nulls = np.zeros((len(lengths) + 7) // 8, np.uint8), 0
    for row in range(len(lengths)):
        if lengths[row] > 0:
            bits[row >> 3] |= np.uint8(1 << (row & 7))
        else:
            nulls += 1
    return bits, nulls


@inlined
def _padded(size):
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


@inlined
def _join(parts, head, spans_at, data, body_at, body_length, bodies):
    """Return the parts after the head, each aligned, with their positions written into the head.

    The bodies, `body_length` bytes, are copied into one of the parts: they are copied only once.
    """
    end = np.int64(_padded(bodies))
    for part in parts:
        end += _padded(len(part))
    joined = np.empty(len(head) + end + CHUNK, np.uint8)
    copy(joined, 0, head, 0, len(head))
    spans = joined[spans_at : spans_at + 16 * len(parts)].view(np.int64)
    start = np.int64(len(head))
    for number, part in enumerate(parts):
        size = np.int64(len(part))
        if number == len(parts) - _BODIES_FROM_END:
            size = bodies
            put_spans(joined, start, data, body_at, body_length)
        else:
            copy(joined, start, part, 0, size)
        spans[2 * number], spans[2 * number + 1] = start - len(head), size
        joined[start + size : start + _padded(size)] = 0
        start += _padded(size)
    return joined[: len(head) + end]


@kernel
def columns(buffer, at, sizes, head, spans_at, seed):
    """Return the columns after the head, rows, those without tags, pairs in properties, keys.

    At `spans_at` of the head: for each of Arrow's buffers its position after the head and its
    length, 8 bytes each. Returns nothing if some records cannot be decoded.
    """
    buffer, head = borrow(buffer), borrow(head)
    count = len(at)
    data, starts = in_blocks(buffer, at, sizes)
    # One row each: separate allocations take longer than filling them.
    longs, ints = np.empty((13, count), np.int64), np.empty((11, count), np.int32)
    queue_offset, physical_offset, born, stored, prepared = (
        longs[0],
        longs[1],
        longs[2],
        longs[3],
        longs[4],
    )
    topic_at, body_at, properties_at = longs[5], longs[6], longs[7]
    tags_at, words_at = longs[8], longs[9]
    born_host_at, store_host_at, offset_at = longs[10], longs[11], longs[12]
    queue_id, size, body_crc, flags = ints[0], ints[1], ints[2], ints[3]
    flag, times = ints[4], ints[5]
    topic_length, body_length, properties_length = ints[6], ints[7], ints[8]
    tags_length, words_length = ints[9], ints[10]
    v6 = np.empty((2, count), np.bool_)
    born_v6, store_v6 = v6[0], v6[1]
    is_good = True
    for row in range(count):
        start = starts[row]
        is_good = sizes[row] >= _MIN_SIZE and load_i32(data, start) == sizes[row]
        if not is_good:
            break
        fault, body, length, topic, topic_size, found, found_size = lay_out(data, start)
        is_good = fault == _GOOD and is_safe_topic(data, topic, topic_size)
        if not is_good:
            break
        queue_id[row] = load_i32(data, start + _QUEUE_ID_AT)
        queue_offset[row] = load_i64(data, start + _QUEUE_OFFSET_AT)
        physical_offset[row] = load_i64(data, start + _PHYSICAL_OFFSET_AT)
        size[row], body_crc[row] = sizes[row], load_i32(data, start + _BODY_CRC_AT)
        flag[row], flags[row] = (
            load_i32(data, start + _FLAG_AT),
            load_i32(data, start + _SYS_FLAG_AT),
        )
        born[row] = load_i64(data, start + _BORN_TIMESTAMP_AT)
        born_v6[row] = flags[row] & _BORN_HOST_V6 != 0
        store_v6[row] = flags[row] & _STORE_HOST_V6 != 0
        stored_at = start + _BORN_HOST_AT + (_V6_SIZE if born_v6[row] else _V4_SIZE)
        stored[row] = load_i64(data, stored_at)
        born_host_at[row], store_host_at[row] = start + _BORN_HOST_AT, stored_at + 8
        host_end = stored_at + 8 + (_V6_SIZE if store_v6[row] else _V4_SIZE)
        times[row], prepared[row] = load_i32(data, host_end), load_i64(data, host_end + 4)
        offset_at[row] = start + _PHYSICAL_OFFSET_AT
        topic_at[row], topic_length[row] = topic, topic_size
        body_at[row], body_length[row] = body, length
        properties_at[row], properties_length[row] = found, found_size
        tags, words, _, _ = find_properties(data, found, found + found_size)
        tags_at[row], tags_length[row] = tags
        words_at[row], words_length[row] = words

    nothing = np.empty(0, np.uint8)
    is_text = is_good and are_text(data, properties_at, properties_length)
    if not is_text:
        return nothing, 0, 0, 0, 0
    topics, born_hosts = (
        copy_spans(data, topic_at, topic_length),
        host_texts(data, born_host_at, born_v6),
    )
    store_hosts = host_texts(data, store_host_at, store_v6)
    pairs = property_texts(data, properties_at, properties_length, seed)
    tags_present, untagged = _bitmap(tags_length)
    tag_texts = copy_spans(data, tags_at, tags_length)
    keys = key_texts(data, words_at, words_length)
    body_offsets = span_offsets(body_length)
    ids = message_ids(data, store_host_at, store_v6, offset_at)
    u8 = np.uint8
    parts = (
        *(nothing, topics[0].view(u8), topics[1]),
        *(nothing, queue_id.view(u8)),
        *(nothing, queue_offset.view(u8)),
        *(nothing, physical_offset.view(u8)),
        *(nothing, size.view(u8)),
        *(nothing, body_crc.view(u8)),
        *(nothing, flags.view(u8)),
        *(nothing, flag.view(u8)),
        *(nothing, born.view(u8)),
        *(nothing, stored.view(u8)),
        *(nothing, born_hosts[0].view(u8), born_hosts[1]),
        *(nothing, store_hosts[0].view(u8), store_hosts[1]),
        *(nothing, times.view(u8)),
        *(nothing, prepared.view(u8)),
        *(nothing, pairs[0].view(u8), nothing),
        *(nothing, pairs[1].view(u8), pairs[2]),
        *(nothing, pairs[3].view(u8), pairs[4]),
        *(tags_present, tag_texts[0].view(u8), tag_texts[1]),
        *(nothing, keys[0].view(u8)),
        *(nothing, keys[1].view(u8), keys[2]),
        *(nothing, body_offsets.view(u8), nothing),
        *(nothing, ids[0].view(u8), ids[1]),
    )
    bodies = np.int64(body_offsets[-1])
    joined = _join(parts, head, spans_at, data, body_at, body_length, bodies)
    return joined, count, untagged, len(pairs[1]) - 1, len(keys[1]) - 1
