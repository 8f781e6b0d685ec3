"""Topics: list them, show their routes and offsets; create, change and delete them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import (
    BrokerFailure,
    Changed,
    change_each,
    changed_brokers,
    read_each,
)
from mqlake.client.cluster import MasterBroker
from mqlake.formats.config.topics import Topic
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC, OF_GROUPS
from mqlake.protocol.bodies.connections import GroupList
from mqlake.protocol.bodies.groups import TopicNames
from mqlake.protocol.bodies.route import TopicList, TopicRouteData
from mqlake.protocol.bodies.stats import BrokerStats, TopicStats
from mqlake.protocol.body import decode_answer, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import CreateTopicHeader, StatsHeader, TopicNameHeader
from mqlake.protocol.headers.namesrv import DeleteTopicInNamesrvHeader


class QueueStatus(msgspec.Struct, rename="camel"):
    """A queue's offsets, and the store time of its last message (milliseconds, 0 for none)."""

    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_updated: int


class TopicRate(msgspec.Struct, rename="camel"):
    """The rates of a topic: messages per second, and in the last day; `group` may be ""."""

    topic: str
    group: str
    in_tps: float
    out_tps: float
    in_messages: int
    out_messages: int


class BrokerAddress(msgspec.Struct, rename="camel"):
    """The address of a broker; id 0 is the master's."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str


async def names(admin: Admin) -> list[str]:
    """Return the names of all topics."""
    answer = await admin.ask_names(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    return sorted(decode_answer(TopicList, answer.body).topic_list)


class Consumed(msgspec.Struct, rename="camel"):
    """A topic on a cluster, and a group that consumes it, "" for none."""

    cluster: str
    topic: str
    group: str


async def consumed(admin: Admin) -> list[Consumed]:
    """Return all topics except those of groups, with clusters and groups."""
    return [
        Consumed(cluster, topic, group)
        for topic in await names(admin)
        if not topic.startswith(OF_GROUPS)
        for cluster in await clusters(admin, topic)
        for group in await groups(admin, topic) or [""]
    ]


def places(route: TopicRouteData) -> list[BrokerAddress]:
    """Return the brokers of a route."""
    return [
        BrokerAddress(data.cluster, data.broker_name, broker_id, address)
        for data in route.broker_datas
        for broker_id, address in sorted(data.broker_addrs.items())
    ]


async def clusters(admin: Admin, topic: str) -> list[str]:
    """Return the clusters that have a topic."""
    return sorted({broker.cluster for broker in await admin.brokers_of(topic)})


async def status(
    admin: Admin, topic: str, missing: list[BrokerFailure] | None = None
) -> list[QueueStatus]:
    """Return the offsets of a topic's queues.

    Args:
        missing: gets the brokers whose queues are missing; None if all must answer.
    """
    header = TopicNameHeader(topic=topic)

    async def read(broker: MasterBroker) -> TopicStats:
        answer = await admin.ask(broker.address, RequestCode.GET_TOPIC_STATS_INFO, header)
        return TopicStats.decode(answer.body)

    found = [
        QueueStatus(
            queue.broker_name,
            queue.queue_id,
            at.min_offset,
            at.max_offset,
            at.last_update_timestamp,
        )
        for stats in await read_each(await admin.brokers_of(topic), read, missing)
        for queue, at in stats.offset_table.items()
    ]
    return sorted(found, key=lambda each: (each.broker_name, each.queue_id))


async def config(admin: Admin, topic: str, address: str) -> Topic:
    """Return a topic's settings on one broker."""
    header = TopicNameHeader(topic=topic)
    answer = await admin.ask(address, RequestCode.GET_TOPIC_CONFIG, header)
    return decode_answer(Topic, answer.body)


async def update(
    admin: Admin, topic: Topic, cluster: str | None, broker: str | None, attributes: str = ""
) -> list[Changed]:
    """Create or change a topic on one broker, or on all brokers of a cluster.

    Args:
        attributes: changes such as "+message.type=FIFO,-message.type".
    """
    header = CreateTopicHeader(
        topic=topic.topic_name,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=topic.perm,
        topic_filter_type=topic.topic_filter_type,
        default_topic=AUTO_CREATE_TOPIC,
        topic_sys_flag=topic.topic_sys_flag,
        order=topic.order,
        attributes=attributes or None,
    )
    answers = await change_each(
        await admin.brokers(cluster, broker),
        lambda each: admin.ask(each.address, RequestCode.UPDATE_AND_CREATE_TOPIC, header),
    )
    return changed_brokers(answers)


