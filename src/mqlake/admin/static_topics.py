"""Static topics: create them, and move their logic queues (upstream: `MQAdminUtils`)."""

from __future__ import annotations

import msgspec

from mqlake.admin.admin import Admin
from mqlake.client.cluster import MASTER, MasterBroker
from mqlake.errors import MqlakeError
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.static_topics import MappedTopic, decode_mapped_topic
from mqlake.protocol.bodies.stats import TopicStats
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import CreateTopicHeader, TopicNameHeader
from mqlake.protocol.logic_queues.mapping import is_decided, logical_offset
from mqlake.protocol.logic_queues.plans import LogicQueuePlan, next_block, plan_move, plan_queues
from mqlake.storage.clock import SystemClock


class LedQueue(msgspec.Struct, rename="camel"):
    """A logic queue, the broker that leads it, and the broker's queue of its last stretch.

    Attributes:
        stretches: the number of stretches.
        logic_offset: the first offset of the last stretch; -1 if it is not decided.
    """

    queue_id: int
    broker_name: str
    physical_queue_id: int
    stretches: int
    logic_offset: int


async def known(admin: Admin, topic: str) -> dict[str, MappedTopic]:
    """Return a topic with its mapping on each broker that has it, by broker name."""
    found: dict[str, MappedTopic] = {}
    for broker in await admin.brokers():
        header = TopicNameHeader(topic=topic, lo=True)
        try:
            answer = await admin.ask(broker.address, RequestCode.GET_TOPIC_CONFIG, header)
        except RemotingError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            continue
        found[broker.name] = decode_mapped_topic(answer.body)
    return found


async def queues(admin: Admin, topic: str) -> list[LedQueue]:
    """Return the logic queues of a static topic; an empty result if it is not static."""
    return led_queues(await known(admin, topic))


def led_queues(topics: dict[str, MappedTopic]) -> list[LedQueue]:
    """Return the logic queues that brokers lead, by id."""
    return sorted(
        (
            LedQueue(queue_id, name, items[-1].queue_id, len(items), items[-1].logic_offset)
            for name, found in topics.items()
            if found.mapping
            for queue_id, items in found.mapping.hosted_queues.items()
            if items and items[-1].bname == name
        ),
        key=lambda each: each.queue_id,
    )


async def update(admin: Admin, topic: str, count: int, brokers: list[str]) -> list[LedQueue]:
    """Create a static topic, or add logic queues to it.

    Args:
        count: the new number of logic queues.
        brokers: names of the brokers that may lead new queues.

    Raises:
        MqlakeError: the change is not possible, and nothing was changed. Or a broker refuses: the
            brokers before it have been changed.
    """
    masters = await _masters(admin, brokers)
    before = await known(admin, topic)
    plan = plan_queues(topic, count, brokers, before, SystemClock().milliseconds())
    topics = _with_all(plan, masters)
    for name, planned in topics.items():
        await _tell(admin, masters[name], planned)
    return led_queues(topics)


async def move(admin: Admin, topic: str, brokers: list[str]) -> list[LedQueue]:
    """Move all logic queues of a static topic to brokers, evenly.

    Args:
        brokers: their names.

    Raises:
        MqlakeError: the move is not possible, and nothing was moved. Or a broker refuses: the same
            call then fails until the brokers agree; `mqadmin remappingStaticTopic -f` continues the
            move.
    """
    masters = await _masters(admin, brokers)
    before = await known(admin, topic)
    plan = plan_move(topic, brokers, before, SystemClock().milliseconds())
    topics = _with_all(plan, masters)
    # New leaders accept messages before the earlier ones stop: without offsets at first.
    for name in (*sorted(plan.gain), *sorted(plan.lose)):
        await _tell(admin, masters[name], topics[name])
    ends: dict[MessageQueue, int] = {}
    for name in sorted(plan.lose):
        ends |= await _ends(admin, masters[name], topic)
    topics = {name: _decided(planned, ends) for name, planned in topics.items()}
    for name in (*sorted(plan.gain), *sorted(topics.keys() - plan.gain - plan.lose)):
        await _tell(admin, masters[name], topics[name])
    return led_queues(topics)


async def _masters(admin: Admin, wanted: list[str]) -> dict[str, MasterBroker]:
    """Return all brokers of the clusters that contain the named brokers, by name."""
    table = (await admin.cluster_info()).broker_addr_table
    missing = [name for name in wanted if MASTER not in _addresses(table.get(name))]
    if missing or not wanted:
        raise MqlakeError(f"no broker {', '.join(missing)} is registered")
    clusters = {table[name].cluster for name in wanted}
    found = await admin.brokers()
    return {broker.name: broker for broker in found if broker.cluster in clusters}


def _addresses(data: object) -> dict[int, str]:
    return getattr(data, "broker_addrs", {})


def _with_all(plan: LogicQueuePlan, masters: dict[str, MasterBroker]) -> dict[str, MappedTopic]:
    """Return a plan's topics, with an empty mapping for each other broker of the cluster."""
    topics = dict(plan.topics)
    if missing := topics.keys() - masters.keys():
        raise MqlakeError(
            f"broker {', '.join(sorted(missing))} has queues of the topic but is not registered: "
            "start it first"
        )
    some = next(iter(topics.values()))
    assert some.mapping is not None
    for name in masters.keys() - topics.keys():
        empty = msgspec.structs.replace(some.mapping, bname=name, hosted_queues={})
        topics[name] = MappedTopic(some.topic_name, 0, 0, mapping_detail=empty)
    return dict(sorted(topics.items()))


async def _tell(admin: Admin, broker: MasterBroker, planned: MappedTopic) -> None:
    header = CreateTopicHeader(
        topic=planned.topic_name,
        read_queue_nums=planned.read_queue_nums,
        write_queue_nums=planned.write_queue_nums,
        perm=planned.perm,
        topic_filter_type=planned.topic_filter_type,
        default_topic=AUTO_CREATE_TOPIC,
        topic_sys_flag=planned.topic_sys_flag,
        order=planned.order,
        force=False,
    )
    body = encode_body(planned.mapping)
    await admin.ask(broker.address, RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, header, body)


async def _ends(admin: Admin, broker: MasterBroker, topic: str) -> dict[MessageQueue, int]:
    header = TopicNameHeader(topic=topic)
    answer = await admin.ask(broker.address, RequestCode.GET_TOPIC_STATS_INFO, header)
    table = TopicStats.decode(answer.body).offset_table
    return {queue: at.max_offset for queue, at in table.items()}


def _decided(planned: MappedTopic, ends: dict[MessageQueue, int]) -> MappedTopic:
    """Return a topic in which moved queues continue after the ends of their earlier stretches."""
    mapping = planned.mapping
    assert mapping is not None
    decided = {
        queue_id: _with_offset(planned.topic_name, items, ends)
        for queue_id, items in mapping.hosted_queues.items()
    }
    mapping = msgspec.structs.replace(mapping, hosted_queues=decided)
    return msgspec.structs.replace(planned, mapping_detail=mapping)


def _with_offset(
    topic: str, items: list[LogicQueueMappingItem], ends: dict[MessageQueue, int]
) -> list[LogicQueueMappingItem]:
    if len(items) < 2 or is_decided(items[-1]):
        return items
    old = items[-2]
    end = ends.get(MessageQueue(topic, old.bname, old.queue_id))
    if end is None:
        raise MqlakeError(f"broker {old.bname} does not report where its queue {old.queue_id} ends")
    offset = next_block(logical_offset(old, end))
    return [*items[:-1], msgspec.structs.replace(items[-1], logic_offset=offset)]
