"""The messages that arbitrary delivery times are made of, as RocketMQ 5.x writes them.

A message waits in TIMER_TOPIC, queue 0, with the time it is due, its real topic and its real queue.
RocketMQ: `HookUtils.transformTimerMessage`, `TimerMessageStore`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from mqlake.formats import properties
from mqlake.formats.properties import REAL_QID, REAL_TOPIC, UNIQ_KEY
from mqlake.formats.record import Record
from mqlake.store.append.checks import Refusal
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.delivery.put_again import message_of, real_queue
from mqlake.store.settings import StoreSettings

TIMER_TOPIC = "rmq_sys_wheel_timer"

DELIVER_MS = "TIMER_DELIVER_MS"
DELAY_SEC = "TIMER_DELAY_SEC"
DELAY_MS = "TIMER_DELAY_MS"
WHEN = (DELAY_SEC, DELAY_MS, DELIVER_MS)
"""What a message asks with, the first counts."""
OUT_MS = "TIMER_OUT_MS"
"""The slot after which the message is due, milliseconds."""
CANCEL = "TIMER_DEL_UNIQKEY"
"""Of a message that takes back another one of the same slot: the UNIQ_KEY of that one."""

_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
_ROLL_TIMES = "TIMER_ROLL_TIMES"
_NUMBER = re.compile("[+-]?[0-9]{1,18}")
_SECOND = 1000


class Identity(NamedTuple):
    """What a message that was put again keeps."""

    out: int
    born_timestamp: int
    unique_key: str
    body: bytes


def asks_for_timer(pairs: Mapping[str, str]) -> bool:
    """Say whether a message asks for a time at which it is to be delivered."""
    return OUT_MS not in pairs and any(name in pairs for name in WHEN)


def put_aside(
    message: Message, pairs: dict[str, str], now: int, settings: StoreSettings
) -> Message | None:
    """Return the message that waits for one that asks for a time, None if that is over.

    Args:
        pairs: the properties of the message.

    Raises:
        Refusal: the time is no number, or too far away.
    """
    if not settings.timer_wheel_enable:
        raise Refusal(PutStatus.WHEEL_TIMER_NOT_ENABLE, "timerWheelEnable is off")
    due = _due(pairs, now)
    if due <= now:
        if CANCEL in pairs:
            raise Refusal(PutStatus.WHEEL_TIMER_MSG_ILLEGAL, "too late to take a message back")
        return None
    if due - now > settings.timer_max_delay_sec * _SECOND:
        raise Refusal(
            PutStatus.WHEEL_TIMER_MSG_ILLEGAL,
            f"{due - now} ms away, more than timerMaxDelaySec = {settings.timer_max_delay_sec}",
        )
    # A message is delivered once its slot is over: never too early.
    out = (due - 1) // settings.timer_precision_ms * settings.timer_precision_ms
    pairs |= {OUT_MS: str(out), REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
    return msgspec.structs.replace(
        message,
        topic=TIMER_TOPIC,
        queue_id=0,
        encoded_properties=properties.encode_pairs(pairs),
    )


def _due(pairs: Mapping[str, str], now: int) -> int:
    name = next(name for name in WHEN if name in pairs)
    if not _NUMBER.fullmatch(pairs[name]):
        reason = f"{name} is no number: {pairs[name][:40]!r}"
        raise Refusal(PutStatus.WHEEL_TIMER_MSG_ILLEGAL, reason)
    number = int(pairs[name])
    return number if name == DELIVER_MS else now + number * (_SECOND if name == DELAY_SEC else 1)


def due_slot(pairs: Mapping[str, str]) -> int | None:
    """Return the slot (ms) that a waiting message is due after, None where it does not say."""
    text = pairs.get(OUT_MS, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def delivered(waiting: Record, now: int) -> Message | None:
    """Return the message that consumers get, None where it does not say where it goes."""
    target = real_queue(waiting.properties)
    if target is None:
        return None
    pairs = {
        name: value
        for name, value in waiting.properties.items()
        if name not in (REAL_TOPIC, REAL_QID)
    }
    pairs |= {_ENQUEUE_MS: str(waiting.store_timestamp), _DEQUEUE_MS: str(now)}
    return message_of(waiting, *target, properties.encode_pairs(pairs), waiting.sys_flag)


def rolled(waiting: Record, now: int) -> Message:
    """Return a waiting message to be put again, before retention removes it."""
    times = waiting.properties.get(_ROLL_TIMES, "0")
    times = int(times) if _NUMBER.fullmatch(times) else 0
    pairs = {
        **waiting.properties,
        _ENQUEUE_MS: str(waiting.store_timestamp),
        _DEQUEUE_MS: str(now),
        _ROLL_TIMES: str(times + 1),
    }
    data = properties.encode_pairs(pairs)
    return message_of(waiting, TIMER_TOPIC, waiting.queue_id, data, waiting.sys_flag)


def is_rolled(pairs: Mapping[str, str]) -> bool:
    """Say whether a waiting message was put again."""
    return _ROLL_TIMES in pairs


def identity(waiting: Record, out: int) -> Identity:
    """Return what a waiting message and the one put again for it have in common."""
    pairs = waiting.properties
    return Identity(out, waiting.born_timestamp, pairs.get(UNIQ_KEY, ""), waiting.body)
