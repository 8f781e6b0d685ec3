"""What a queue reads: its own topic, and the topics of fanout exchanges that it is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqlake.admin.admin import Admin
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.kombu.errors import ConfigurationError
from mqlake.kombu.names import exchange_topic, queue_topic
from mqlake.kombu.settings import TransportSettings
from mqlake.protocol.bodies.groups import encode_group
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.offsets import QueryConsumerOffsetHeader, UpdateConsumerOffsetHeader
from mqlake.protocol.naming import group_fault


class TopicSource(NamedTuple):
    """A topic, and the consumer group that shares its messages out."""

    topic: str
    group: str


def own_source(queue: str, settings: TransportSettings) -> TopicSource:
    """Return the topic and the group of messages that were sent to a queue itself."""
    return TopicSource(queue_topic(queue, settings.topic_prefix), settings.group)


def fanout_source(queue: str, exchange: str, settings: TransportSettings) -> TopicSource:
    """Return a durable queue's topic and group for a fanout exchange: each such queue has a group.

    Raises:
        ConfigurationError: RocketMQ does not allow a group of that name.
    """
    group = f"{settings.group}%{queue_topic(queue)}"
    if fault := group_fault(group):
        raise ConfigurationError(f"queue {queue!r}: {fault}")
    return TopicSource(exchange_topic(exchange, settings.topic_prefix), group)


async def begin_at_end(admin: Admin, source: TopicSource, ends: Mapping[MessageQueue, int]) -> None:
    """Have a group begin at these offsets, unless it has begun already."""
    brokers = await admin.brokers_of(source.topic)
    addresses = {broker.name: broker.address for broker in brokers}
    for queue, end in ends.items():
        address, number = addresses[queue.broker_name], queue.queue_id
        asked = QueryConsumerOffsetHeader(
            consumer_group=source.group,
            topic=source.topic,
            queue_id=number,
            set_zero_if_not_found=False,
        )
        try:
            await admin.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, asked)
        except RemotingError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            begun = UpdateConsumerOffsetHeader(
                consumer_group=source.group,
                topic=source.topic,
                queue_id=number,
                commit_offset=end,
            )
            await _commit(admin, address, begun)


async def _commit(admin: Admin, address: str, begun: UpdateConsumerOffsetHeader) -> None:
    try:
        await admin.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, begun)
    except RemotingError as error:
        if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
            raise
        body = encode_group(SubscriptionGroup(begun.consumer_group))
        await admin.ask(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
        await admin.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, begun)
