"""Turn a message that asks for a delay into one that waits, before it is put.

Upstream: `HookUtils.handleScheduleMessage`, `transformDelayLevelMessage`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mqlake.formats import properties, sys_flag
from mqlake.formats.consume_queue import SCHEDULE_TOPIC, delay_level, parse_delay_levels
from mqlake.formats.properties import DELAY, REAL_QID, REAL_TOPIC
from mqlake.formats.property_edits import edit
from mqlake.formats.topic_names import TIMER_TOPIC
from mqlake.storage.clock import Clock, SystemClock
from mqlake.store.append.checks import Refusal, encode_properties
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import is_usable_topic
from mqlake.store.delivery.timer_messages import WHEN, asks_for_timer, check_room, put_aside
from mqlake.store.live_settings import Current
from mqlake.store.settings import StoreSettings

_DELAY = f"{DELAY}{properties.NAME_VALUE_SEPARATOR}".encode()
_DELAYED_KINDS = (sys_flag.TRANSACTION_NONE, sys_flag.TRANSACTION_COMMIT)
_TIMER = b"TIMER_DEL"


def may_be_delayed(message: Message) -> bool:
    """Return, at little cost, whether a message can ask for a delay."""
    data = message.encoded_properties
    if data is not None:
        return _DELAY in data or _TIMER in data
    pairs = message.properties
    return message.delay_level > 0 or (
        pairs is not None and (DELAY in pairs or asks_for_timer(pairs))
    )


class Schedule:
    """Transforms messages that ask for a delay.

    Raises:
        FormatError: `messageDelayLevel` is not a list of delays.
    """

    def __init__(self, settings: Current[StoreSettings], clock: Clock | None = None) -> None:
        self._settings, self._clock = settings, clock or SystemClock()
        self._last_level = len(parse_delay_levels(settings.now.message_delay_level))

    def apply(self, message: Message, *, is_new: bool = True) -> Message:
        """Return the message to put for one that asks for a delay; the same message if it asks for
        none.

        REAL_TOPIC and REAL_QID contain the target for when it is due. With a delay level, its topic
        is that of scheduled messages and its queue is its level less 1; a level beyond the last
        counts as the last. With its own delivery time, which counts if there is no level, its topic
        is that of timer messages. A message that cannot be put is returned as it is, and the put
        refuses it.

        Args:
            is_new: whether it was not accepted before, so that it must have room for the properties
                that a timer message gets until it is delivered.

        Raises:
            Refusal: its delivery time is invalid, or too far away; or it has too little room.
        """
        if not may_be_delayed(message):
            return message
        kind = sys_flag.transaction(message.sys_flag)
        is_fit = message.queue_id >= 0 and is_usable_topic(message.topic, self._settings.now)
        if kind not in _DELAYED_KINDS or not is_fit or message.topic == TIMER_TOPIC:
            return message
        try:
            # A message that is too long here loses optional properties when it is put again.
            data = encode_properties(message) if is_new else message.encoded_properties or b""
        except Refusal:
            return message
        pairs = properties.decode_properties(data)
        level = min(delay_level(pairs), self._last_level)
        if level <= 0:
            return self._at_time(message, data, pairs, is_new=is_new)
        added = {DELAY: str(level), REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
        return msgspec.structs.replace(
            message,
            topic=SCHEDULE_TOPIC,
            queue_id=level - 1,
            encoded_properties=edit(data, WHEN, added),
        )

    def _at_time(
        self, message: Message, data: bytes, pairs: Mapping[str, str], *, is_new: bool
    ) -> Message:
        if not asks_for_timer(pairs):
            return message
        waiting = put_aside(message, data, pairs, self._clock.milliseconds(), self._settings.now)
        if waiting is None:
            return message
        if is_new:
            check_room(waiting)
        return waiting
