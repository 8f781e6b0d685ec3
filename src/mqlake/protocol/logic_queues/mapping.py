"""Logic queues of static topics: which broker's queue contains which stretch of their offsets.

A static topic has a fixed number of logic queues. Each is a list of stretches, oldest first; the
broker of the last stretch leads the queue and accepts its messages.
Upstream: `LogicQueueMappingItem`, `TopicQueueMappingUtils`, `TopicQueueMappingDetail`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem, TopicQueueMapping
from mqlake.protocol.bodies.route import TopicQueueMappingInfo

GLOBAL_SCOPE: Final = "__global__"
LOGICAL_PREFIX: Final = "__syslo__"
"""Prefix of the broker name that clients see in the queues of static topics."""
NO_LEADER: Final = "__syslo__none__"
"""The broker name of a logic queue that no broker leads."""

MAX_STRETCHES: Final = 1024
"""Maximum number of stretches of a logic queue."""
MAX_NAME: Final = 255
_MAX_OFFSET: Final = 1 << 62
_MAX_INT: Final = (1 << 31) - 1
_END: Final = 1 << 63

Stretches = Sequence[LogicQueueMappingItem]
"""The stretches of one logic queue, oldest first."""


def logical_broker(scope: str) -> str:
    """Return the broker name that stands for the logic queues of a scope."""
    return LOGICAL_PREFIX + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def is_logical(broker_name: str) -> bool:
    """Return whether a broker name stands for logic queues."""
    return broker_name.startswith(LOGICAL_PREFIX)


def is_decided(item: LogicQueueMappingItem) -> bool:
    """Return whether the first offset of a stretch in the logic queue is decided."""
    return item.logic_offset >= 0


def is_ended(item: LogicQueueMappingItem) -> bool:
    """Return whether the last offset of a stretch in its broker's queue is decided."""
    return item.end_offset > item.start_offset


def logical_offset(item: LogicQueueMappingItem, physical: int) -> int:
    """Return the offset in the logic queue for one in the broker's queue."""
    return item.logic_offset + max(0, physical - item.start_offset)


def answered_offset(item: LogicQueueMappingItem, physical: int) -> int:
    """Return `logical_offset`, but at most the stretch's end; -1 if it is not decided."""
    if not is_decided(item):
        return -1
    if item.start_offset <= item.end_offset < physical:
        physical = item.end_offset
    return logical_offset(item, physical)


def physical_offset(item: LogicQueueMappingItem, logical: int) -> int:
    """Return the offset in the broker's queue for one in the logic queue."""
    return logical - item.logic_offset + item.start_offset


def last_known_offset(items: Stretches) -> int:
    """Return the end of a logic queue if its mapping alone determines it, or -1."""
    if not items:
        return -1
    last = items[-1]
    return last.logic_offset + max(0, last.end_offset - last.start_offset)


def stretch_at(items: Stretches, logical: int) -> LogicQueueMappingItem | None:
    """Return the stretch of an offset, or the first one if the offset is before all.

    Stretches whose first offset is not decided are skipped; None if no first offset is decided.
    """
    decided = [item for item in items if is_decided(item)]
    for item in reversed(decided):
        if logical >= item.logic_offset:
            return item
    return decided[0] if decided else None


def first_stretch(items: Stretches) -> LogicQueueMappingItem | None:
    """Return the oldest stretch, or None if no first offset is decided."""
    return stretch_at(items, 0)


def last_decided(items: Stretches) -> LogicQueueMappingItem | None:
    """Return the newest stretch whose first offset is decided."""
    return stretch_at(items, _END)


def stretch_after(items: Stretches, item: LogicQueueMappingItem) -> LogicQueueMappingItem | None:
    """Return the stretch after another one, or None if it does not exist or is not decided."""
    for place, found in enumerate(items[:-1]):
        if found.gen == item.gen:
            after = items[place + 1]
            return after if is_decided(after) else None
    return None


def led_queues(mapping: TopicQueueMapping) -> dict[int, int]:
    """Return the broker's queue for each logic queue that the mapping's broker leads."""
    return {
        queue_id: items[-1].queue_id
        for queue_id, items in mapping.hosted_queues.items()
        if items and items[-1].bname == mapping.bname
    }


def registered(mapping: TopicQueueMapping) -> TopicQueueMappingInfo:
    """Return the part of a mapping that brokers register at name servers."""
    return TopicQueueMappingInfo(
        topic=mapping.topic,
        scope=mapping.scope,
        total_queues=mapping.total_queues,
        bname=mapping.bname,
        epoch=mapping.epoch,
        dirty=mapping.dirty,
        curr_id_map=led_queues(mapping),
    )


def leaders(mappings: Mapping[str, TopicQueueMappingInfo], most: int) -> dict[tuple[str, int], str]:
    """Return the leading broker of each logic queue, by logical broker name and queue id.

    Upstream: `ClientMetadata.topicRouteData2EndpointsForStaticTopic`.

    Args:
        mappings: of one topic, by broker name, as in a route.
        most: maximum number of queues; those beyond are left out.
    """
    found: dict[tuple[str, int], str] = {}
    by_scope: dict[str, list[TopicQueueMappingInfo]] = {}
    for info in mappings.values():
        by_scope.setdefault(info.scope, []).append(info)
    for scope, infos in by_scope.items():
        infos.sort(key=_epoch, reverse=True)
        name, newest, count = logical_broker(scope), infos[0].epoch, 0
        queues: dict[int, TopicQueueMappingInfo] = {}
        for info in infos:
            if info.epoch >= newest:
                count = max(count, info.total_queues)
            for queue_id in info.curr_id_map:
                if queue_id not in queues or queues[queue_id].epoch <= info.epoch:
                    queues[queue_id] = info
        for queue_id in range(min(count, most - len(found))):
            leader = queues.get(queue_id)
            found[name, queue_id] = leader.bname if leader else NO_LEADER
    return found


