"""Which queues a pop looks into, and in what order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqlake.broker.parts import Parts
from mqlake.formats.config.topics import Topic
from mqlake.protocol.retry_topics import retry_topics

ALL_QUEUES = -1
_RETRY_FIRST = 5
"""One of so many pops looks into the retry topic first, the others last."""
_SHORT = 64
"""Queues that are looked into in one go."""


class Round(NamedTuple):
    """Queues of one topic or more, each topic's from another one on each time.

    Attributes:
        turn: the number of the round.
        topics: the names, and the ids of the queues that are looked into.
    """

    turn: int
    topics: list[tuple[str, range]]

    @property
    def is_short(self) -> bool:
        """Whether it takes little time, if each queue does."""
        return sum(len(ids) for _, ids in self.topics) <= _SHORT

    def queues(self) -> Iterator[tuple[str, int]]:
        """Yield the topic and the id of each queue."""
        for name, ids in self.topics:
            for number in range(self.turn, self.turn + len(ids)):
                yield name, ids[number % len(ids)]


class Rounds:
    """Counts the rounds of one broker."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turn = 0

    def are_short(self, name: str) -> bool:
        """Say whether a round over all queues of a topic takes little time."""
        topic = self._parts.topics.get(name)
        return topic is None or topic.read_queue_nums <= _SHORT

    def next(self, topic: Topic, queue_id: int, group: str, *, is_ordered: bool) -> Round:
        """Return the next round of a group over a queue of a topic, or `ALL_QUEUES`.

        Retry topics belong to it, unless the queues are to be popped in order.
        """
        self._turn += 1
        is_v2 = self._parts.settings.enable_retry_topic_v2
        names = [] if is_ordered else retry_topics(topic.topic_name, group, is_v2=is_v2)
        found = (self._parts.topics.get(name) for name in names)
        retries = [(retry.topic_name, range(retry.read_queue_nums)) for retry in found if retry]
        is_all = queue_id == ALL_QUEUES
        ids = range(topic.read_queue_nums) if is_all else range(queue_id, queue_id + 1)
        own = (topic.topic_name, ids)
        is_retry_first = self._turn % _RETRY_FIRST == 0
        return Round(self._turn, [*retries, own] if is_retry_first else [own, *retries])
