"""Encode a run of sends as drafts of records."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.send.compiled.send_header import (
    BATCH,
    FLAG,
    LETTERS,
    PROPERTIES,
    QUEUE_ID,
    fill_draft,
    fill_send,
    queue_number,
    read_send,
)
from mqlake.broker.send.compiled.send_properties import PAIR_END, find_key
from mqlake.kernels.jit import kernel
from mqlake.kernels.memory import borrow, copy, load_u8, store_u8
from mqlake.protocol.codes import RequestCode

_CODE = int(RequestCode.SEND_MESSAGE_V2)


@kernel
def draft_sends(data, at, topic, own, queues, most, numbers, queue_ids, drafts, sends, texts):
    """Fill a draft and a send for each frame from `at` on; return (number of sends, number of
    queues, position after them).

    It ends before the first frame that is incomplete, or not a typical send to `topic`.

    Args:
        own: what is stored after the properties of each.
        queues: queue ids are below it.
        most: maximum bytes of a frame, a header, a body and stored properties.
        numbers: for each queue id -1; gets the number of each that occurs.
        queue_ids: gets the queue id of each number.
        texts: has room for all of `data`, and of `own` one more byte a row.
    """
    data, topic, own, texts = borrow(data), borrow(topic), borrow(own), borrow(texts)
    starts, lengths = np.empty(LETTERS, np.int64), np.empty(LETTERS, np.int64)
    values = np.empty(LETTERS, np.int64)
    to = found = row = np.int64(0)
    while row < len(drafts):
        body_at, following = read_send(
            data, at, _CODE, topic, queues, most, starts, lengths, values
        )
        if following == 0 or values[BATCH] != 0:
            break
        text_at, text_length = starts[PROPERTIES], lengths[PROPERTIES]
        key_at, key_length = find_key(data, text_at, text_at + text_length)
        stored = text_length + 1 + len(own)
        if key_at < 0 or stored > most[3]:
            break
        draft = drafts[row]
        draft.properties_at = to
        copy(texts, to, data, text_at, text_length)
        to += text_length
        if load_u8(data, text_at + text_length - 1) != PAIR_END:
            store_u8(texts, to, PAIR_END)
            to += 1
        copy(texts, to, own, 0, len(own))
        to += len(own)
        draft.properties_length = to - draft.properties_at
        draft.body_at, draft.body_length = body_at, following - body_at
        draft.flag = values[FLAG]
        number, found = queue_number(values[QUEUE_ID], found, numbers, queue_ids)
        fill_draft(draft, number, values)
        fill_send(sends[row], data, at, key_at, key_length, 1)
        at = following
        row += 1
    return row, found, at
