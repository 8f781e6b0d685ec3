"""Give a single message to a consumer group again."""

from __future__ import annotations

from typing import Final

from mqlake.admin import groups, messages
from mqlake.admin.admin import Admin
from mqlake.errors import MqlakeError
from mqlake.formats.own_properties import ADDED, CLUSTER, MSG_REGION, TRACE_ON
from mqlake.formats.properties import (
    ORIGIN_MESSAGE_ID,
    PGROUP,
    RETRY_TOPIC,
    TRAN_MSG,
    UNIQ_KEY,
    WAIT,
)
from mqlake.formats.record import Record
from mqlake.formats.topic_names import DLQ_PREFIX
from mqlake.protocol.bodies.running_info import DirectResult
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import ConsumerHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.protocol.messages.body_compression import decompress
from mqlake.protocol.naming import retry_topic

_NOT_COPIED: Final = ADDED | {UNIQ_KEY, WAIT, CLUSTER, MSG_REGION, TRACE_ON, TRAN_MSG, PGROUP}
_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"


def group_of_dead_letters(topic: str) -> str:
    """Return the group whose dead letters a topic has; empty for another topic."""
    return topic.removeprefix(DLQ_PREFIX) if topic.startswith(DLQ_PREFIX) else ""


def origin_of(record: Record) -> str:
    """Return the topic that a dead letter was sent to; empty if it does not say."""
    properties = record.properties
    return properties.get(RETRY_TOPIC) or properties.get(_ORIGIN_TOPIC) or ""


async def resend(admin: Admin, broker: str, record: Record) -> SendMessageResponseHeader:
    """Send a copy of a dead letter to its group: the dead letter stays.

    It goes to the group's retry topic, so no other group receives it.

    Args:
        broker: that gets the copy, by name or address.

    Raises:
        MqlakeError: the message is no dead letter, or its body cannot be decompressed.
    """
    group, origin = group_of_dead_letters(record.topic), origin_of(record)
    if not group or not origin:
        raise MqlakeError(
            f"message {record.message_id} of topic {record.topic} is no dead letter, or does not"
            " say which topic it came from"
        )
    body = decompress(record.body, record.sys_flag)
    kept = {name: text for name, text in record.properties.items() if name not in _NOT_COPIED}
    origin_id = record.properties.get(ORIGIN_MESSAGE_ID) or record.message_id
    kept |= {RETRY_TOPIC: origin, ORIGIN_MESSAGE_ID: origin_id}
    return await messages.send(admin, retry_topic(group), body, broker=broker, properties=kept)


async def consume_directly(
    admin: Admin, address: str, group: str, client_id: str, record: Record
) -> DirectResult:
    """Have one consumer consume one message now; offsets do not change.

    Args:
        address: of the master that has the message. The consumer must be connected to it.
        client_id: a member of the group; empty for any.

    Raises:
        RemotingError: the group has no such member, or it did not answer.

    Upstream: `DefaultMQAdminExtImpl.consumeMessageDirectly`.
    """
    if not client_id:
        client_id = (await groups.connections(admin, group)).members[0].client_id
    header = ConsumerHeader(
        consumer_group=group, client_id=client_id, msg_id=record.message_id, topic=record.topic
    )
    answer = await admin.ask(address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
    return decode_answer(DirectResult, answer.body)
