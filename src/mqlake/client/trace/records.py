"""The text of message traces (upstream: `TraceDataEncoder`).

A trace message consists of records. `\\x01` separates the fields of a record, `\\x02` ends it.
Upstream writes `null` for a field that a message does not have.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import msgspec

from mqlake.formats.own_properties import MSG_REGION, TRACE_ON
from mqlake.formats.properties import KEYS

DEFAULT_REGION = "DefaultRegion"

_BETWEEN, _END = "\x01", "\x02"
_NOTHING = "null"


class MessageKind(IntEnum):
    """What kind of message was sent (upstream: `MessageType`)."""

    NORMAL = 0
    HALF = 1
    COMMIT = 2
    DELAYED = 3
    ORDERED = 4


class ConsumeOutcome(IntEnum):
    """How the handling of a message ended (upstream: `ConsumeReturnType`)."""

    SUCCESS = 0
    TOO_LATE = 1
    FAILED = 4


class Traced(NamedTuple):
    """A message that a record is about.

    Attributes:
        keys: separated by spaces.
        broker: the address of the broker that has the message, "ip:port".
    """

    topic: str
    message_id: str
    tags: str | None
    keys: str | None
    broker: str


class TraceRecord(msgspec.Struct, frozen=True, gc=False):
    """One record.

    Attributes:
        text: the record, including its terminator.
        keys: the words by which the record is found: the message's id and its keys.
    """

    text: str
    keys: tuple[str, ...]


def sent(
    message: Traced,
    kind: MessageKind,
    group: str,
    region: str,
    *,
    at: int,
    took: int,
    size: int,
    offset_message_id: str,
    is_ok: bool,
) -> TraceRecord:
    """Return the record of a message that was sent.

    Args:
        at: when sending began, in milliseconds since 1970; `took` is its duration in milliseconds.
        size: the length of the body, in bytes.
        is_ok: whether the broker answered SEND_OK.
    """
    topic, message_id, tags, keys, broker = message
    fields = ("Pub", at, region, group, topic, message_id, tags, keys, broker, size, took)
    return _record(message_id, keys, *fields, kind.value, offset_message_id, is_ok)


def handed_over(
    message_id: str,
    properties: dict[str, str],
    group: str,
    request_id: str,
    *,
    at: int,
    times: int,
) -> TraceRecord:
    """Return the record of a message that a consumer begins to handle.

    Args:
        request_id: the same id as in the record of its end.
        at: milliseconds since 1970.
        times: how often it was delivered to the group before.
    """
    region, keys = properties.get(MSG_REGION, DEFAULT_REGION), properties.get(KEYS)
    fields = ("SubBefore", at, region, group, request_id, message_id, times, keys)
    return _record(message_id, keys, *fields)


def handled(
    message_id: str,
    properties: dict[str, str],
    group: str,
    request_id: str,
    outcome: ConsumeOutcome,
    *,
    at: int,
    took: int,
) -> TraceRecord:
    """Return the record of a message that a consumer has handled; arguments as `handed_over`."""
    keys, is_ok = properties.get(KEYS), outcome is ConsumeOutcome.SUCCESS
    fields = ("SubAfter", request_id, message_id, took, is_ok, keys, outcome.value, at, group)
    return _record(message_id, keys, *fields)


def transaction_ended(
    message: Traced, group: str, transaction_id: str | None, state: str, *, at: int, is_check: bool
) -> TraceRecord:
    """Return the record of a transaction's end.

    Args:
        state: COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW.
        is_check: whether the broker had asked.
    """
    topic, message_id, tags, keys, broker = message
    about = (topic, message_id, tags, keys, broker)
    end = (MessageKind.COMMIT.value, transaction_id, state, is_check)
    fields = ("EndTransaction", at, DEFAULT_REGION, group, *about, *end)
    return _record(message_id, keys, *fields)


def is_wanted(properties: dict[str, str]) -> bool:
    """Return whether the broker of a message wants traces of it."""
    return properties.get(TRACE_ON) != "false"


def _record(message_id: str, keys: str | None, *fields: object) -> TraceRecord:
    text = _BETWEEN.join(map(_field, fields)) + _END
    return TraceRecord(text, (message_id, *(keys or "").split()))


def _field(value: object) -> str:
    if value is None or value == "":
        return _NOTHING
    return str(value).lower() if isinstance(value, bool) else str(value)
