"""Properties that brokers add to messages they have accepted (docs/formats/properties.md).

A message is put again when it is due, when its transaction is committed or checked, and when it is
sent back or popped again. Each time, some of these properties are added, but a record can have only
32767 bytes of properties. Therefore room for them is reserved when a message is accepted. Its size
follows from their names and their longest values.

Upstream: `MessageConst`.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqlake.formats.file_name import MAX_NAME_BYTES
from mqlake.formats.properties import (
    CRC32,
    DELAY,
    MAX_LENGTH,
    NAME_VALUE_SEPARATOR,
    ORIGIN_MESSAGE_ID,
    PROPERTY_SEPARATOR,
    REAL_QID,
    REAL_TOPIC,
    RETRY_TOPIC,
    TRANSACTION_ID,
)

TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
FIRST_HALF_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
FIRST_POP_TIME = "1ST_POP_TIME"
POP_RECEIPT = "POP_CK"
POP_GROUP = "POP_RETRY_GROUP"
"""The group that popped a message of a retry topic; mqlake's own.

`%RETRY%g_a_t` is the retry topic of group g for topic a_t, and that of group g_a for topic t.
"""
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
CLUSTER = "CLUSTER"

_INT = len(str(-(1 << 31)))
_LONG = len(str(-(1 << 63)))
_CRC_DIGITS = 10
_LONGEST_HOST = 16 + 4
_MESSAGE_ID = 2 * (_LONGEST_HOST + 8)
"""Hex digits of an offset message id whose host is IPv6's."""
_RECEIPT = 4 * _LONG + 2 * _INT + len("1") + MAX_NAME_BYTES + len("       ")
"""Queue offset twice, two times, two queues, the mark of the topic, the broker's name."""

_LONGEST_VALUES = {
    # Of a message that waits, and of one that is given back and waits for its delay level.
    REAL_TOPIC: MAX_NAME_BYTES,
    REAL_QID: _INT,
    DELAY: _INT,
    TIMER_OUT_MS: _LONG,
    TIMER_ENQUEUE_MS: _LONG,
    TIMER_DEQUEUE_MS: _LONG,
    TIMER_ROLL_TIMES: _LONG,
    CHECK_TIMES: _LONG,
    FIRST_HALF_OFFSET: _LONG,
    # Of a message that is given back, or popped again.
    RETRY_TOPIC: MAX_NAME_BYTES,
    ORIGIN_MESSAGE_ID: _MESSAGE_ID,
    FIRST_POP_TIME: _LONG,
    POP_RECEIPT: _RECEIPT,
    POP_GROUP: MAX_NAME_BYTES,
    # By a Java broker, in the dead-letter topic.
    "DLQ_ORIGIN_TOPIC": MAX_NAME_BYTES,
    "DLQ_ORIGIN_MESSAGE_ID": _MESSAGE_ID,
    # By clients, in what they send to their retry topic themselves.
    "RECONSUME_TIME": _INT,
    "MAX_RECONSUME_TIMES": _INT,
    "CONSUME_START_TIME": _LONG,
    "MIN_OFFSET": _LONG,
    "MAX_OFFSET": _LONG,
    # At the end of each record.
    CRC32: _CRC_DIGITS,
}

ADDED = frozenset(_LONGEST_VALUES)
"""Names of the properties that are added to a message after it was accepted."""


def pair_size(name: str, value: int) -> int:
    """Return the bytes of a property whose value takes so many."""
    return len(name) + len(NAME_VALUE_SEPARATOR) + value + len(PROPERTY_SEPARATOR)


def room_for(names: Iterable[str]) -> int:
    """Return the bytes of properties that have their longest values."""
    return sum(LARGEST[name] for name in names)


LARGEST = {name: pair_size(name, longest) for name, longest in _LONGEST_VALUES.items()}
"""Bytes that each of these properties takes at most."""

_SEPARATOR_ROOM = len(PROPERTY_SEPARATOR)
"""Properties that do not end with a separator get one before others are added."""

LONGEST_PUT = MAX_LENGTH - LARGEST[CRC32] - _SEPARATOR_ROOM
"""Bytes of properties that fit in a record together with its checksum."""

LONGEST_SENT = MAX_LENGTH - _SEPARATOR_ROOM - room_for(LARGEST)
"""Bytes of properties with which a broker accepts a message: all others still fit."""

ROLLED = (TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS, TIMER_ROLL_TIMES)
"""Properties that a timer message gets while it waits."""
CHECKED = (CHECK_TIMES, FIRST_HALF_OFFSET)
"""Properties that a half message gets while it waits."""
TIMED = (TIMER_OUT_MS, *ROLLED)
"""Properties that a half message gets if its committed message is a timer message."""

OPTIONAL = (
    CRC32,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    FIRST_POP_TIME,
    "CONSUME_START_TIME",
    "MIN_OFFSET",
    "MAX_OFFSET",
    POP_RECEIPT,
    TRACE_ON,
    MSG_REGION,
    CLUSTER,
    TRANSACTION_ID,
    REAL_QID,
    REAL_TOPIC,
    DELAY,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    CHECK_TIMES,
    FIRST_HALF_OFFSET,
    ORIGIN_MESSAGE_ID,
    POP_GROUP,
    RETRY_TOPIC,
)
"""Properties that are dropped, in this order, from a message that is too long to be put again.

No consumer depends on them; while a message waits, those that its delivery needs are kept.
"""
