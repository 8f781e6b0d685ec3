"""Plans for static topics: which broker leads which logic queue."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from mqlake.errors import FormatError
from mqlake.protocol.bodies.static_topics import MappedTopic
from mqlake.protocol.logic_queues.mapping import mapping_fault
from mqlake.protocol.logic_queues.plans import LogicQueuePlan, next_block, plan_move, plan_queues

NOW = 1_700_000_000_000


def leaders(plan: LogicQueuePlan) -> dict[int, str]:
    return {
        queue_id: items[-1].bname
        for name, topic in plan.topics.items()
        for queue_id, items in (topic.mapping.hosted_queues if topic.mapping else {}).items()
        if items[-1].bname == name
    }


def is_consistent(plan: LogicQueuePlan, count: int) -> bool:
    """Whether each queue has one leader, and no queue of a broker is used twice."""
    mappings = [topic.mapping for topic in plan.topics.values() if topic.mapping]
    assert {mapping_fault(mapping, 65_535) for mapping in mappings} == {None}
    assert len({(mapping.epoch, mapping.total_queues) for mapping in mappings}) == 1
    places = Counter(
        (item.bname, item.queue_id)
        for mapping in mappings
        for items in mapping.hosted_queues.values()
        if items[-1].bname == mapping.bname
        for item in items
    )
    for name, topic in plan.topics.items():
        own = [queue_id for broker, queue_id in places if broker == name]
        assert all(queue_id < topic.write_queue_nums <= topic.read_queue_nums for queue_id in own)
    return set(leaders(plan)) == set(range(count)) and set(places.values()) <= {1}


def decided(plan: LogicQueuePlan) -> dict[str, MappedTopic]:
    """Return the topics of a plan with offsets where it has none yet."""
    found: dict[str, MappedTopic] = {}
    for name, topic in plan.topics.items():
        assert topic.mapping
        queues = {
            queue_id: [
                msgspec.structs.replace(item, logic_offset=item.gen * 10_000) for item in items
            ]
            for queue_id, items in topic.mapping.hosted_queues.items()
        }
        mapping = msgspec.structs.replace(topic.mapping, hosted_queues=queues)
        found[name] = msgspec.structs.replace(topic, mapping_detail=mapping)
    return found


def test_queues_are_shared_out_and_more_are_added() -> None:
    first = plan_queues("T", 5, ("a", "b"), {}, NOW)
    assert is_consistent(first, 5)
    assert Counter(leaders(first).values()) == {"a": 3, "b": 2}
    more = plan_queues("T", 9, ("c",), first.topics, NOW)
    assert is_consistent(more, 9)
    assert {queue_id: leaders(more)[queue_id] for queue_id in range(5)} == leaders(first)
    assert Counter(leaders(more).values()) == {"a": 3, "b": 3, "c": 3}
    epochs = [plan.topics["a"].mapping for plan in (first, more)]
    assert [mapping.epoch for mapping in epochs if mapping] == [NOW, NOW + 1000]
    for count in (0, 4, 5, 70_000):
        with pytest.raises(FormatError, match="new number must be larger"):
            plan_queues("T", count, ("a",), first.topics, NOW)


def test_as_few_queues_move_as_can_be() -> None:
    topics = plan_queues("T", 7, ("a", "b"), {}, NOW).topics
    for brokers, moved in ((("a", "b", "c"), 2), (("c",), 5), (("a", "b"), 7), (("a", "b"), 0)):
        before = {
            queue_id: name
            for name, topic in topics.items()
            for queue_id, items in (topic.mapping.hosted_queues if topic.mapping else {}).items()
            if items[-1].bname == name
        }
        plan = plan_move("T", brokers, topics, NOW)
        assert is_consistent(plan, 7)
        after = leaders(plan)
        assert sum(before[queue_id] != after[queue_id] for queue_id in after) == moved
        counts = Counter(after.values())
        assert set(counts) == set(brokers)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert not plan.gain & plan.lose
        topics = decided(plan)


def test_brokers_that_disagree_are_refused() -> None:
    topics = plan_queues("T", 2, ("a", "b"), {}, NOW).topics
    other = plan_queues("T", 2, ("a", "b"), {}, NOW + 5).topics
    with pytest.raises(FormatError, match="disagree"):
        plan_move("T", ("a",), {"a": topics["a"], "b": other["b"]}, NOW)
    with pytest.raises(FormatError, match="have no leader"):
        plan_move("T", ("a",), {"a": topics["a"]}, NOW)
    with pytest.raises(FormatError, match="has a mapping of"):
        plan_move("T", ("a",), {"a": topics["b"], "b": topics["a"]}, NOW)
    with pytest.raises(FormatError, match="not static"):
        plan_move("T", ("a",), {"a": MappedTopic("T")}, NOW)
    with pytest.raises(FormatError, match="not a static topic"):
        plan_move("T", ("a",), {}, NOW)
    with pytest.raises(FormatError, match="name at least one broker"):
        plan_move("T", (), topics, NOW)


@pytest.mark.parametrize(
    ("end", "start"),
    [(0, 10_000), (4999, 10_000), (5000, 20_000), (9999, 20_000), (10_000, 20_000)],
)
def test_a_moved_queue_continues_at_least_half_a_block_after_its_end(end: int, start: int) -> None:
    assert next_block(end) == start
