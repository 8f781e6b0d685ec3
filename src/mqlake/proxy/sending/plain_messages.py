"""Messages without special features, which are checked together: most batches consist of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mqlake.formats.properties import (
    KEY_SEPARATOR,
    KEYS,
    NAME_VALUE_SEPARATOR,
    PGROUP,
    PROPERTY_SEPARATOR,
    SHARDING_KEY,
    TAGS,
    UNIQ_KEY,
)
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.grpc.messages import Encoding, Message, MessageType, SystemProperties
from mqlake.protocol.reserved_properties import RESERVED
from mqlake.proxy.sending.checks import LONGEST, LONGEST_TRACE, OTHER_CONTROL, is_short
from mqlake.proxy.sending.outgoing_properties import (
    BORN_HOST,
    BORN_TIME,
    TRACE_CONTEXT,
    Prepared,
    born_at,
)
from mqlake.proxy.settings import ProxySettings

_IS, _END = NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR
_OWN: Final = RESERVED | {SHARDING_KEY, TRACE_CONTEXT}
"""Names that a user may not give to a property, or that may be written here, too."""
_ALLOWED: Final = bytes(set(range(32, 127)) | {ord(_IS), ord(_END)})
"""The ASCII characters that are no control characters, and the separators."""
_TRANSACTION: Final = MessageType.TRANSACTION
_GZIP: Final = Encoding.GZIP


class PlainMessages:
    """Prepares messages as `prepared` does, in less time.

    What needs all characters is checked once over what the messages have together. In doubt,
    nothing is decided here: `prepared` then checks each message, and reports what is wrong.

    Args:
        settings: the limits.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._most_properties = settings.user_property_max_num

    def prepared(
        self, messages: Sequence[Message], topic: str, host: str, now: int
    ) -> list[Prepared] | None:
        """Return messages as a broker gets them; None if one of them is not plain, may be refused,
        or differs from the others in its topic, its group or its encoding.

        Args:
            topic: their topic on the cluster.
            host: the address of the client.
            now: milliseconds since 1970.
        """
        if not host:
            return None
        first, found, pairs = messages[0], list[Prepared](), 0
        resource, system = first.topic, first.system_properties
        group, encoding = system.message_group, system.body_encoding
        kind = MessageType.FIFO if group else MessageType.NORMAL
        flag = COMPRESSED if encoding == _GZIP else 0
        middle = [f"{SHARDING_KEY}{_IS}{group}{_END}"] if group else []
        middle.append(f"{PGROUP}{_IS}{topic}{_END}")
        for message in messages:
            system, user = message.system_properties, message.user_properties
            parts = self._user(user) if user else []
            if (
                parts is None
                or message.topic != resource
                or system.message_group != group
                or system.body_encoding != encoding
                or not _is_plain(system, group)
                or not _add_names(system, parts)
            ):
                return None
            parts += middle
            born = _add_origin(system, parts, host, now)
            pairs += len(parts)
            text, name = "".join(parts), system.message_id
            found.append(Prepared._make((name, kind, message.body, text, flag, group, born)))
        text = "".join([each.properties for each in found])
        is_passed = self._are_short(found, is_ascii=text.isascii()) and _is_clean(text, pairs)
        return found if is_passed and (not group or is_short(group, self._settings)) else None

    def _user(self, user: Mapping[str, str]) -> list[str] | None:
        """Return the properties of the user, as a record holds them."""
        names = [*user]
        if len(names) > self._most_properties or not _OWN.isdisjoint(names):
            return None
        return [f"{name}{_IS}{value}{_END}" for name in names if name and (value := user[name])]

    def _are_short(self, found: Sequence[Prepared], *, is_ascii: bool) -> bool:
        """Return whether no body is empty or too large, and no message has large properties."""
        settings, sizes = self._settings, [len(each.body) for each in found]
        longest = max([len(each.properties) for each in found])
        longest *= 1 if is_ascii else 4
        return (
            min(sizes) > 0
            and max(sizes) <= settings.max_message_size
            and longest <= settings.max_user_property_size
        )


def _is_plain(system: SystemProperties, group: str) -> bool:
    """Return whether a message is NORMAL, or FIFO if it has a group."""
    has = system.HasField
    return not (
        has("priority")
        or has("delivery_timestamp")
        or has("orphaned_transaction_recovery_duration")
        or system.lite_topic
        or system.message_type == _TRANSACTION
        or len(system.trace_context) > LONGEST_TRACE
        or len(system.born_host) > LONGEST
        or (not group and has("message_group"))
    )


def _add_names(system: SystemProperties, parts: list[str]) -> bool:
    """Add the tag, the keys and the id; return whether these are allowed."""
    tag, keys, name = system.tag, system.keys, system.message_id
    if tag:
        parts.append(f"{TAGS}{_IS}{tag}{_END}")
        if "|" in tag or not tag.strip():
            return False
    elif system.HasField("tag"):
        return False
    if keys:
        each = keys[:]
        parts.append(f"{KEYS}{_IS}{KEY_SEPARATOR.join(each)}{_END}")
        if not all(map(str.strip, each)):
            return False
    parts.append(f"{UNIQ_KEY}{_IS}{name}{_END}")
    return len(name) <= LONGEST and bool(name.strip())


def _add_origin(system: SystemProperties, parts: list[str], host: str, now: int) -> int:
    """Add where and when a message was born; return when."""
    trace, born, own = system.trace_context, born_at(system, now), system.born_host
    if trace:
        parts.append(f"{TRACE_CONTEXT}{_IS}{trace}{_END}")
    parts.append(f"{BORN_HOST}{_IS}{own or host}{_END}")
    parts.append(f"{BORN_TIME}{_IS}{born}{_END}")
    return born


def _is_clean(text: str, pairs: int) -> bool:
    """Return whether texts have no control characters, and so many pairs of separators."""
    if text.count(_IS) != pairs or text.count(_END) != pairs:
        return False
    if text.isascii():
        return not text.encode().translate(None, _ALLOWED)
    return OTHER_CONTROL.search(text) is None
