"""The messages that implement arbitrary delivery times, as RocketMQ 5.x writes them.

A message waits in TIMER_TOPIC, queue 0, with the time it is due, its real topic and its real queue.
Upstream: `HookUtils.transformTimerMessage`, `TimerMessageStore`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from mqlake.formats.own_properties import (
    LONGEST_PUT,
    ROLLED,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    room_for,
)
from mqlake.formats.properties import (
    CANCEL,
    DELAY_MS,
    DELAY_SEC,
    DELIVER_MS,
    REAL_QID,
    REAL_TOPIC,
    UNIQ_KEY,
)
from mqlake.formats.property_edits import edit
from mqlake.formats.record import Record
from mqlake.formats.topic_names import TIMER_TOPIC, WAITING
from mqlake.store.append.checks import Refusal
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.delivery.put_again import real_queue
from mqlake.store.settings import StoreSettings
from mqlake.store.stored import Stored, message_of

WHEN = (DELAY_SEC, DELAY_MS, DELIVER_MS)
"""The properties that ask for a time; the first one counts."""
OUT_MS = TIMER_OUT_MS
"""The slot after which the message is due, milliseconds."""

_NUMBER = re.compile("[+-]?[0-9]{1,18}")
_SECOND = 1000
_LONGEST_WAITING = LONGEST_PUT - room_for(ROLLED)


class MessageIdentity(NamedTuple):
    """The properties that a message keeps when it is put again; `times`: how often that
    happened.
    """

    out: int
    born_timestamp: int
    unique_key: str
    body: bytes
    times: int


def asks_for_timer(pairs: Mapping[str, str]) -> bool:
    """Return whether a message asks for a delivery time."""
    return OUT_MS not in pairs and any(name in pairs for name in WHEN)


def put_aside(
    message: Message, data: bytes, pairs: Mapping[str, str], now: int, settings: StoreSettings
) -> Message | None:
    """Return the waiting message for one that asks for a time, None if that time has passed.

    Args:
        data: the properties of the message, encoded.
        pairs: the same, decoded.

    Raises:
        Refusal: the time is not a number, or too far away.
    """
    out = check_time(pairs, now, settings)
    if out is None:
        return None
    added = {OUT_MS: str(out), REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
    return msgspec.structs.replace(
        message, topic=TIMER_TOPIC, queue_id=0, encoded_properties=edit(data, add=added)
    )


def check_room(waiting: Message) -> None:
    """Check that a timer message has room for the properties that it gets while it waits.

    Raises:
        Refusal: PROPERTIES_SIZE_EXCEEDED.
    """
    size = len(waiting.encoded_properties or b"")
    if size > _LONGEST_WAITING:
        raise Refusal(
            PutStatus.PROPERTIES_SIZE_EXCEEDED,
            f"the properties of the waiting timer message need {size} bytes; the maximum is "
            f"{_LONGEST_WAITING}: {room_for(ROLLED)} are reserved for the properties that it "
            "gets until it is delivered",
        )


def check_time(pairs: Mapping[str, str], now: int, settings: StoreSettings) -> int | None:
    """Return the slot (ms) after which a message is due, None if that time has passed.

    Raises:
        Refusal: the time is not a number, or too far away.
    """
    if not settings.timer_wheel_enable:
        raise Refusal(PutStatus.WHEEL_TIMER_NOT_ENABLE, "timerWheelEnable is off")
    due = _due(pairs, now)
    if due <= now:
        if CANCEL in pairs:
            raise Refusal(PutStatus.WHEEL_TIMER_MSG_ILLEGAL, "it is too late to recall the message")
        return None
    if due - now > settings.timer_max_delay_sec * _SECOND:
        raise Refusal(
            PutStatus.WHEEL_TIMER_MSG_ILLEGAL,
            f"the delivery time is {due - now} ms away; the maximum is timerMaxDelaySec = "
            f"{settings.timer_max_delay_sec}",
        )
    # A message is delivered once its slot is over, so never too early.
    return (due - 1) // settings.timer_precision_ms * settings.timer_precision_ms


def _due(pairs: Mapping[str, str], now: int) -> int:
    name = next(name for name in WHEN if name in pairs)
    if not _NUMBER.fullmatch(pairs[name]):
        reason = f"{name} is not a number: {pairs[name][:40]!r}"
        raise Refusal(PutStatus.WHEEL_TIMER_MSG_ILLEGAL, reason)
    number = int(pairs[name])
    return number if name == DELIVER_MS else now + number * (_SECOND if name == DELAY_SEC else 1)


def due_slot(pairs: Mapping[str, str]) -> int | None:
    """Return the slot (ms) after which a waiting message is due, None if it does not contain it."""
    text = pairs.get(OUT_MS, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def delivered(waiting: Stored, now: int) -> Message | None:
    """Return the message for consumers, None if the waiting one does not contain its target."""
    record = waiting.record
    target = real_queue(record.properties)
    if target is None or target[0] in WAITING:
        return None
    times = {TIMER_ENQUEUE_MS: str(record.store_timestamp), TIMER_DEQUEUE_MS: str(now)}
    data = edit(waiting.properties, (REAL_TOPIC, REAL_QID), times)
    return message_of(record, *target, data, record.sys_flag)


def rolled(waiting: Stored, now: int) -> Message:
    """Return a waiting message that is put again, before retention removes it."""
    record = waiting.record
    times = roll_times(record.properties)
    added = {
        TIMER_ENQUEUE_MS: str(record.store_timestamp),
        TIMER_DEQUEUE_MS: str(now),
        TIMER_ROLL_TIMES: str(times + 1),
    }
    data = edit(waiting.properties, add=added)
    return message_of(record, TIMER_TOPIC, record.queue_id, data, record.sys_flag)


def roll_times(pairs: Mapping[str, str]) -> int:
    """Return how often a waiting message was put again."""
    text = pairs.get(TIMER_ROLL_TIMES, "")
    return int(text) if _NUMBER.fullmatch(text) else 0


def identity(waiting: Record, out: int, times: int) -> MessageIdentity:
    """Return what all copies of a message that was put again so often have in common."""
    pairs = waiting.properties
    return MessageIdentity(
        out, waiting.born_timestamp, pairs.get(UNIQ_KEY, ""), waiting.body, times
    )
