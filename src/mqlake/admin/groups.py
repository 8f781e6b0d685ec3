"""Consumer groups: show their progress and members; create, change and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import (
    BrokerFailure,
    Changed,
    change_each,
    changed_brokers,
    read_each,
)
from mqlake.admin.topics import delete as delete_topic
from mqlake.admin.topics import names
from mqlake.client.cluster import MasterBroker
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol import naming
from mqlake.protocol.bodies.connections import (
    ConsumerConnections,
    ProducerConnections,
    ProducerTable,
)
from mqlake.protocol.bodies.groups import GroupForbidden, GroupNames, encode_group
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.stats import ConsumeStats, OffsetWrapper
from mqlake.protocol.body import decode_answer, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    ConsumerConnectionsHeader,
    ConsumeStatsHeader,
    DeleteGroupHeader,
    GroupForbiddenHeader,
    GroupNameHeader,
    ProducerConnectionsHeader,
)


class QueueProgress(msgspec.Struct, rename="camel"):
    """The offset of a group in a queue.

    Attributes:
        lag: messages that it has not consumed.
        in_flight: messages that it has pulled but not consumed.
        last_consumed: store time of the last consumed message, in milliseconds; 0 if it has
            consumed none.
    """

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    lag: int
    in_flight: int
    last_consumed: int


class GroupProgress(msgspec.Struct, rename="camel"):
    """The progress of a group: its connected consumers, messages per second, and its lag."""

    group: str
    consumers: int
    consume_type: str
    message_model: str
    tps: float
    lag: int


class Member(msgspec.Struct, rename="camel"):
    """A client of a group."""

    client_id: str
    address: str
    language: str
    version: int


class Subscribed(msgspec.Struct, rename="camel"):
    """What a group subscribes to."""

    topic: str
    expression: str
    expression_type: str


class Connections(msgspec.Struct, rename="camel"):
    """The members of a consumer group, and how it consumes."""

    members: list[Member]
    subscriptions: list[Subscribed]
    consume_type: str
    message_model: str
    consume_from_where: str


async def progress(
    admin: Admin,
    group: str,
    topic: str | None = None,
    missing: list[BrokerFailure] | None = None,
) -> list[QueueProgress]:
    """Return the offsets of a group, in one topic or in all that it reads.

    Args:
        missing: gets the brokers whose offsets are missing; None if all must answer.
    """
    stats = await _stats(admin, group, topic, missing)
    return _rows(stats)


def _rows(stats: ConsumeStats) -> list[QueueProgress]:
    rows = [progress_in(queue, at) for queue, at in stats.offset_table.items()]
    return sorted(rows, key=lambda row: (row.topic, row.broker_name, row.queue_id))


async def _stats(
    admin: Admin, group: str, topic: str | None, missing: list[BrokerFailure] | None
) -> ConsumeStats:
    brokers = await _brokers_of(admin, group)
    return await _stats_of(admin, brokers, group, topic, missing)


async def _brokers_of(admin: Admin, group: str) -> Sequence[MasterBroker]:
    """Return the brokers that know a group: those that have its retry topic.

    Raises:
        RemotingError: TOPIC_NOT_EXIST if none does.
    """
    try:
        return await admin.brokers_of(RETRY_PREFIX + group)
    except RemotingError as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        raise RemotingError(
            error.code,
            f"group {group} does not exist: no broker has its retry topic, {RETRY_PREFIX}{group}",
        ) from None


async def _stats_of(
    admin: Admin,
    brokers: Sequence[MasterBroker],
    group: str,
    topic: str | None,
    missing: list[BrokerFailure] | None,
) -> ConsumeStats:
    header = ConsumeStatsHeader(consumer_group=group, topic=topic)

    async def read(broker: MasterBroker) -> ConsumeStats:
        answer = await admin.ask(broker.address, RequestCode.GET_CONSUME_STATS, header)
        return ConsumeStats.decode(answer.body)

    whole = ConsumeStats()
    for stats in await read_each(brokers, read, missing):
        whole.offset_table |= stats.offset_table
        whole.consume_tps += stats.consume_tps
    return whole


async def progress_on(
    admin: Admin,
    group: str,
    topic: str | None = None,
    missing: list[BrokerFailure] | None = None,
) -> list[QueueProgress]:
    """Return what `progress` returns, for a group that may have no retry topic yet."""
    return _rows(await _stats_of(admin, await admin.brokers(), group, topic, missing))


def progress_in(queue: MessageQueue, at: OffsetWrapper) -> QueueProgress:
    """Return a group's offset in a queue, as the broker reports it."""
    return QueueProgress(
        topic=queue.topic,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        broker_offset=at.broker_offset,
        consumer_offset=at.consumer_offset,
        lag=at.lag,
        in_flight=at.in_flight,
        last_consumed=at.last_timestamp,
    )


async def all_progress(
    admin: Admin, missing: list[BrokerFailure] | None = None
) -> list[GroupProgress]:
    """Return the progress of all groups that have a retry topic.

    Args:
        missing: gets the brokers whose numbers are missing; None if all must answer.
    """
    found: list[GroupProgress] = []
    for topic in await names(admin):
        if not topic.startswith(RETRY_PREFIX):
            continue
        group = topic.removeprefix(RETRY_PREFIX)
        stats = await _stats(admin, group, None, missing)
        try:
            online = await connections(admin, group, missing)
        except RemotingError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            online = Connections([], [], "", "", "")
        found.append(
            GroupProgress(
                group,
                len(online.members),
                online.consume_type,
                online.message_model,
                stats.consume_tps,
                stats.lag,
            )
        )
    return found


