"""Changes of the attributes of topics and groups (upstream: `AttributeUtil`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqlake.broker.state.lite.names import (
    BIND_TOPIC,
    CLIENT_QUOTA,
    EXCLUSIVE,
    EXPIRATION,
    LITE,
    MAX_EVENTS,
    RESET_EXCLUSIVE,
    RESET_UNSUBSCRIBE,
    SHARED,
    SUB_MODEL,
)
from mqlake.formats.config.subscription_group import FULL_FACTOR, PRIORITY_FACTOR
from mqlake.formats.config.topics import (
    BATCH_QUEUES,
    MESSAGE_TYPE,
    PRIORITIES,
    QUEUE_TYPE,
    SIMPLE_QUEUES,
)
from mqlake.protocol import naming
from mqlake.protocol.attributes import ADD, REMOVE
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

Allowed = frozenset[str] | range | None
"""Values that an attribute may have: some texts, or numbers, or the name of a topic."""

TOPIC_ATTRIBUTES: Final[Mapping[str, Allowed]] = {
    MESSAGE_TYPE: frozenset(
        ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", LITE, PRIORITIES)
    ),
    QUEUE_TYPE: frozenset((SIMPLE_QUEUES, BATCH_QUEUES)),
    "cleanup.policy": frozenset(("DELETE",)),
    EXPIRATION: range(-1, 30 * 24 * 60 + 1),
}
"""The attributes that a topic may have here, and their values."""
_BOOLEANS: Final = frozenset(("true", "false"))
GROUP_ATTRIBUTES: Final[Mapping[str, Allowed]] = {
    PRIORITY_FACTOR: range(FULL_FACTOR + 1),
    BIND_TOPIC: None,
    SUB_MODEL: frozenset((SHARED, EXCLUSIVE)),
    RESET_EXCLUSIVE: _BOOLEANS,
    RESET_UNSUBSCRIBE: _BOOLEANS,
    CLIENT_QUOTA: range(-1, 1 << 31),
    MAX_EVENTS: range(10, 1 << 31),
}
"""The attributes that a group may have here, and their values."""


FIXED: Final = frozenset((QUEUE_TYPE,))
"""Attributes that cannot change after a topic's creation: its files depend on them."""

_DEFAULTS = {QUEUE_TYPE: SIMPLE_QUEUES}


def check_fixed(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Check that an existing topic keeps the attributes that cannot change.

    Raises:
        RemotingError: such an attribute would change.
    """
    for name in FIXED:
        default = _DEFAULTS.get(name)
        if old.get(name, default) != new.get(name, default):
            reason = f"attempt to update an unchangeable attribute. key: {name}"
            raise _refused(f"{reason}; delete the topic and create it again")


def changed(
    attributes: Mapping[str, str],
    changes: Mapping[str, str],
    known: Mapping[str, Allowed],
) -> dict[str, str]:
    """Return attributes after changes.

    Raises:
        RemotingError: an attribute is unknown, or cannot have the value.
    """
    result = dict(attributes)
    for signed, value in changes.items():
        sign, name = signed[:1], signed[1:]
        if name not in known or sign not in (ADD, REMOVE):
            raise _refused(f"attribute {signed} is not supported")
        if sign == REMOVE:
            result.pop(name, None)
            continue
        if not _is_allowed(value, known[name]):
            wanted = _described(known[name])
            raise _refused(f"attribute {name}: {value} is not supported; use {wanted}")
        result[name] = value
    return result


def _is_allowed(value: str, allowed: Allowed) -> bool:
    if allowed is None:
        return naming.topic_fault(value) is None
    if isinstance(allowed, range):
        is_number = value.removeprefix("-").isdigit() and value.isascii() and len(value) < 12
        return is_number and int(value) in allowed and value == str(int(value))
    return value in allowed


def _described(allowed: Allowed) -> str:
    if allowed is None:
        return "the name of a topic"
    if isinstance(allowed, range):
        return f"{allowed[0]} to {allowed[-1]}"
    return ", ".join(sorted(allowed))


def _refused(reason: str) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, reason)
