"""The lane's table of topics: what fits, and what displaces nothing."""

from __future__ import annotations

from mqlake.broker.lane.topics import MOST_OF_TOPIC, MOST_QUEUES, LaneTopics
from tests.broker.lane.pull_lanes import with_kernels

pytestmark = with_kernels


def test_a_topic_of_many_queues_does_not_enter_and_displaces_no_other() -> None:
    topics = LaneTopics()
    assert topics.add("T", 4, b"route")
    for queues in (MOST_OF_TOPIC + 1, MOST_QUEUES, MOST_QUEUES + 1, 1 << 31):
        assert not topics.add("large", queues, b"route")
    assert topics.queues == [("T", number) for number in range(4)]


def test_topics_enter_until_there_is_no_room_and_then_begin_anew() -> None:
    topics = LaneTopics()
    for number in range(MOST_QUEUES // MOST_OF_TOPIC):
        assert topics.add(f"T{number}", MOST_OF_TOPIC, b"route")
    assert len(topics.queues) == MOST_QUEUES
    assert topics.add("one-more", 1, b"route")
    assert topics.queues == [("one-more", 0)]
