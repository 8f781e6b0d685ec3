"""The queues that a pop reads, and their order.

Upstream: `PopMessageProcessor.processRequest`, `popMsgFromTopic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import MESSAGE_TYPE, PRIORITIES, Topic
from mqlake.protocol.retry_topics import retry_topics

ALL_QUEUES = -1
_SHORT = 64
"""Queues that are read in a single call."""
_WORD = 32
_SPREAD = 0x9E3779B9
"""2^32 divided by the golden ratio: it distributes numbers with any step evenly."""


class Round(NamedTuple):
    """Queues of one or more topics.

    Attributes:
        turn: each topic's queues are read from a different one on each time.
        topics: the names, and the ids of the queues that are read.
    """

    turn: int
    topics: list[tuple[str, range]]

    @property
    def is_short(self) -> bool:
        """Return whether it takes little time, if each queue does."""
        return sum(len(ids) for _, ids in self.topics) <= _SHORT

    def queues(self) -> Iterator[tuple[str, int]]:
        """Yield the topic and the id of each queue."""
        for name, ids in self.topics:
            for number in range(self.turn, self.turn + len(ids)):
                yield name, ids[number % len(ids)]


class Rounds:
    """Counts the rounds of one broker."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._turn = 0

    def are_short(self, name: str) -> bool:
        """Return whether a round over all queues of a topic takes little time."""
        topic = self._state.topics.get(name)
        return topic is None or topic.read_queue_nums <= _SHORT

    def next(self, topic: Topic, queue_id: int, group: str, *, is_ordered: bool) -> Round:
        """Return the next round of a group over a queue of a topic, or `ALL_QUEUES`.

        It includes retry topics, unless the queues are popped in order. By priority, queues are
        read from the highest priority on, and not in turn.
        """
        self._turn += 1
        settings, percent = self._runtime.settings, self._percent()
        names = () if is_ordered else retry_topics(topic.topic_name, group)
        by_priority = not is_ordered and percent < self._factor(topic, group)
        is_reversed = by_priority and settings.priority_order_asc
        found = (self._state.topics.get(name) for name in names)
        retries = [
            (retry.topic_name, _ids(retry, is_reversed=is_reversed)) for retry in found if retry
        ]
        is_all = queue_id == ALL_QUEUES
        ids = _ids(topic, is_reversed=is_reversed) if is_all else range(queue_id, queue_id + 1)
        own = (topic.topic_name, ids)
        is_retry_first = percent < (
            settings.pop_from_retry_probability_for_priority
            if by_priority
            else settings.pop_from_retry_probability
        )
        turn = 0 if by_priority else self._turn
        return Round(turn, [*retries, own] if is_retry_first else [own, *retries])

    def _percent(self) -> int:
        """Return a number below 100, a different one for each round: all are equally frequent."""
        return (self._turn * _SPREAD % (1 << _WORD)) * 100 >> _WORD

    def _factor(self, topic: Topic, group: str) -> int:
        """Return the percentage of the rounds that are by priority."""
        if topic.attributes.get(MESSAGE_TYPE) != PRIORITIES:
            return 0
        found = self._state.groups.get(group)
        return found.priority_factor if found else 0


def _ids(topic: Topic, *, is_reversed: bool) -> range:
    ids = range(topic.read_queue_nums)
    return ids[::-1] if is_reversed else ids