def _epoch(info: TopicQueueMappingInfo) -> int:
    return info.epoch


# Valid values of a mapping


def mapping_fault(mapping: TopicQueueMapping, most_queues: int) -> str | None:
    """Return why a mapping cannot be used, or None if it can.

    Args:
        most_queues: maximum number of a topic's logic queues; also the limit of queue ids.
    """
    if not 0 < len(mapping.scope) <= MAX_NAME:
        return f"its scope has {len(mapping.scope)} characters"
    if not 0 <= mapping.total_queues <= most_queues:
        return f"it has {mapping.total_queues} queues; the maximum is {most_queues}"
    if not 0 <= mapping.epoch <= _MAX_OFFSET:
        return f"its epoch is {mapping.epoch}"
    if mapping.curr_id_map:
        return "currIdMap is only for name servers, and is not empty"
    for queue_id, items in mapping.hosted_queues.items():
        if not 0 <= queue_id < mapping.total_queues:
            return f"queue {queue_id} is not between 0 and {mapping.total_queues - 1}"
        if (fault := stretches_fault(items, most_queues)) is not None:
            return f"queue {queue_id}: {fault}"
    return None


def stretches_fault(items: Stretches, most_queues: int) -> str | None:
    """Return why a logic queue cannot have these stretches, or None if it can.

    Upstream: `TopicQueueMappingUtils.checkLogicQueueMappingItemOffset`.
    """
    if len(items) > MAX_STRETCHES:
        return f"{len(items)} stretches; the maximum is {MAX_STRETCHES}"
    for place, item in enumerate(items):
        if (fault := _item_fault(item, most_queues)) is not None:
            return fault
        is_last = place == len(items) - 1
        if not is_last and not is_decided(item):
            return "only the last stretch may have a negative logic offset"
        if place == 0:
            continue
        before = items[place - 1]
        if item.gen <= before.gen:
            return "the generations do not increase"
        if is_decided(item) and last_known_offset((before,)) >= item.logic_offset:
            return "the logic offsets do not increase"
    return None


def _item_fault(item: LogicQueueMappingItem, most_queues: int) -> str | None:
    if not 0 < len(item.bname) <= MAX_NAME:
        return f"the name of a broker has {len(item.bname)} characters"
    if not 0 <= item.gen <= _MAX_INT:
        return f"a generation is {item.gen}"
    if not 0 <= item.queue_id < most_queues:
        return f"the id of a broker's queue is {item.queue_id}"
    if not 0 <= item.start_offset <= _MAX_OFFSET:
        return f"a stretch starts at offset {item.start_offset}"
    if item.end_offset != -1 and not item.start_offset <= item.end_offset <= _MAX_OFFSET:
        return f"a stretch from {item.start_offset} ends at offset {item.end_offset}"
    if not -1 <= item.logic_offset <= _MAX_OFFSET:
        return f"a logic offset is {item.logic_offset}"
    for time in (item.time_of_start, item.time_of_end):
        if not -1 <= time <= _MAX_OFFSET:
            return f"a time is {time}"
    return None


def change_fault(old: TopicQueueMapping, new: TopicQueueMapping) -> str | None:
    """Return why one mapping of a topic cannot follow another, or None if it can.

    Upstream: `TopicQueueMappingManager.updateTopicQueueMapping`.
    """
    if new.epoch < old.epoch:
        return f"Can't accept data with small epoch {new.epoch} < {old.epoch}"
    if new.scope != old.scope:
        return f"Can't accept data with unmatched scope {new.scope} != {old.scope}"
    is_same_epoch = new.epoch == old.epoch
    for queue_id, before in old.hosted_queues.items():
        after = new.hosted_queues.get(queue_id)
        if after is None:
            if is_same_epoch:
                return "Cannot accept equal epoch with null data"
            continue
        if (fault := _stretches_change_fault(before, after, is_same_epoch)) is not None:
            return f"queue {queue_id}: {fault}"
    return None


def _stretches_change_fault(before: Stretches, after: Stretches, is_same_epoch: bool) -> str | None:
    """Upstream: `TopicQueueMappingUtils.makeSureLogicQueueMappingItemImmutable`."""
    if not before:
        return None
    if not after:
        return "The new item list is null or empty"
    known = {item.gen: item for item in before}
    for item in after:
        old = known.get(item.gen)
        if old is None:
            continue
        if _place(old) != _place(item):
            return f"generation {item.gen} is on another queue"
        if is_decided(old) and old.logic_offset != item.logic_offset:
            return f"the logic offset of generation {item.gen} changes"
    if is_same_epoch and (after[-1].gen, _place(after[-1])) != (before[-1].gen, _place(before[-1])):
        return "The new leader is different but epoch equal"
    return None


def _place(item: LogicQueueMappingItem) -> tuple[str, int, int]:
    return item.bname, item.queue_id, item.start_offset
