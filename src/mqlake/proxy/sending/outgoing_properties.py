"""The properties that a client's message is stored with (upstream: `SendMessageActivity`)."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.formats.properties import (
    DELIVER_MS,
    KEY_SEPARATOR,
    KEYS,
    LITE_TOPIC,
    NAME_VALUE_SEPARATOR,
    PGROUP,
    PRIORITY,
    PROPERTY_SEPARATOR,
    SHARDING_KEY,
    TAGS,
    TRAN_MSG,
    UNIQ_KEY,
)
from mqlake.formats.sys_flag import COMPRESSED, TRANSACTION_PREPARED
from mqlake.grpc.messages import Code, Encoding, Message, MessageType, SystemProperties
from mqlake.proxy.errors import StatusError
from mqlake.proxy.sending.checks import MessageChecks, check_stored

_IMMUNITY: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"
BORN_HOST: Final = "__BORNHOST"
BORN_TIME: Final = "BORN_TIMESTAMP"
_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, seconds since 1970."""


class Prepared(NamedTuple):
    """A message as a broker gets it.

    Attributes:
        type: what its properties make it.
        properties: as a record holds them.
        group: its message group; "" if it has none.
        born: when the client made it, milliseconds since 1970.
    """

    message_id: str
    type: MessageType
    body: bytes
    properties: str
    sys_flag: int
    group: str
    born: int


def prepared(message: Message, topic: str, host: str, checks: MessageChecks, now: int) -> Prepared:
    """Check a message, and return it as a broker gets it.

    Args:
        topic: its topic on the cluster.
        host: the address of the client.
        now: milliseconds since 1970.

    Raises:
        StatusError: it cannot be sent.
    """
    system = message.system_properties
    pairs = dict(message.user_properties)
    if system.tag:
        pairs[TAGS] = system.tag
    if system.keys:
        pairs[KEYS] = KEY_SEPARATOR.join(system.keys)
    pairs[UNIQ_KEY] = message_id = system.message_id
    kind, group = _kind(system, pairs, checks, now), system.message_group
    if group:
        pairs[SHARDING_KEY] = group
    pairs[PGROUP] = topic
    if system.trace_context:
        pairs[TRACE_CONTEXT] = system.trace_context
    pairs[BORN_HOST] = system.born_host or host
    born = born_at(system, now)
    pairs[BORN_TIME] = str(born)
    flag = COMPRESSED if system.body_encoding == Encoding.GZIP else 0
    if kind is MessageType.TRANSACTION:
        flag |= TRANSACTION_PREPARED
    stored = [
        f"{name}{NAME_VALUE_SEPARATOR}{value}{PROPERTY_SEPARATOR}"
        for name, value in pairs.items()
        if name and value
    ]
    text = "".join(stored)
    if not checks.are_passed(message, text, len(stored)):
        checks.check(message)
        check_stored(text)
    return Prepared(
        message_id=message_id,
        type=kind,
        body=message.body,
        properties=text,
        sys_flag=flag,
        group=group or system.lite_topic,
        born=born,
    )


def born_at(system: SystemProperties, now: int) -> int:
    """Return when a client made a message, by its own clock; now if it does not say so (ms)."""
    at = system.born_timestamp
    seconds = at.seconds
    return seconds * 1000 + at.nanos // 1_000_000 if 0 < seconds <= _LAST_SECOND else now


def _kind(
    system: SystemProperties, pairs: dict[str, str], checks: MessageChecks, now: int
) -> MessageType:
    """Return the type of a message, and add the properties that make it this type."""
    found = MessageType.NORMAL
    if system.lite_topic:
        pairs[LITE_TOPIC] = system.lite_topic
        found = MessageType.LITE
    if system.HasField("priority"):
        if system.priority < 0:
            # The code is upstream's.
            reason = f"priority {system.priority} is negative"
            raise StatusError(Code.INTERNAL_SERVER_ERROR, reason)
        pairs[PRIORITY] = str(system.priority)
        found = MessageType.PRIORITY
    if system.HasField("message_group") or SHARDING_KEY in pairs:
        found = MessageType.FIFO
    if system.HasField("delivery_timestamp"):
        pairs[DELIVER_MS] = str(checks.delivery_time(system, now))
        found = MessageType.DELAY
    if system.message_type == MessageType.TRANSACTION:
        pairs[TRAN_MSG] = "true"
        if system.HasField("orphaned_transaction_recovery_duration"):
            pairs[_IMMUNITY] = str(system.orphaned_transaction_recovery_duration.seconds)
        found = MessageType.TRANSACTION
    return found