async def connections(
    admin: Admin, group: str, missing: list[BrokerFailure] | None = None
) -> Connections:
    """Return the members of a consumer group.

    Args:
        missing: gets the brokers whose members are missing; None if all must answer.

    Raises:
        RemotingError: CONSUMER_NOT_ONLINE if the group has no member.
    """
    header = ConsumerConnectionsHeader(consumer_group=group)

    async def read(broker: MasterBroker) -> ConsumerConnections | RemotingError:
        try:
            code = RequestCode.GET_CONSUMER_CONNECTION_LIST
            answer = await admin.ask(broker.address, code, header)
        except RemotingError as error:
            return error
        return decode_answer(ConsumerConnections, answer.body)

    members: dict[str, Member] = {}
    found = ConsumerConnections()
    failure: RemotingError | None = None
    brokers = await _brokers_of(admin, group)
    for answer in await read_each(brokers, read, missing):
        if isinstance(answer, RemotingError):
            failure = answer
            continue
        found = answer
        for each in found.connection_set:
            members[each.client_id] = Member(
                each.client_id, each.client_addr, each.language, each.version
            )
    if not members:
        reason = f"the consumer group[{group}] not online"
        raise failure or RemotingError(ResponseCode.CONSUMER_NOT_ONLINE, reason)
    subscriptions = [
        Subscribed(each.topic, each.sub_string, each.expression_type or "TAG")
        for each in found.subscription_table.values()
    ]
    return Connections(
        list(members.values()),
        sorted(subscriptions, key=lambda each: each.topic),
        found.consume_type,
        found.message_model,
        found.consume_from_where,
    )


async def producer_connections(admin: Admin, group: str, topic: str) -> list[Member]:
    """Return the members of a producer group that send to a topic."""
    header = ProducerConnectionsHeader(producer_group=group)
    broker = await admin.broker_of(topic)
    answer = await admin.ask(broker.address, RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
    return [
        Member(each.client_id, each.client_addr, each.language, each.version)
        for each in decode_answer(ProducerConnections, answer.body).connection_set
    ]


class ConnectedProducer(msgspec.Struct, rename="camel"):
    """A producer that is connected to a broker."""

    group: str
    client_id: str
    address: str
    language: str
    version: int
    last_heartbeat: int


async def producers(admin: Admin, broker: str) -> list[ConnectedProducer]:
    """Return all producers that are connected to a broker."""
    address = (await admin.broker(broker)).address
    answer = await admin.ask(address, RequestCode.GET_ALL_PRODUCER_INFO)
    return [
        ConnectedProducer(
            group,
            each.client_id,
            each.remote_ip.lstrip("/"),
            each.language,
            each.version,
            each.last_update_timestamp,
        )
        for group, members in sorted(decode_answer(ProducerTable, answer.body).data.items())
        for each in members
    ]


async def update(
    admin: Admin, group: SubscriptionGroup, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Create or change a group on one broker, or on all brokers of a cluster."""
    code, body = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, encode_group(group)
    answers = await change_each(
        await admin.brokers(cluster, broker), lambda each: admin.ask(each.address, code, body=body)
    )
    return changed_brokers(answers)


async def delete(
    admin: Admin, group: str, cluster: str | None, broker: str | None, *, clean_offset: bool
) -> list[Changed]:
    """Delete a group on one broker, or on all brokers of a cluster.

    From a cluster, its retry topic and its dead-letter topic are deleted, too: a group that is
    created again gets none of their messages. Upstream: `DeleteSubscriptionGroupCommand`.

    Args:
        clean_offset: whether to delete its offsets, too.
    """
    header = DeleteGroupHeader(group_name=group, clean_offset=clean_offset)
    code = RequestCode.DELETE_SUBSCRIPTIONGROUP
    answers = await change_each(
        await admin.brokers(cluster, broker), lambda each: admin.ask(each.address, code, header)
    )
    if cluster is not None and broker is None:
        for topic in (naming.retry_topic(group), naming.dlq_topic(group)):
            await delete_topic(admin, topic, cluster)
    return changed_brokers(answers)


async def delete_many(
    admin: Admin,
    groups: Sequence[str],
    cluster: str | None,
    broker: str | None,
    *,
    clean_offset: bool,
) -> list[Changed]:
    """Delete groups on one broker, or on all brokers of a cluster, with one request to each.

    RocketMQ's brokers accept it from 5.5.1 on.

    Args:
        clean_offset: whether to delete their offsets, too.
    """
    body = encode_body(GroupNames(list(groups), clean_offset))
    code = RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST
    answers = await change_each(
        await admin.brokers(cluster, broker), lambda each: admin.ask(each.address, code, body=body)
    )
    return changed_brokers(answers)


async def may_pull(
    admin: Admin, group: str, topic: str, broker: str, *, allow: bool | None = None
) -> bool:
    """Return whether a group may pull a topic from a broker.

    Args:
        allow: whether it may from now on; None leaves it as it is.
    """
    header = GroupForbiddenHeader(group=group, topic=topic, readable=allow)
    address = (await admin.broker(broker)).address
    answer = await admin.ask(address, RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)
    return decode_answer(GroupForbidden, answer.body).readable


async def config(
    admin: Admin, group: str, missing: list[BrokerFailure] | None = None
) -> dict[str, dict[str, Any]]:
    """Return a group's settings on each broker that has it, by the broker's name.

    Args:
        missing: gets the brokers whose settings are missing; None if all must answer.
    """
    header = GroupNameHeader(group=group)

    async def read(broker: MasterBroker) -> tuple[str, dict[str, Any] | None]:
        try:
            code = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG
            answer = await admin.ask(broker.address, code, header)
        except RemotingError as error:
            if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            return broker.name, None
        return broker.name, decode_answer(dict[str, Any], answer.body)

    found = await read_each(await admin.brokers(), read, missing)
    return {name: settings for name, settings in found if settings is not None}
