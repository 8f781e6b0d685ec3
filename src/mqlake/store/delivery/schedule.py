"""Turn a message that asks for a delay into one of the schedule topic, before it is put.

RocketMQ: `HookUtils.handleScheduleMessage`, `transformDelayLevelMessage`.
"""

from __future__ import annotations

import msgspec

from mqlake.formats import properties, sys_flag
from mqlake.formats.consume_queue import SCHEDULE_TOPIC, delay_level, parse_delay_levels
from mqlake.formats.properties import DELAY, REAL_QID, REAL_TOPIC
from mqlake.store.append.checks import Refusal, encode_properties
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import is_usable_topic
from mqlake.store.settings import StoreSettings

_DELAY = f"{DELAY}{properties.NAME_VALUE_SEPARATOR}".encode()
_DELAYED_KINDS = (sys_flag.TRANSACTION_NONE, sys_flag.TRANSACTION_COMMIT)
_TIMER = ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS")


def may_be_delayed(message: Message) -> bool:
    """Say, at little cost, whether a message can ask for a delay."""
    data = message.encoded_properties
    if data is not None:
        return _DELAY in data
    return message.delay_level > 0 or (
        message.properties is not None and DELAY in message.properties
    )


class Schedule:
    """What becomes of messages that ask for a delay.

    Raises:
        FormatError: `messageDelayLevel` is not a list of delays.
    """

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._last_level = len(parse_delay_levels(settings.message_delay_level))

    def apply(self, message: Message) -> Message:
        """Return the message to put for one that asks for a delay; itself without a delay.

        Its topic is that of scheduled messages, its queue is its level less 1, and REAL_TOPIC and
        REAL_QID say where it goes when it is due. A level beyond the last counts as the last. What
        cannot be put is returned as it is, for the put to refuse it.
        """
        if not may_be_delayed(message):
            return message
        kind = sys_flag.transaction(message.sys_flag)
        is_fit = message.queue_id >= 0 and is_usable_topic(message.topic, self._settings)
        if kind not in _DELAYED_KINDS or not is_fit:
            return message
        try:
            pairs = properties.decode_properties(encode_properties(message))
        except Refusal:
            return message
        level = min(delay_level(pairs), self._last_level)
        if level <= 0:
            return message
        for name in _TIMER:
            pairs.pop(name, None)
        pairs |= {DELAY: str(level), REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
        return msgspec.structs.replace(
            message,
            topic=SCHEDULE_TOPIC,
            queue_id=level - 1,
            encoded_properties=properties.encode_pairs(pairs),
        )
