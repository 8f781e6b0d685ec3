"""The mappings of a broker's static topics (upstream: `TopicQueueMappingManager`)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem, TopicQueueMapping
from mqlake.protocol.bodies.route import TopicQueueMappingInfo
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.logic_queues.mapping import (
    Stretches,
    change_fault,
    led_queues,
    mapping_fault,
    physical_offset,
    registered,
    stretch_at,
)
from mqlake.remoting.slices import Job
from mqlake.store.config.config_entries import TopicMappingTable

_log = logging.getLogger(__name__)


class LogicQueue(NamedTuple):
    """A logic queue that this broker leads.

    Attributes:
        mapping: the mapping of its topic. A change of the topic replaces it.
        queue_id: of the logic queue.
        items: its stretches, oldest first; at least one.
    """

    mapping: TopicQueueMapping
    queue_id: int
    items: Stretches

    @property
    def leader(self) -> LogicQueueMappingItem:
        """Return the stretch that messages are appended to: this broker's."""
        return self.items[-1]

    def stretch_at(self, logical: int) -> LogicQueueMappingItem:
        """Return the stretch of an offset of the logic queue, the first one if it is before all.

        Raises:
            RemotingError: none of its offsets is decided yet.
        """
        found = stretch_at(self.items, logical)
        if found is None:
            name = self.mapping.topic
            reason = f"{name}-{self.queue_id} has no logic offset: its remapping is not finished"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return found

    def place_of(self, logical: int) -> tuple[LogicQueueMappingItem, int]:
        """Return the stretch of an offset to commit, and the offset in the broker's queue.

        Raises:
            RemotingError: as for `stretch_at`.
        """
        item = self.stretch_at(logical)
        return item, max(item.start_offset, physical_offset(item, logical))


class StaticTopics:
    """The static topics of which a broker has, or had, queues.

    Args:
        on_change: called with the name of a topic after its mapping changed.

    Attributes:
        broker_name: the name of this broker.
        get: returns the mapping of a topic, None for any other topic.
        names: those of the static topics.
    """

    def __init__(
        self,
        broker_name: str,
        table: TopicMappingTable,
        most_queues: int,
        on_change: Callable[[str], object],
    ) -> None:
        self.broker_name, self._table, self._most_queues = broker_name, table, most_queues
        self.get, self._on_change = table.get, on_change
        self.names = set(table)
        self._faults: dict[str, str] = {}
        for name in table:
            if (fault := self._fault(table.get(name), name)) is not None:
                self._faults[name] = fault
                _log.error(
                    "static topic %s is not served, because its mapping is damaged: %s", name, fault
                )

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __len__(self) -> int:
        return len(self._table)

    @property
    def version(self) -> DataVersion:
        """How often the mappings were changed, and when they were changed last."""
        return self._table.version

    def _fault(self, mapping: TopicQueueMapping | None, name: str) -> str | None:
        if mapping is None:
            return "it is missing"
        if mapping.topic != name:
            return f"it is the mapping of topic {mapping.topic[:100]!r}"
        if mapping.bname != self.broker_name:
            return f"it is the mapping of broker {mapping.bname[:100]!r}, not {self.broker_name!r}"
        return mapping_fault(mapping, self._most_queues)

    def led(self, topic: str, queue_id: int, lo: bool | None = None) -> LogicQueue | None:
        """Return the logic queue of a request; None if the request names a queue of this broker.

        Args:
            lo: False for a request that the broker that leads the queue has translated.

        Raises:
            RemotingError: NOT_LEADER_FOR_QUEUE, or the mapping is damaged.
        """
        mapping = self.get(topic)
        if mapping is None or lo is False:
            return None
        if topic in self._faults:
            reason = f"the mapping of static topic {topic} is damaged: {self._faults[topic]}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        items = mapping.hosted_queues.get(queue_id)
        if not items or items[-1].bname != self.broker_name:
            reason = (
                f"{topic}-{queue_id} does not exist in request process of current broker"
                f" {self.broker_name}"
            )
            raise RemotingError(ResponseCode.NOT_LEADER_FOR_QUEUE, reason)
        return LogicQueue(mapping, queue_id, items)

    def is_current(self, queue: LogicQueue) -> bool:
        """Return whether a logic queue is still the one that `led` returned."""
        return self.get(queue.mapping.topic) is queue.mapping

    def to_send(self, topic: str, queue_id: int, lo: bool | None = None) -> LogicQueue | None:
        """Return the result of `led`; for a negative queue id, one of the logic queues led here."""
        mapping = self.get(topic)
        if mapping is not None and queue_id < 0:
            queue_id = _any_of(led_queues(mapping), queue_id)
        return self.led(topic, queue_id, lo)

    def registered(self, name: str) -> TopicQueueMappingInfo | None:
        """Return what name servers need to know about a topic; None if nothing."""
        mapping = self.get(name)
        return None if mapping is None or name in self._faults else registered(mapping)

    # Changes

    def checked(self, new: TopicQueueMapping, name: str, *, force: bool) -> TopicQueueMapping:
        """Return the mapping to store if an administrator sends one.

        Logic queues that the new one does not name stay as they are.

        Args:
            force: replace the old mapping whatever it says.

        Raises:
            RemotingError: the mapping is invalid, or cannot follow the old one.
        """
        fault, code = self._fault(new, name), ResponseCode.INVALID_PARAMETER
        old = self.get(name)
        if fault is None and old is not None:
            if name not in self._faults and not force:
                fault, code = change_fault(old, new), ResponseCode.SYSTEM_ERROR
            if fault is None and name not in self._faults:
                new = _with_queues(new, old)
                fault = self._fault(new, name)
        if fault is not None:
            raise RemotingError(code, f"the mapping of static topic {name}: {fault}")
        return _with_queues(new, new)

    def put(self, mapping: TopicQueueMapping) -> None:
        """Create or change a mapping that was checked."""
        self._faults.pop(mapping.topic, None)
        self._table.put(mapping)
        self._changed(mapping.topic)

    def follow(self, mappings: Mapping[str, TopicQueueMapping], version: DataVersion) -> Job[None]:
        """Replace all mappings, and their version, by those of a master, a bit at a time."""
        changed: list[str] = []
        for name in set(self._table) | mappings.keys():
            if self.get(name) != mappings.get(name):
                changed.append(name)
            yield
        yield from self._table.follow(mappings, version)
        for name in changed:
            self._faults.pop(name, None)
            if name in mappings and (fault := self._fault(mappings[name], name)) is not None:
                self._faults[name] = fault
                _log.error(
                    "static topic %s is not served, because its mapping is damaged: %s", name, fault
                )
            self._changed(name)

    def remove(self, name: str) -> bool:
        """Remove the mapping of a topic; return whether it existed."""
        self._faults.pop(name, None)
        if not self._table.remove(name):
            return False
        self._changed(name)
        return True

    def _changed(self, name: str) -> None:
        if name in self._table:
            self.names.add(name)
        else:
            self.names.discard(name)
        self._on_change(name)


def _any_of(queues: Mapping[int, int], otherwise: int) -> int:
    return random.choice(list(queues)) if queues else otherwise  # noqa: S311


def _with_queues(new: TopicQueueMapping, old: TopicQueueMapping) -> TopicQueueMapping:
    """Return a mapping with the logic queues that only the old one has; sorted by id."""
    queues = sorted({**old.hosted_queues, **new.hosted_queues}.items())
    return msgspec.structs.replace(new, hosted_queues=dict(queues))
