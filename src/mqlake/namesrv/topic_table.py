"""Which topics there are, and their queues on each broker name (upstream: `RouteInfoManager`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mqlake.formats.config.topics import PERM_READ, PERM_WRITE, Topic
from mqlake.remoting.bodies.route import QueueData, TopicQueueMappingInfo

UNIT = 1
"""Bit of a topic's `topicSysFlag`."""
UNIT_SUBSCRIPTION = 2
"""Bit of a topic's `topicSysFlag`."""


class TopicTable:
    """Topics by name; of each, the queues by broker name."""

    def __init__(self) -> None:
        self.queues: dict[str, dict[str, QueueData]] = {}
        self.mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}

    def put(self, topic: str, data: QueueData) -> None:
        """Make or change the queues of a topic on a broker name."""
        self.queues.setdefault(topic, {})[data.broker_name] = data

    def register(self, broker_name: str, topic: Topic, *, read_only: bool) -> None:
        """Make or change a topic as a broker tells it."""
        perm = topic.perm & ~PERM_WRITE if read_only else topic.perm
        self.put(
            topic.topic_name,
            QueueData(
                broker_name,
                topic.read_queue_nums,
                topic.write_queue_nums,
                perm,
                topic.topic_sys_flag,
            ),
        )

    def has(self, topic: str, broker_name: str) -> bool:
        """Say whether a broker name has queues of a topic."""
        return broker_name in self.queues.get(topic, ())

    def keep_only(self, broker_name: str, topics: Iterable[str]) -> None:
        """Forget the topics of a broker name that are not among those given."""
        kept = set(topics)
        for topic in [t for t, found in self.queues.items() if broker_name in found]:
            if topic not in kept:
                self.forget(topic, broker_name)

    def forget(self, topic: str, broker_name: str) -> None:
        """Forget a topic's queues on a broker name, and the topic if there are no others."""
        for table in (self.queues, self.mappings):
            found = table.get(topic)
            if found is not None:
                found.pop(broker_name, None)
                if not found:
                    del table[topic]

    def forget_broker(self, broker_name: str) -> None:
        """Forget a broker name everywhere."""
        self.keep_only(broker_name, ())

    def delete(self, topic: str) -> None:
        """Forget a topic."""
        self.queues.pop(topic, None)
        self.mappings.pop(topic, None)

    def wipe_write(self, broker_name: str) -> int:
        """Take the write permission from all topics of a broker name; return how many."""
        return self._change_perm(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write(self, broker_name: str) -> int:
        """Let all topics of a broker name be read and written; return how many."""
        return self._change_perm(broker_name, lambda _: PERM_READ | PERM_WRITE)

    def on(self, broker_names: Iterable[str]) -> list[str]:
        """Return the topics that any of the broker names has."""
        names = set(broker_names)
        return [topic for topic, found in self.queues.items() if not names.isdisjoint(found)]

    def flagged(self, wanted: int, unwanted: int = 0) -> list[str]:
        """Return the topics with one bit of `topicSysFlag` set, and another one not."""
        return [
            topic
            for topic, found in self.queues.items()
            if (flag := next(iter(found.values())).topic_sys_flag) & wanted and not flag & unwanted
        ]

    def _change_perm(self, broker_name: str, change: Callable[[int], int]) -> int:
        found = [on[broker_name] for on in self.queues.values() if broker_name in on]
        for data in found:
            data.perm = change(data.perm)
        return len(found)
