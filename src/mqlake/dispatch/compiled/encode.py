"""Write drafts as records, and lay the messages of a batch's body out as drafts.

The body of a batch comes from a client and may be anything.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.put import (
    MAX_PROPERTIES,
    UNQUEUED_BIT,
    prefix_size,
    record_size,
    stored_size,
    write_record,
)
from mqlake.formats import message_batch
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, load_i32, load_u16

_HEAD_SIZE, _LENGTH_SIZE = message_batch.HEAD.size, message_batch.LENGTH.size
_BODY_LENGTH_AT, _FLAG_AT = message_batch.BODY_LENGTH_AT, message_batch.FLAG_AT


@kernel
def write_records(
    target, to, end, base, source, texts, drafts, first, queues, hosts, parts, now, append_crc
):
    """Write the drafts from row `first` on, until one is not regular or does not fit before `end`.

    Each states its CRC if `append_crc` is 1; then one is not regular either whose properties become
    too long by that.

    Returns (the row that comes next, position after the records). `base` is the physical offset of
    the first byte of `target`.
    """
    target, source, texts, parts = borrow(target), borrow(source), borrow(texts), borrow(parts)
    own = hosts[len(hosts) - 1]
    own_at, own_size = np.int64(own.part_at), np.int64(own.part_length)
    for row in range(first, len(drafts)):
        draft = drafts[row]
        if draft.regular == 0:
            return row, to
        queue, born = queues[draft.queue], hosts[draft.host]
        born_at, born_size = np.int64(born.part_at), np.int64(born.part_length)
        body = source, draft.body_at, np.int64(draft.body_length)
        own_texts = texts, draft.properties_at, np.int64(draft.properties_length)
        stored = stored_size(texts, own_texts[1], own_texts[2], append_crc)
        if queue.part_length < 0 or born_size < 0 or (append_crc != 0 and stored > MAX_PROPERTIES):
            return row, to
        prefix = prefix_size(queue.magic)
        topic = parts, np.int64(queue.part_at) + prefix, np.int64(queue.part_length) - prefix
        size = record_size(born_size + own_size, body[2], queue.magic, topic[2], stored)
        if size > end - to:
            return row, to
        queue_offset = np.int64(0)
        if draft.sys_flag & UNQUEUED_BIT == 0:
            queue_offset = queue.next_offset
            queue.next_offset = queue_offset + 1
        draft.physical_offset, draft.queue_offset, draft.size = base + to, queue_offset, size
        numbers = (
            queue.magic,
            np.int64(draft.queue_id),
            np.int64(draft.flag),
            queue_offset,
            draft.physical_offset,
            np.int64(draft.sys_flag),
            draft.born_timestamp,
            now,
            np.int64(draft.reconsume_times),
            draft.prepared_transaction_offset,
        )
        both = parts, born_at, born_size, parts, own_at, own_size
        write_record(target, to, size, numbers, both, topic, body, own_texts, append_crc)
        to += size
    return len(drafts), to


@inlined
def draft_body(source, at, end, drafts, row):
    """Fill a draft for each message from `at` on, the first in `row`; return the row after them.

    That is -1 where the body is malformed, or there are not as many rows.
    """
    while at < end:
        body_at = at + _HEAD_SIZE
        if row == len(drafts) or end - body_at < _LENGTH_SIZE:
            return np.int64(-1)
        body_length = load_i32(source, at + _BODY_LENGTH_AT)
        if body_length < 0 or body_length > end - body_at - _LENGTH_SIZE:
            return np.int64(-1)
        properties_length = load_u16(source, body_at + body_length)
        properties_at = body_at + body_length + _LENGTH_SIZE
        if properties_length > min(MAX_PROPERTIES, end - properties_at):
            return np.int64(-1)
        draft = drafts[row]
        draft.body_at, draft.body_length = body_at, body_length
        draft.properties_at, draft.properties_length = properties_at, properties_length
        draft.flag = load_i32(source, at + _FLAG_AT)
        row += 1
        at = properties_at + properties_length
    return np.int64(row)


@kernel
def draft_batch(source, lead, drafts):
    """Fill a draft for each message of a batch's body; return how many, -1 where it is malformed.

    `source` has `lead` bytes before the body; there is a row for each message that could be.
    """
    source = borrow(source)
    return draft_body(source, np.int64(lead), len(source), drafts, np.int64(0))
