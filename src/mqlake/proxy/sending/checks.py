"""What a message must be to be sent (upstream: `SendMessageActivity`, `GrpcValidator`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from mqlake.formats.properties import MAX_LENGTH, NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR
from mqlake.grpc.messages import Code, Message, SystemProperties
from mqlake.protocol.reserved_properties import RESERVED
from mqlake.proxy.errors import StatusError
from mqlake.proxy.settings import ProxySettings

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
OTHER_CONTROL: Final = re.compile("[\x00\x03-\x1f\x7f-\x9f]")
"""Control characters that do not separate properties."""
LONGEST: Final = 255
"""Characters of a message id, and of the name of a host."""
LONGEST_TRACE: Final = 4096
"""Characters of a trace context."""
_LITE_TOPIC: Final = re.compile("[A-Za-z0-9_-]+")
_INT64: Final = 1 << 63


class MessageChecks:
    """Checks messages.

    Args:
        settings: the limits.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._is_empty_refused = settings.enable_message_body_empty_check

    def are_passed(self, message: Message, text: str, pairs: int) -> bool:
        """Return whether `check` would certainly find nothing; this takes less time.

        Args:
            text: the properties with which the message is stored; those of the user, the id, the
                tag, the keys and the group are among them.
            pairs: their number.
        """
        system, user, settings = message.system_properties, message.user_properties, self._settings
        group, size = system.message_group, len(text)
        return (
            text.count(NAME_VALUE_SEPARATOR) == text.count(PROPERTY_SEPARATOR) == pairs
            and OTHER_CONTROL.search(text) is None
            and size <= settings.max_user_property_size
            and (text.isascii() or 4 * size <= settings.max_user_property_size)
            and 0 < len(message.body) <= settings.max_message_size
            and len(user) <= settings.user_property_max_num
            and RESERVED.isdisjoint(user)
            and 0 < len(system.message_id.strip()) <= LONGEST
            and len(system.born_host) <= LONGEST
            and len(system.trace_context) <= LONGEST_TRACE
            and (not system.HasField("tag") or (bool(system.tag.strip()) and "|" not in system.tag))
            and all(map(str.strip, system.keys))
            and (not system.HasField("message_group") or is_short(group, settings))
            and not system.HasField("orphaned_transaction_recovery_duration")
            and not system.HasField("lite_topic")
        )

    def check(self, message: Message) -> None:
        """Refuse a message that cannot be sent.

        Raises:
            StatusError: the reason.
        """
        system = message.system_properties
        if not system.message_id.strip():
            raise StatusError(Code.ILLEGAL_MESSAGE_ID, "message id cannot be null")
        if _CONTROL.search(system.message_id) or len(system.message_id) > LONGEST:
            reason = f"message id has control characters, or more than {LONGEST} characters"
            raise StatusError(Code.ILLEGAL_MESSAGE_ID, reason)
        self._check_body(len(message.body))
        size = self._user_properties(message.user_properties)
        size += _tag(system) + _keys(system.keys)
        most = self._settings.max_user_property_size
        if size > most:
            reason = f"the properties have {size} bytes; the maximum is {most}"
            raise StatusError(Code.MESSAGE_PROPERTIES_TOO_LARGE, reason)
        if system.HasField("message_group"):
            self._check_group(system.message_group)
        if system.lite_topic:
            check_lite_topic(system.lite_topic, self._settings.max_lite_topic_size)
        for name in ("trace_context", "born_host"):
            if _CONTROL.search(getattr(system, name)):
                raise StatusError(Code.BAD_REQUEST, f"{name} has control characters")
        for name, most in (("trace_context", LONGEST_TRACE), ("born_host", LONGEST)):
            if len(getattr(system, name)) > most:
                reason = f"{name} has more than {most} characters"
                raise StatusError(Code.BAD_REQUEST, reason)
        self._check_recovery(system)

    def _check_body(self, size: int) -> None:
        if not size and self._is_empty_refused:
            raise StatusError(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
        most = self._settings.max_message_size
        if size > most:
            reason = f"message body cannot exceed the max {most}"
            raise StatusError(Code.MESSAGE_BODY_TOO_LARGE, reason)

    def _user_properties(self, properties: Mapping[str, str]) -> int:
        """Check the properties of the user; return their size."""
        most, size = self._settings.user_property_max_num, 0
        if len(properties) > most:
            reason = f"there are {len(properties)} user properties; the maximum is {most}"
            raise StatusError(Code.MESSAGE_PROPERTIES_TOO_LARGE, reason)
        for name, value in properties.items():
            if name in RESERVED:
                reason = f"property is used by system: {name}"
                raise StatusError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, reason)
            if _CONTROL.search(name) or _CONTROL.search(value):
                reason = f"a property has control characters: {name[:255]!r}"
                raise StatusError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, reason)
            size += _size(name) + _size(value)
        return size

    def _check_group(self, group: str) -> None:
        most = self._settings.max_message_group_size
        if not group.strip() or _CONTROL.search(group):
            reason = "message group cannot be blank, or have control characters"
            raise StatusError(Code.ILLEGAL_MESSAGE_GROUP, reason)
        if _size(group) >= most:
            reason = f"message group must have fewer than {most} bytes"
            raise StatusError(Code.ILLEGAL_MESSAGE_GROUP, reason)

    def _check_recovery(self, system: SystemProperties) -> None:
        most = self._settings.max_transaction_recovery_second
        seconds = system.orphaned_transaction_recovery_duration.seconds
        if not 0 <= seconds <= most:
            reason = f"the recovery duration of {seconds} s is not between 0 and {most} s"
            raise StatusError(Code.BAD_REQUEST, reason)

    def delivery_time(self, system: SystemProperties, now: int) -> int:
        """Return when a message is to be delivered, milliseconds since 1970.

        Raises:
            StatusError: ILLEGAL_DELIVERY_TIME: it is too far ahead.
        """
        at = system.delivery_timestamp
        found = at.seconds * 1000 + at.nanos // 1_000_000
        most = self._settings.max_delay_time_mills
        if found - now > most:
            reason = f"the max delay time of message is too large, max is {most} ms"
            raise StatusError(Code.ILLEGAL_DELIVERY_TIME, reason)
        if not 0 <= found < _INT64:
            raise StatusError(Code.ILLEGAL_DELIVERY_TIME, "the delivery time is before 1970")
        return found


