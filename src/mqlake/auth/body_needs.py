"""The names in the bodies of requests.

Each body is read by the function, and as the type, by which its handler reads it: otherwise a name
could be written so that only the handler sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from mqlake.auth.needs import CREATE, DELETE, SUB, UPDATE, Need, Question, topic_needs
from mqlake.auth.resource import ResourceKind
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.bodies.groups import GroupConfigs, GroupNames, TopicConfigList, TopicNames
from mqlake.protocol.bodies.heartbeat import CheckClient, Heartbeat
from mqlake.protocol.bodies.lite import LiteSubscriptionChanges
from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.pop import AssignmentQuery, BatchAcks, RequestMode
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.retry_topics import marked

MOST: Final = 2 << 20
"""Maximum length in bytes of a body whose names are looked up: that takes about 20 ms."""

T = TypeVar("T")


def _body(kind: type[T], question: Question) -> T:
    size = len(question.body)
    if size > MOST:
        reason = f"the body has {size} bytes; with authorization, the maximum is {MOST}"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    return decode_body(kind, question.body)


def of_heartbeat(question: Question) -> Iterator[Need]:
    """HEART_BEAT: the consumer groups, and the topics to which they subscribe.

    A producer group needs nothing: its producers are asked only about transactions that they may
    end.
    """
    for consumer in _body(Heartbeat, question).consumer_data_set:
        group = consumer.group_name
        yield Need(ResourceKind.GROUP, group, SUB)
        for each in consumer.subscription_data_set:
            yield from topic_needs(each.topic, SUB, group)


def of_check_client(question: Question) -> Iterator[Need]:
    """CHECK_CLIENT_CONFIG: the group and the topic that a consumer is about to subscribe to."""
    if not question.body:
        return
    wanted = _body(CheckClient, question)
    if wanted.group:
        yield Need(ResourceKind.GROUP, wanted.group, SUB)
    if wanted.subscription_data is not None and wanted.subscription_data.topic:
        yield from topic_needs(wanted.subscription_data.topic, SUB, wanted.group or None)


def of_locks(question: Question) -> Iterator[Need]:
    """LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: the group, and the topic of each queue."""
    wanted = _body(LockQueues, question)
    yield Need(ResourceKind.GROUP, wanted.consumer_group, SUB)
    for topic in dict.fromkeys(queue.topic for queue in wanted.mq_set):
        yield from topic_needs(topic, SUB, wanted.consumer_group)


def of_topic_list(question: Question) -> Iterator[Need]:
    """UPDATE_AND_CREATE_TOPIC_LIST: each topic."""
    for topic in _body(TopicConfigList, question).topic_config_list:
        yield from topic_needs(topic.topic_name, CREATE)


def of_topic_names(question: Question) -> Iterator[Need]:
    """DELETE_TOPIC_IN_BROKER_LIST: each topic."""
    for topic in _body(TopicNames, question).topic_list:
        yield from topic_needs(topic, DELETE)


def of_group(question: Question) -> Iterator[Need]:
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: the group."""
    yield Need(ResourceKind.GROUP, _body(SubscriptionGroup, question).group_name, CREATE)


def of_group_list(question: Question) -> Iterator[Need]:
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: each group."""
    for group in _body(GroupConfigs, question).group_config_list:
        yield Need(ResourceKind.GROUP, group.group_name, CREATE)


def of_group_names(question: Question) -> Iterator[Need]:
    """DELETE_SUBSCRIPTION_GROUP_LIST: each group."""
    for group in _body(GroupNames, question).group_name_list:
        yield Need(ResourceKind.GROUP, group, DELETE)


def of_lite_changes(question: Question) -> Iterator[Need]:
    """Each group and topic of changed subscriptions to lite topics."""
    changes = _body(LiteSubscriptionChanges, question).subscription_set if question.body else []
    for group, topic in dict.fromkeys((change.group, change.topic) for change in changes):
        yield Need(ResourceKind.GROUP, group, SUB)
        yield from topic_needs(topic, SUB, group)


def of_batch_ack(question: Question) -> Iterator[Need]:
    """BATCH_ACK_MESSAGE: group and topic of each acknowledgement."""
    acks = _body(BatchAcks, question).acks if question.body else []
    pairs = dict.fromkeys((ack.consumer_group, ack.topic, ack.retry) for ack in acks)
    for group, topic, retry in pairs:
        yield Need(ResourceKind.GROUP, group, SUB)
        yield from topic_needs(marked(retry, topic, group), SUB, group, is_receipt=True)


def of_assignment(question: Question) -> Iterator[Need]:
    """QUERY_ASSIGNMENT: the group and the topic."""
    asked = _body(AssignmentQuery, question)
    yield Need(ResourceKind.GROUP, asked.consumer_group, SUB)
    yield from topic_needs(asked.topic, SUB, asked.consumer_group)


def of_request_mode(question: Question) -> Iterator[Need]:
    """SET_MESSAGE_REQUEST_MODE: the group and the topic."""
    wanted = _body(RequestMode, question)
    yield Need(ResourceKind.GROUP, wanted.consumer_group, UPDATE)
    yield from topic_needs(wanted.topic, UPDATE, wanted.consumer_group)
