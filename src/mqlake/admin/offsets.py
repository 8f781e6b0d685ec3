"""Reset and copy the offsets of groups."""

from __future__ import annotations

import msgspec

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import Changed, change_each, changed_brokers
from mqlake.client.cluster import MasterBroker
from mqlake.protocol.bodies.stats import ResetOffsets
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import CloneOffsetHeader, ResetOffsetHeader

TO_THE_END = -1


class ResetOffset(msgspec.Struct, rename="camel"):
    """A queue, and the offset to which a group was reset."""

    broker_name: str
    queue_id: int
    offset: int


async def reset(admin: Admin, group: str, topic: str, timestamp: int) -> list[ResetOffset]:
    """Reset a group's offsets to a store time.

    Args:
        timestamp: milliseconds, or `TO_THE_END` to skip the backlog.
    """
    header = ResetOffsetHeader(topic=topic, group=group, timestamp=timestamp, is_force=True)

    async def change(broker: MasterBroker) -> ResetOffsets:
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        answer = await admin.ask(broker.address, code, header)
        return ResetOffsets.decode(answer.body)

    found = [
        ResetOffset(queue.broker_name, queue.queue_id, offset)
        for _, answer in await change_each(await admin.brokers_of(topic), change)
        for queue, offset in answer.offset_table.items()
    ]
    return sorted(found, key=lambda each: (each.broker_name, each.queue_id))


async def clone(
    admin: Admin, source: str, target: str, topic: str | None, *, offline: bool
) -> list[Changed]:
    """Copy one group's offsets to another group.

    Args:
        offline: whether to include topics that the source does not subscribe to now.
    """
    header = CloneOffsetHeader(src_group=source, dest_group=target, topic=topic, offline=offline)
    brokers = await admin.brokers_of(topic) if topic else await admin.brokers()
    answers = await change_each(
        brokers, lambda each: admin.ask(each.address, RequestCode.CLONE_GROUP_OFFSET, header)
    )
    return changed_brokers(answers)
