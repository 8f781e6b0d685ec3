"""Give a single message to a consumer group again."""

from __future__ import annotations

from typing import Final

from mqlake.admin import messages
from mqlake.console.cluster.members import ReportedMember
from mqlake.console.cluster.view import ClusterView
from mqlake.console.messages.bodies import plain_body
from mqlake.console.page_error import PageError
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
from mqlake.protocol.naming import retry_topic

_NOT_COPIED: Final = ADDED | {UNIQ_KEY, WAIT, CLUSTER, MSG_REGION, TRACE_ON, TRAN_MSG, PGROUP}
_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"


def group_of_dead_letters(topic: str) -> str:
    """Return the group whose dead letters a topic has; empty for another topic."""
    return topic.removeprefix(DLQ_PREFIX) if topic.startswith(DLQ_PREFIX) else ""


def origin_of(record: Record) -> str:
    """Return the topic that a dead letter was sent to."""
    properties = record.properties
    return properties.get(RETRY_TOPIC) or properties.get(_ORIGIN_TOPIC) or ""


async def resend(view: ClusterView, broker: str, record: Record) -> SendMessageResponseHeader:
    """Send a copy of a dead letter to its group: the dead letter stays.

    It goes to the group's retry topic, so no other group receives it.

    Raises:
        PageError: the message is no dead letter.
    """
    group, origin = group_of_dead_letters(record.topic), origin_of(record)
    if not group or not origin:
        raise PageError(
            "This message is no dead letter, or does not say which topic it came from",
            "Let one consumer consume it instead.",
        )
    body, problem = plain_body(record)
    if problem:
        raise PageError(problem)
    kept = {name: text for name, text in record.properties.items() if name not in _NOT_COPIED}
    origin_id = record.properties.get(ORIGIN_MESSAGE_ID) or record.message_id
    kept |= {RETRY_TOPIC: origin, ORIGIN_MESSAGE_ID: origin_id}
    return await messages.send(view.admin, retry_topic(group), body, broker=broker, properties=kept)


async def consume_directly(
    view: ClusterView, member: ReportedMember, group: str, address: str, record: Record
) -> DirectResult:
    """Have one consumer consume one message now; offsets do not change.

    Args:
        address: of the master that has the message. The consumer must be connected to it.
    """
    header = ConsumerHeader(
        consumer_group=group,
        client_id=member.client_id,
        msg_id=record.message_id,
        topic=record.topic,
    )
    answer = await view.admin.ask(address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
    return decode_answer(DirectResult, answer.body)