async def permit(
    admin: Admin, topic: str, permission: int, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Change only a topic's permission, on the brokers of a cluster or on one broker."""

    async def change(found: MasterBroker) -> None:
        old = await config(admin, topic, found.address)
        wanted = msgspec.structs.replace(old, perm=permission)
        await update(admin, wanted, None, found.address)

    return changed_brokers(await change_each(await admin.brokers(cluster, broker), change))


async def delete(admin: Admin, topic: str, cluster: str) -> list[Changed]:
    """Delete a topic from the brokers of a cluster, then from the name servers.

    Raises:
        PartialChangeError: some brokers did not delete it, so name servers keep it, too.
    """
    header = TopicNameHeader(topic=topic)
    answers = await change_each(
        await admin.brokers(cluster),
        lambda each: admin.ask(each.address, RequestCode.DELETE_TOPIC_IN_BROKER, header),
    )
    of_names = DeleteTopicInNamesrvHeader(topic=topic, cluster_name=cluster)
    await admin.tell_names(RequestCode.DELETE_TOPIC_IN_NAMESRV, of_names)
    return changed_brokers(answers)


async def delete_many(admin: Admin, topics: Sequence[str], cluster: str) -> list[Changed]:
    """Delete topics from the brokers of a cluster with one request to each, then from name servers.

    RocketMQ's brokers accept it from 5.5.1 on.
    """
    body = encode_body(TopicNames(list(topics)))
    code = RequestCode.DELETE_TOPIC_IN_BROKER_LIST
    answers = await change_each(
        await admin.brokers(cluster), lambda each: admin.ask(each.address, code, body=body)
    )
    for topic in topics:
        of_names = DeleteTopicInNamesrvHeader(topic=topic, cluster_name=cluster)
        await admin.tell_names(RequestCode.DELETE_TOPIC_IN_NAMESRV, of_names)
    return changed_brokers(answers)


async def groups(admin: Admin, topic: str, missing: list[BrokerFailure] | None = None) -> list[str]:
    """Return the groups that consume, or have consumed, a topic.

    Args:
        missing: gets the brokers whose groups are missing; None if all must answer.
    """
    header = TopicNameHeader(topic=topic)

    async def read(broker: MasterBroker) -> list[str]:
        answer = await admin.ask(broker.address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)
        return decode_answer(GroupList, answer.body).group_list

    lists = await read_each(await admin.brokers_of(topic), read, missing)
    return sorted({name for each in lists for name in each})


async def rates(
    admin: Admin, topic: str, missing: list[BrokerFailure] | None = None
) -> list[TopicRate]:
    """Return the rates of a topic: a row for each group that consumes it."""
    put = await measured(admin, topic, "TOPIC_PUT_NUMS", topic, missing)
    found: list[TopicRate] = []
    for group in await groups(admin, topic, missing) or [""]:
        key = f"{topic}@{group}"
        got = await measured(admin, topic, "GROUP_GET_NUMS", key, missing) if group else (0, 0)
        found.append(TopicRate(topic, group, put[0], got[0], int(put[1]), int(got[1])))
    return found


async def all_rates(
    admin: Admin, topic: str | None, missing: list[BrokerFailure] | None = None
) -> list[TopicRate]:
    """Return the rates of one topic, or of each topic except those of groups."""
    topics = [topic] if topic else await names(admin)
    return [
        rate
        for name in topics
        if name == topic or not name.startswith(OF_GROUPS)
        for rate in await rates(admin, name, missing)
    ]


async def measured(
    admin: Admin,
    topic: str,
    name: str,
    key: str,
    missing: list[BrokerFailure] | None = None,
) -> tuple[float, float]:
    """Return a rate, and the sum of a day, over all brokers of a topic.

    Args:
        name: of the statistics, such as TOPIC_PUT_NUMS.
        key: whose rate it is: a topic, or topic@group.
        missing: gets the brokers whose rates are missing; None if all must answer.
    """
    header = StatsHeader(stats_name=name, stats_key=key)

    async def read(broker: MasterBroker) -> tuple[float, float]:
        try:
            answer = await admin.ask(broker.address, RequestCode.VIEW_BROKER_STATS_DATA, header)
        except RemotingError as error:
            if error.code != ResponseCode.SYSTEM_ERROR:
                raise
            return 0.0, 0.0  # Nothing was counted yet.
        stats = decode_answer(BrokerStats, answer.body)
        total = stats.stats_day.sum or stats.stats_hour.sum or stats.stats_minute.sum
        return stats.stats_minute.tps, total

    found = await read_each(await admin.brokers_of(topic), read, missing)
    return sum(rate for rate, _ in found), sum(total for _, total in found)
