"""The topics, and their queues on each broker name (upstream: `RouteInfoManager`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from mqlake.formats.config.topics import PERM_READ, PERM_WRITE, Topic
from mqlake.protocol.bodies.route import QueueData, TopicQueueMappingInfo
from mqlake.remoting.slices import Job

UNIT = 1
"""Bit of a topic's `topicSysFlag`."""
UNIT_SUBSCRIPTION = 2
"""Bit of a topic's `topicSysFlag`."""


class TopicQueueTable:
    """Topics by name; for each, the queues by broker name."""

    def __init__(self) -> None:
        self.queues: dict[str, dict[str, QueueData]] = {}
        self.mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}
        self._count = 0
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of topics: a topic counts once for each broker name that has it, and a
        static topic once more for each of its queues.
        """
        return self._count

    def count_of(self, broker_name: str) -> int:
        """Return the number of topics of a broker name."""
        return self._of[broker_name]

    def _count_more(self, broker_name: str, more: int) -> None:
        self._count += more
        self._of[broker_name] += more
        if not self._of[broker_name]:
            del self._of[broker_name]

    def put(self, topic: str, data: QueueData) -> None:
        """Create or change the queues of a topic on a broker name."""
        found = self.queues.setdefault(topic, {})
        self._count_more(data.broker_name, data.broker_name not in found)
        found[data.broker_name] = data

    def put_mapping(self, topic: str, mapping: TopicQueueMappingInfo) -> None:
        """Create or change the queues of a static topic on a broker name."""
        found = self.mappings.setdefault(topic, {})
        more = len(mapping.curr_id_map) - _size(found.get(mapping.bname))
        self._count_more(mapping.bname, more)
        found[mapping.bname] = mapping

    def register(self, broker_name: str, topic: Topic, *, read_only: bool) -> None:
        """Create or change a topic as a broker reports it."""
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
        """Return whether a broker name has queues of a topic."""
        return broker_name in self.queues.get(topic, ())

    def keep_only(self, broker_name: str, topics: Iterable[str]) -> Job[None]:
        """Remove the topics of a broker name that are not among the given ones."""
        kept = set(topics)
        for topic in list(self.queues):
            if topic not in kept and self.has(topic, broker_name):
                self.forget(topic, broker_name)
            yield

    def forget(self, topic: str, broker_name: str) -> None:
        """Remove a topic's queues on a broker name, and the topic if it has no others."""
        found = self.queues.get(topic)
        if found is not None:
            self._count_more(broker_name, -(found.pop(broker_name, None) is not None))
            if not found:
                del self.queues[topic]
        mappings = self.mappings.get(topic)
        if mappings is not None:
            self._count_more(broker_name, -_size(mappings.pop(broker_name, None)))
            if not mappings:
                del self.mappings[topic]

    def forget_broker(self, broker_name: str) -> Job[None]:
        """Remove a broker name everywhere."""
        return self.keep_only(broker_name, ())

    def delete(self, topic: str) -> None:
        """Remove a topic."""
        for name in {*self.queues.get(topic, ()), *self.mappings.get(topic, ())}:
            self.forget(topic, name)

    def wipe_write(self, broker_name: str) -> Job[int]:
        """Revoke the write permission of all topics of a broker name; return how many."""
        return self._change_perm(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write(self, broker_name: str) -> Job[int]:
        """Make all topics of a broker name readable and writable; return how many."""
        return self._change_perm(broker_name, lambda _: PERM_READ | PERM_WRITE)

    def on(self, broker_names: Iterable[str]) -> Job[list[str]]:
        """Return the topics that any of the broker names has."""
        names = set(broker_names)
        return self._chosen(lambda found: not names.isdisjoint(found))

    def flagged(self, wanted: int, unwanted: int = 0) -> Job[list[str]]:
        """Return the topics with one bit of `topicSysFlag` set, and another one not."""

        def is_flagged(found: dict[str, QueueData]) -> bool:
            flag = next(iter(found.values())).topic_sys_flag if found else 0
            return bool(flag & wanted) and not flag & unwanted

        return self._chosen(is_flagged)

    def _chosen(self, is_chosen: Callable[[dict[str, QueueData]], bool]) -> Job[list[str]]:
        chosen: list[str] = []
        for topic in list(self.queues):
            found = self.queues.get(topic)
            if found is not None and is_chosen(found):
                chosen.append(topic)
            yield
        return chosen

    def _change_perm(self, broker_name: str, change: Callable[[int], int]) -> Job[int]:
        count = 0
        for topic in list(self.queues):
            data = self.queues.get(topic, {}).get(broker_name)
            if data is not None:
                data.perm = change(data.perm)
                count += 1
            yield
        return count


def _size(mapping: TopicQueueMappingInfo | None) -> int:
    return len(mapping.curr_id_map) if mapping else 0
