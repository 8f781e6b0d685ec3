"""Lay the messages of a batch's body out as drafts of records.

It comes from a client and may be anything.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats import message_batch, properties
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, load_i32, load_u16

_HEAD_SIZE, _LENGTH_SIZE = message_batch.HEAD.size, message_batch.LENGTH.size
_BODY_LENGTH_AT, _FLAG_AT = message_batch.BODY_LENGTH_AT, message_batch.FLAG_AT
_MAX_PROPERTIES = properties.MAX_LENGTH


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
        if properties_length > min(_MAX_PROPERTIES, end - properties_at):
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
