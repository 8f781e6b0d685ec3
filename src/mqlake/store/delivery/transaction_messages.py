"""The messages that a transaction is made of, as RocketMQ 5.5 writes them.

A half message waits in HALF_TOPIC. What ended it is a message of OP_TOPIC, in the queue of the same
id, whose body names the queue offsets of the halves: "12,15,". RocketMQ:
`TransactionalMessageBridge`, `EndTransactionProcessor`, `DefaultTransactionalMessageCheckListener`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mqlake.formats import properties, sys_flag
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
from mqlake.formats.record import Record
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import message_of, real_queue

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARDED_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
GROUP = "CID_RMQ_SYS_TRANS"
"""The consumer group whose offsets say how far both topics are done with."""

CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
FIRST_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
"""Of a half that was put again unchecked: the queue offset of the first copy."""

_REMOVE = "d"
_OFFSET = re.compile("[0-9]{1,19}")
_NUMBER = re.compile("[+-]?[0-9]{1,18}")


def half_of(message: Message, pairs: Mapping[str, str], group: str | None) -> Message:
    """Return the half message to put for a message; `pairs` are its properties.

    A transaction has no delay: RocketMQ's client takes the property away, its broker would lose the
    message.
    """
    found = {name: value for name, value in pairs.items() if name != DELAY}
    found.setdefault(TRAN_MSG, "true")
    if group is not None:
        found[PGROUP] = group
    if UNIQ_KEY in found:
        found[TRANSACTION_ID] = found[UNIQ_KEY]
    found |= {REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
    return msgspec.structs.replace(
        message,
        topic=HALF_TOPIC,
        queue_id=0,
        sys_flag=message.sys_flag & ~sys_flag.TRANSACTION_MASK,
        encoded_properties=properties.encode_pairs(found),
    )


def committed(half: Record) -> Message | None:
    """Return the message that consumers get, None where the half does not say where it goes."""
    target = real_queue(half.properties)
    if target is None:
        return None
    pairs = {name: v for name, v in half.properties.items() if name not in (REAL_TOPIC, REAL_QID)}
    flags = half.sys_flag & ~sys_flag.TRANSACTION_MASK | sys_flag.TRANSACTION_COMMIT
    message = message_of(half, *target, properties.encode_pairs(pairs), flags)
    return msgspec.structs.replace(message, prepared_transaction_offset=half.physical_offset)


def renewed(half: Record, changes: Mapping[str, str]) -> Message:
    """Return a half message to be put again behind the others, with other properties."""
    data = properties.encode_pairs({**half.properties, **changes})
    return message_of(half, HALF_TOPIC, half.queue_id, data, half.sys_flag)


def discarded(half: Record) -> Message:
    """Return the message that keeps a half whose producer never answered."""
    data = properties.encode_pairs(half.properties)
    return message_of(half, DISCARDED_TOPIC, 0, data, half.sys_flag)


def op_of(queue_id: int, queue_offset: int) -> Message:
    """Return the message that ends the half of a queue offset."""
    data = properties.encode_pairs({WAIT: "true", TAGS: _REMOVE})
    body = f"{queue_offset},".encode()
    return Message(topic=OP_TOPIC, body=body, queue_id=queue_id, encoded_properties=data)


def ended_by(op: Record) -> list[int]:
    """Return the queue offsets of the halves that a message of OP_TOPIC ends."""
    if op.tags != _REMOVE:
        return []
    parts = op.body.decode("utf-8", "replace").split(",")
    return [int(part) for part in parts if _OFFSET.fullmatch(part)]


def number(half: Record, name: str) -> int | None:
    """Return a property as a number, None where there is none; -1 where it is no number."""
    text = half.properties.get(name)
    if text is None:
        return None
    return int(text) if _NUMBER.fullmatch(text) else -1
