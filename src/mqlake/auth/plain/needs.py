"""What a request needs by ACL 1.0 (upstream: `PlainAccessValidator.parse`).

All other requests need a signature only, as in RocketMQ 4.9.8: sends of batches, pops, and most
requests of administrators among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mqlake.auth.plain.accounts import Perm
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode as Code
from mqlake.protocol.command import Command

ADMIN: Final = frozenset(
    {
        Code.UPDATE_AND_CREATE_TOPIC,
        Code.UPDATE_BROKER_CONFIG,
        Code.DELETE_TOPIC_IN_BROKER,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Code.DELETE_SUBSCRIPTIONGROUP,
        # RocketMQ 5 does the same, or more of it at once, by these.
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.UPDATE_AND_CREATE_STATIC_TOPIC,
        Code.DELETE_TOPIC_IN_BROKER_LIST,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Code.DELETE_SUBSCRIPTION_GROUP_LIST,
        # RocketMQ 4.9.8 serves these to every account, which can thus make itself an administrator.
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    }
)
"""The requests that only accounts with `admin: true` may make."""

Need = tuple[str | None, Perm]
"""A topic, or a retry topic for its group, and what is needed; None if the request names none."""

_ON_TOPIC_AND_GROUP: Final = (
    Code.PULL_MESSAGE,
    Code.LITE_PULL_MESSAGE,
    Code.UPDATE_CONSUMER_OFFSET,
)
_ON_GROUP: Final = {
    Code.CONSUMER_SEND_MSG_BACK: "group",
    Code.UNREGISTER_CLIENT: "consumerGroup",
    Code.GET_CONSUMER_LIST_BY_GROUP: "consumerGroup",
}


def needs_of(request: Command) -> dict[str, Perm]:
    """Return what a request needs, by topic; a group has the name of its retry topic.

    Raises:
        FormatError: its body cannot be read.
    """
    return {name: perm for name, perm in _needs(request) if name is not None}


def _needs(request: Command) -> Iterator[Need]:
    code, fields = request.code, request.fields
    if code == Code.SEND_MESSAGE:
        yield _send(fields.get("topic"), fields.get("group"))
    elif code == Code.SEND_MESSAGE_V2:
        yield _send(fields.get("b"), fields.get("a"))
    elif code in _ON_TOPIC_AND_GROUP:
        yield fields.get("topic"), Perm.SUB
        yield _retry(fields.get("consumerGroup")), Perm.SUB
    elif code == Code.QUERY_MESSAGE:
        yield fields.get("topic"), Perm.SUB
    elif code in _ON_GROUP:
        yield _retry(fields.get(_ON_GROUP[Code(code)])), Perm.SUB
    elif code == Code.HEART_BEAT:
        for consumer in decode_body(Heartbeat, request.body).consumer_data_set:
            yield _retry(consumer.group_name), Perm.SUB
            for each in consumer.subscription_data_set:
                yield each.topic, Perm.SUB


def _send(topic: str | None, group: str | None) -> Need:
    if topic is not None and topic.startswith(RETRY_PREFIX):
        return _retry(group), Perm.SUB
    return topic, Perm.PUB


def _retry(group: str | None) -> str | None:
    return None if group is None else RETRY_PREFIX + group