def check_lite_topic(name: str, most: int) -> None:
    """Refuse a text that is not the name of a lite topic.

    Raises:
        StatusError: ILLEGAL_LITE_TOPIC.
    """
    if len(name) > most or _LITE_TOPIC.fullmatch(name) is None:
        reason = f"a lite topic has 1 to {most} letters, digits, - and _: {name[:100]!r}"
        raise StatusError(Code.ILLEGAL_LITE_TOPIC, reason)


def check_stored(text: str) -> None:
    """Refuse properties that do not fit into a record.

    Raises:
        StatusError: MESSAGE_PROPERTIES_TOO_LARGE.
    """
    if (size := _size(text)) > MAX_LENGTH:
        reason = f"the properties have {size} bytes as they are stored; the maximum is {MAX_LENGTH}"
        raise StatusError(Code.MESSAGE_PROPERTIES_TOO_LARGE, reason)


def is_short(group: str, settings: ProxySettings) -> bool:
    """Return whether a message group is certainly not too long, and not blank."""
    return bool(group.strip()) and 4 * len(group) < settings.max_message_group_size


def _tag(system: SystemProperties) -> int:
    """Check the tag; return its size."""
    if not system.HasField("tag"):
        return 0
    tag = system.tag
    if not tag.strip() or "|" in tag or _CONTROL.search(tag):
        reason = f"tag cannot be blank, or contain | or control characters: {tag[:255]!r}"
        raise StatusError(Code.ILLEGAL_MESSAGE_TAG, reason)
    return _size(tag)


def _keys(keys: Iterable[str]) -> int:
    """Check the keys; return their size."""
    size = 0
    for key in keys:
        if not key.strip() or _CONTROL.search(key):
            reason = f"key cannot be blank, or have control characters: {key[:255]!r}"
            raise StatusError(Code.ILLEGAL_MESSAGE_KEY, reason)
        size += _size(key)
    return size


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
