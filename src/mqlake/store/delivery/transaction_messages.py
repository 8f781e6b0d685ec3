"""The messages that implement transactions, as RocketMQ 5.5 writes them.

A half message waits in HALF_TOPIC. A message of OP_TOPIC in the queue with the same id ends it: its
body contains the queue offsets of the half messages, "12,15,". RocketMQ:
`TransactionalMessageBridge`, `EndTransactionProcessor`, `DefaultTransactionalMessageCheckListener`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mqlake.formats import properties, sys_flag
from mqlake.formats.own_properties import (
    CHECK_TIMES,
    CHECKED,
    FIRST_HALF_OFFSET,
    LONGEST_PUT,
    TIMED,
    room_for,
)
from mqlake.formats.properties import (
    DELAY,
    PGROUP,
    REAL_QID,
    REAL_TOPIC,
    TAGS,
    TRAN_MSG,
    TRANSACTION_ID,
    UNIQ_KEY,
    WAIT,
)
from mqlake.formats.property_edits import edit
from mqlake.formats.record import Record
from mqlake.formats.topic_names import DISCARDED_TOPIC, HALF_TOPIC, OP_TOPIC, WAITING
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import real_queue
from mqlake.store.delivery.timer_messages import asks_for_timer
from mqlake.store.stored import Stored, message_of

__all__ = ["CHECK_TIMES", "DISCARDED_TOPIC", "HALF_TOPIC", "OP_TOPIC"]

GROUP = "CID_RMQ_SYS_TRANS"
"""The consumer group whose offsets record how far both topics are finished."""

IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
FIRST_OFFSET = FIRST_HALF_OFFSET
"""The property of a half message that was put again unchecked: the queue offset of the first
copy.
"""

_REMOVE = "d"
_OFFSET = re.compile("[0-9]{1,19}")
_NUMBER = re.compile("[+-]?[0-9]{1,18}")
_LONGEST_OP = 1 << 16
"""Maximum bytes of an op message that are read; RocketMQ writes up to 4096
(`transactionOpMsgMaxSize`).
"""


def half_of(message: Message, data: bytes, group: str | None) -> Message:
    """Return the half message to put for a message.

    A transaction has no delay: RocketMQ's client removes the property, its broker would lose the
    message.

    Args:
        data: the properties of the message, encoded.

    Raises:
        FormatError: the group or the topic cannot be stored as a property.
    """
    pairs = properties.decode_properties(data)
    added = {REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
    if TRAN_MSG not in pairs:
        added[TRAN_MSG] = "true"
    if group is not None:
        added[PGROUP] = group
    if UNIQ_KEY in pairs:
        added[TRANSACTION_ID] = pairs[UNIQ_KEY]
    return msgspec.structs.replace(
        message,
        topic=HALF_TOPIC,
        queue_id=0,
        sys_flag=message.sys_flag & ~sys_flag.TRANSACTION_MASK,
        encoded_properties=edit(data, (DELAY,), added),
    )


def longest_half(pairs: Mapping[str, str]) -> int:
    """Return the size of the properties with which a half message can be checked and delivered.

    Args:
        pairs: its properties.
    """
    room = room_for(CHECKED) + (room_for(TIMED) if asks_for_timer(pairs) else 0)
    return LONGEST_PUT - room


def committed(half: Stored) -> Message | None:
    """Return the message for consumers, None if the half message does not contain its target."""
    record = half.record
    target = real_queue(record.properties)
    if target is None or target[0] in WAITING:
        return None
    flags = record.sys_flag & ~sys_flag.TRANSACTION_MASK | sys_flag.TRANSACTION_COMMIT
    data = edit(half.properties, (REAL_TOPIC, REAL_QID))
    message = message_of(record, *target, data, flags)
    return msgspec.structs.replace(message, prepared_transaction_offset=record.physical_offset)


def renewed(half: Stored, changes: Mapping[str, str]) -> Message:
    """Return a half message that is put again after the others, with other properties."""
    record = half.record
    data = edit(half.properties, add=changes)
    return message_of(record, HALF_TOPIC, record.queue_id, data, record.sys_flag)


def discarded(half: Stored) -> Message:
    """Return the message that stores a half message whose producer never answered."""
    return message_of(half.record, DISCARDED_TOPIC, 0, half.properties, half.record.sys_flag)


def op_of(queue_id: int, queue_offset: int) -> Message:
    """Return the message that ends the half message at a queue offset."""
    data = properties.encode_pairs({WAIT: "true", TAGS: _REMOVE})
    body = f"{queue_offset},".encode()
    return Message(topic=OP_TOPIC, body=body, queue_id=queue_id, encoded_properties=data)


def ended_by(op: Record) -> list[int]:
    """Return the queue offsets of the half messages that a message of OP_TOPIC ends."""
    if op.tags != _REMOVE:
        return []
    parts = op.body[:_LONGEST_OP].decode("utf-8", "replace").split(",")
    return [int(part) for part in parts if _OFFSET.fullmatch(part)]


def number(half: Record, name: str) -> int | None:
    """Return a property as a number, None if it is missing; -1 if it is not a number."""
    text = half.properties.get(name)
    if text is None:
        return None
    return int(text) if _NUMBER.fullmatch(text) else -1
