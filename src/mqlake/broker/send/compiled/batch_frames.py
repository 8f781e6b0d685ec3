"""Encode a run of batches as drafts of records."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.send.compiled.send_header import (
    BATCH,
    LETTERS,
    PROPERTIES,
    QUEUE_ID,
    fill_draft,
    fill_send,
    queue_number,
    read_send,
)
from mqlake.broker.send.compiled.send_properties import find_key
from mqlake.dispatch.compiled.batch_body import draft_body
from mqlake.dispatch.compiled.record_crc import may_hold_crc
from mqlake.formats import properties, record_crc
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow
from mqlake.protocol.codes import RequestCode

_CODE = int(RequestCode.SEND_BATCH_MESSAGE)
_MOST_PROPERTIES = properties.MAX_LENGTH - record_crc.SIZE - 1


@inlined
def _draft_messages(data, at, end, drafts, first):
    """Fill a draft for each message of a body; return the row after them, -1 if it is unusual.

    It is unusual if a message contains a record CRC, or may leave no room for one.
    """
    behind = draft_body(data, at, end, drafts, first)
    for row in range(first, behind):
        text_at, length = drafts[row].properties_at, np.int64(drafts[row].properties_length)
        if length > _MOST_PROPERTIES or may_hold_crc(data, text_at, text_at + length):
            return np.int64(-1)
    return behind


@kernel
def draft_batches(data, at, topic, queues, most, numbers, queue_ids, drafts, sends):
    """Fill a send for each frame from `at` on, and a draft for each of its messages.

    Returns (number of sends, number of drafts, number of queues, position after them). It ends
    before the first frame that is incomplete, or not a typical batch to `topic`. The arguments are
    those of `draft_sends`.
    """
    data, topic = borrow(data), borrow(topic)
    starts, lengths = np.empty(LETTERS, np.int64), np.empty(LETTERS, np.int64)
    values = np.empty(LETTERS, np.int64)
    found = row = count = np.int64(0)
    while count < len(sends):
        body_at, following = read_send(
            data, at, _CODE, topic, queues, most, starts, lengths, values
        )
        if following == 0 or values[BATCH] != 1:
            break
        text_at = starts[PROPERTIES]
        key_at, key_length = find_key(data, text_at, text_at + lengths[PROPERTIES])
        if key_at < 0:
            break
        behind = _draft_messages(data, body_at, following, drafts, row)
        if behind < 0:
            break
        number, found = queue_number(values[QUEUE_ID], found, numbers, queue_ids)
        for at_row in range(row, behind):
            fill_draft(drafts[at_row], number, values)
        fill_send(sends[count], data, at, key_at, key_length, behind - row)
        at, row = following, behind
        count += 1
    return count, row, found, at
