"""Plan which brokers lead the logic queues of a static topic.

Upstream: `TopicQueueMappingUtils`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem, TopicQueueMapping
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.static_topics import MappedTopic
from mqlake.protocol.logic_queues.mapping import Stretches, mapping_fault

MOST_QUEUES = 65_535
"""The maximum number of queues of a topic; a broker's settings may only allow fewer."""
BLOCK = 10_000
"""A queue that moves continues at a multiple of this number of offsets."""
_EPOCH_STEP = 1000

Known = Mapping[str, MappedTopic]
"""A static topic on each broker that has it, by broker name."""


class LogicQueuePlan(NamedTuple):
    """Changes to send to brokers.

    Attributes:
        topics: the topic on each broker, by broker name.
        gain, lose: names of the brokers that queues move to, and from.
    """

    topics: dict[str, MappedTopic]
    gain: frozenset[str]
    lose: frozenset[str]


def plan_queues(
    topic: str, count: int, brokers: Iterable[str], known: Known, now: int
) -> LogicQueuePlan:
    """Return a static topic with more logic queues, shared out evenly; existing queues stay.

    Args:
        count: the new number of logic queues.
        brokers: names of brokers that may lead queues, besides those that lead some already.
        known: the topic as it is; empty if it does not exist.
        now: milliseconds since 1970.

    Raises:
        FormatError: the topic is not static, its brokers disagree, or `count` is not larger.
    """
    leaders = _leaders(topic, known)
    if not len(leaders) < count <= MOST_QUEUES:
        raise FormatError(
            f"static topic {topic} has {len(leaders)} queues: the new number must be larger, "
            f"and at most {MOST_QUEUES}, not {count}"
        )
    led = dict.fromkeys((*brokers, *known), 0)
    for name, _ in leaders.values():
        led[name] += 1
    if not led:
        raise FormatError(f"static topic {topic}: name at least one broker")
    plans = {name: _Draft(topic, name, known.get(name)) for name in sorted(led)}
    for queue_id in range(len(leaders), count):
        name = min(led, key=lambda each: (led[each], each))
        led[name] += 1
        plans[name].add(queue_id, ())
    return _plan(plans, count, _next_epoch(known, now))


def plan_move(topic: str, brokers: Iterable[str], known: Known, now: int) -> LogicQueuePlan:
    """Return a static topic whose logic queues are led by the given brokers, evenly.

    As few queues as possible move. The first offset of a moved stretch is not decided yet.

    Args:
        brokers: names of the brokers that are to lead all queues.
        known: the topic as it is.
        now: milliseconds since 1970.

    Raises:
        FormatError: the topic is not static, its brokers disagree, or no broker is named.
    """
    leaders, names = _leaders(topic, known), sorted(set(brokers))
    if not leaders:
        raise FormatError(f"topic {topic} is not a static topic of this cluster")
    if not names:
        raise FormatError(f"static topic {topic}: name at least one broker")
    led = dict.fromkeys({*known, *names}, 0)
    for name, _ in leaders.values():
        led[name] += 1
    # If the division leaves a remainder, those that lead the most queues keep one more.
    most, rest = divmod(len(leaders), len(names))
    in_turn = sorted(names, key=lambda each: (-led[each], each))
    left = {name: most + (place < rest) for place, name in enumerate(in_turn)}
    moving: list[int] = []
    for queue_id, (name, _) in leaders.items():
        if left.get(name, 0):
            left[name] -= 1
        else:
            moving.append(queue_id)
    plans = {name: _Draft(topic, name, known.get(name)) for name in sorted(led)}
    gain, lose = set[str](), set[str]()
    free = [name for name in names for _ in range(left[name])]
    for queue_id, name in zip(moving, free, strict=True):
        old, items = leaders[queue_id]
        plans[name].add(queue_id, items)
        plans[old].queues[queue_id] = plans[name].queues[queue_id]
        gain.add(name)
        lose.add(old)
    return _plan(plans, len(leaders), _next_epoch(known, now), gain, lose)


def next_block(end: int) -> int:
    """Return where a queue continues after it has moved: at least half a block after its end."""
    blocks, rest = divmod(end, BLOCK)
    return (blocks + (1 if rest < BLOCK // 2 else 2)) * BLOCK


class _Draft:
    """A topic on one broker, during planning."""

    def __init__(self, topic: str, broker: str, known: MappedTopic | None) -> None:
        self.topic = known.topic if known else Topic(topic, 0, 0)
        self.mapping = (known.mapping if known else None) or TopicQueueMapping(topic, bname=broker)
        self.queues = dict(self.mapping.hosted_queues)

    def add(self, queue_id: int, items: Stretches) -> None:
        """Let the broker lead a logic queue, with one more queue of its own."""
        own = self.topic.write_queue_nums
        item = LogicQueueMappingItem(
            bname=self.mapping.bname,
            gen=items[-1].gen + 1 if items else 0,
            logic_offset=-1 if items else 0,
            queue_id=own,
        )
        self.topic = msgspec.structs.replace(
            self.topic,
            write_queue_nums=own + 1,
            read_queue_nums=max(self.topic.read_queue_nums, own) + 1,
        )
        self.queues[queue_id] = [*items, item]


def _plan(
    drafts: Mapping[str, _Draft],
    count: int,
    epoch: int,
    gain: Iterable[str] = (),
    lose: Iterable[str] = (),
) -> LogicQueuePlan:
    topics: dict[str, MappedTopic] = {}
    for name, draft in drafts.items():
        mapping = msgspec.structs.replace(
            draft.mapping, total_queues=count, epoch=epoch, hosted_queues=draft.queues
        )
        settings = msgspec.structs.astuple(draft.topic)
        topics[name] = MappedTopic(*settings, mapping_detail=mapping)
    return LogicQueuePlan(topics, frozenset(gain), frozenset(lose))


def _next_epoch(known: Known, now: int) -> int:
    epochs = [found.mapping.epoch + _EPOCH_STEP for found in known.values() if found.mapping]
    return max([now, *epochs])


def _leaders(topic: str, known: Known) -> dict[int, tuple[str, Sequence[LogicQueueMappingItem]]]:
    """Return the leader and the stretches of each logic queue.

    Raises:
        FormatError: brokers disagree about the topic, or a queue has no leader or several.
    """
    found: dict[int, tuple[str, Sequence[LogicQueueMappingItem]]] = {}
    facts: set[tuple[str, int, int]] = set()
    for name, each in known.items():
        mapping = each.mapping
        if mapping is None:
            raise FormatError(f"topic {topic} on broker {name} is not static")
        if (mapping.topic, mapping.bname) != (topic, name):
            raise FormatError(f"broker {name} has a mapping of {mapping.topic}, {mapping.bname}")
        if fault := mapping_fault(mapping, MOST_QUEUES):
            raise FormatError(f"the mapping of broker {name}: {fault}")
        facts.add((mapping.scope, mapping.epoch, mapping.total_queues))
        for queue_id, items in mapping.hosted_queues.items():
            if not items or items[-1].bname != name:
                continue
            if queue_id in found:
                others = f"{found[queue_id][0]} and {name}"
                raise FormatError(f"static topic {topic}: {others} both lead queue {queue_id}")
            found[queue_id] = name, items
    if len(facts) > 1:
        raise FormatError(
            f"static topic {topic}: its brokers disagree about scope, epoch or queues: an "
            "earlier change of it has not been completed everywhere"
        )
    if facts and len(found) != next(iter(facts))[2]:
        raise FormatError(f"static topic {topic}: some of its queues have no leader")
    return dict(sorted(found.items()))
