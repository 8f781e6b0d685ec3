"""Read the frame of one typical send, of a message or a batch, of any topic."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.json_send import read_json_send, unescape
from mqlake.broker.lane.compiled.send_header import (
    BATCH,
    BORN,
    FLAG,
    LETTERS,
    PROPERTIES,
    QUEUE_ID,
    SYS_FLAG,
    TIMES,
    TOPIC,
    read_any_send,
)
from mqlake.broker.lane.compiled.send_properties import PAIR_END, find_key
from mqlake.dispatch.compiled import put_sent
from mqlake.kernels.jit import brief_kernel
from mqlake.kernels.memory import borrow, copy, load_u8, store_u8
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization

_CODE, _BATCH_CODE = int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE)
_JSON = int(Serialization.JSON)
_BODY_AT, _BODY_SIZE = put_sent.BODY_AT, put_sent.BODY_SIZE
_PROPERTIES_SIZE, _FLAG = put_sent.PROPERTIES_SIZE, put_sent.FLAG
_SYS_FLAG, _BORN_TIMESTAMP = put_sent.SYS_FLAG, put_sent.BORN_TIMESTAMP
_RECONSUME_TIMES = put_sent.RECONSUME_TIMES


@brief_kernel
def read_send(data, at, own, most, starts, lengths, properties, message):
    """Read the SEND_MESSAGE_V2, or the SEND_BATCH_MESSAGE of a batch, at a position.

    Args:
        own: stored after the properties of each.
        most: maximum bytes of a frame, a header, a body and stored properties.
        starts, lengths: i8[FIELDS], get the fields: see `read_any_send`. The properties begin in
            `properties`, and have the length that is there.
        properties: gets the properties, as those of a single message are stored, if they are not
            too long for it.
        message: i8[n], gets the numbers that `put_sent` needs; of a batch, its whole body counts.

    Returns:
        The position after the frame, 0 if it is not typical; the position and the length of the
        topic; the queue id; the opaque; the position in `properties` and the length of the key, and
        of the lite topic, whose length is 0 without one; whether it is a batch: 0 or 1.
    """
    zero = np.int64(0)
    nothing = zero, zero, zero, zero, zero, zero, zero, zero, zero, zero
    data, own, most = borrow(data), borrow(own), borrow(most)
    properties, message = borrow(properties), borrow(message)
    starts, lengths = borrow(starts), borrow(lengths)
    values = np.empty(LETTERS, np.int64)
    if len(data) - at < 5:
        return nothing
    is_json = load_u8(data, at + 4) == _JSON
    if is_json:
        found = read_json_send(data, at, most, starts, lengths, values)
    else:
        found = read_any_send(data, at, most, starts, lengths, values)
    body_at, following, code, opaque = found
    if following == 0 or code != (_CODE if values[BATCH] == 0 else _BATCH_CODE):
        return nothing
    size = lengths[PROPERTIES]
    if size + 1 + len(own) > len(properties):
        return nothing
    if is_json:
        lengths[PROPERTIES] = size = unescape(data, starts[PROPERTIES], size, properties)
    else:
        copy(properties, 0, data, starts[PROPERTIES], size)
    key_at, key_length, lite_at, lite_length = find_key(properties, 0, size)
    if key_at < 0 or (lite_length > 0 and values[BATCH] != 0):
        return nothing
    if load_u8(properties, size - 1) != PAIR_END:
        store_u8(properties, size, PAIR_END)
        size += 1
    copy(properties, size, own, 0, len(own))
    size += len(own)
    if size > most[3]:
        return nothing
    message[_BODY_AT], message[_BODY_SIZE] = body_at, following - body_at
    message[_PROPERTIES_SIZE], message[_FLAG] = size, values[FLAG]
    message[_SYS_FLAG], message[_BORN_TIMESTAMP] = values[SYS_FLAG], values[BORN]
    message[_RECONSUME_TIMES] = values[TIMES]
    topic_at, topic_size, queue_id = starts[TOPIC], lengths[TOPIC], values[QUEUE_ID]
    spans = key_at, key_length, lite_at, lite_length
    return following, topic_at, topic_size, queue_id, opaque, *spans, values[BATCH]
