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
        self._added: Counter[str] = Counter()
        self._adders: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        """Return the number of topics: a topic counts once for each broker name that has it, and a
        static topic once more for each of its queues.
        """
        return self._count

    def count_of(self, broker_name: str) -> int:
        """Return the number of topics that brokers of a name have registered."""
        return self._of[broker_name]

    def added_by(self, owner: str) -> int:
        """Return the number of topics that a client has added to brokers one by one."""
        return self._added[owner]

    def _count_more(self, broker_name: str, more: int) -> None:
        self._count += more
        self._of[broker_name] += more
        if not self._of[broker_name]:
            del self._of[broker_name]

    def put(self, topic: str, data: QueueData, adder: str | None = None) -> None:
        """Create or change the queues of a topic on a broker name.

        Args:
            adder: the client to which a new topic counts; None if it is the broker's own.
        """
        found, name = self.queues.setdefault(topic, {}), data.broker_name
        if name in found and adder is None:
            self._count_removed(topic, name)
        if name not in found or adder is None:
            self._count_put(topic, name, adder)
        found[name] = data

    def _count_put(self, topic: str, broker_name: str, adder: str | None) -> None:
        if adder is None:
            self._count_more(broker_name, 1)
            return
        self._count += 1
        self._added[adder] += 1
        self._adders[topic, broker_name] = adder

    def _count_removed(self, topic: str, broker_name: str) -> None:
        adder = self._adders.pop((topic, broker_name), None)
        if adder is None:
            self._count_more(broker_name, -1)
            return
        self._count -= 1
        self._added[adder] -= 1
        if not self._added[adder]:
            del self._added[adder]

    def put_mapping(self, topic: str, mapping: TopicQueueMappingInfo) -> None:
        """Create or change the queues of a static topic on a broker name."""
        found = self.mappings.setdefault(topic, {})
        more = mapping_size(mapping) - mapping_size(found.get(mapping.bname))
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
        for table in (self.queues, self.mappings):  # A mapping may be there without its topic.
            for topic in list(table):
                if topic not in kept and broker_name in table.get(topic, ()):
                    self.forget(topic, broker_name)
                yield

    def forget(self, topic: str, broker_name: str) -> None:
        """Remove a topic's queues on a broker name, and the topic if it has no others."""
        found = self.queues.get(topic)
        if found is not None:
            if found.pop(broker_name, None) is not None:
                self._count_removed(topic, broker_name)
            if not found:
                del self.queues[topic]
        mappings = self.mappings.get(topic)
        if mappings is not None:
            self._count_more(broker_name, -mapping_size(mappings.pop(broker_name, None)))
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


def mapping_size(mapping: TopicQueueMappingInfo | None) -> int:
    """Return how many topics the queues of a static topic on a broker name count as."""
    return max(1, len(mapping.curr_id_map)) if mapping else 0
