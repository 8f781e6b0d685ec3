"""Where each consumer group stands in each queue: `config/consumerOffset.json`.

Of groups that share their messages (clustering); who broadcasts keeps its offsets by itself.
RocketMQ: `ConsumerOffsetManager`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats.config import ConsumerOffsets, DataVersion
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.config.config_file import ConfigFile, ConfigWrite

COMMITS_A_VERSION = 500
"""So many commits count as one change of the table (`consumerOffsetUpdateVersionStep`)."""

_Table = dict[str, dict[int, int]]


class ConsumerOffsetTable:
    """Offsets by group, topic and queue; `write` keeps them."""

    def __init__(self, directory: OwnedDirectory, clock: Clock) -> None:
        self._file = ConfigFile(directory, ConsumerOffsets, clock)
        self._committed: _Table = self._file.known.offset_table
        self._pulled: _Table = self._file.known.pull_offset_table
        # RocketMQ keeps these in memory only: a reset that nobody has taken is gone with it.
        self._resets: _Table = {}
        self._commits = 0

    @property
    def version(self) -> DataVersion:
        """How often the table was changed, and when last."""
        return self._file.version

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the queue offset that a group reads next; it may go back."""
        self._set(self._committed, _key(topic, group), queue_id, offset)
        self._commits += 1
        if self._commits % COMMITS_A_VERSION == 0:
            self._file.next_version()

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the queue offset that a group reads next, None where it has none.

        A reset that the group has not taken yet comes first.
        """
        key = _key(topic, group)
        reset = self._resets.get(key, {}).get(queue_id)
        return self._committed.get(key, {}).get(queue_id) if reset is None else reset

    def query_topic(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's committed offsets of a topic, by queue id."""
        return dict(self._committed.get(_key(topic, group), {}))

    def commit_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Note how far a group has pulled, which it may not have consumed yet."""
        self._set(self._pulled, _key(topic, group), queue_id, offset)

    def query_pull(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return how far a group has pulled; what it committed where that is not known."""
        found = self._pulled.get(_key(topic, group), {}).get(queue_id)
        return self.query(group, topic, queue_id) if found is None else found

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the offset that a group is to go on from, whatever it commits until it takes it."""
        self._resets.setdefault(_key(topic, group), {})[queue_id] = offset
        self._set(self._committed, _key(topic, group), queue_id, offset)

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Say whether there is a reset that the group has not taken yet."""
        return queue_id in self._resets.get(_key(topic, group), {})

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the offset of a reset and forget it, None where there was none."""
        return self._resets.get(_key(topic, group), {}).pop(queue_id, None)

    def copy(self, group: str, to_group: str, topic: str) -> None:
        """Let a group stand where another one stands."""
        for queue_id, offset in self.query_topic(group, topic).items():
            self._set(self._committed, _key(topic, to_group), queue_id, offset)

    def topics_of(self, group: str) -> set[str]:
        """Return the topics of which a group has offsets."""
        return {topic for topic, found in self._pairs() if found == group}

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups that have offsets of a topic."""
        return {group for found, group in self._pairs() if found == topic}

    def topics_by_group(self) -> dict[str, set[str]]:
        """Return what `topics_of` does, of every group that has offsets."""
        found: dict[str, set[str]] = {}
        for topic, group in self._pairs():
            found.setdefault(group, set()).add(topic)
        return found

    def remove_topic(self, topic: str) -> None:
        """Forget all offsets of a topic."""
        for group in self.groups_of(topic):
            self._remove(_key(topic, group))

    def remove_group(self, group: str) -> None:
        """Forget all offsets of a group."""
        for topic in self.topics_of(group):
            self._remove(_key(topic, group))

    def write(self) -> ConfigWrite | None:
        """Return what writes the file, None if it lacks nothing."""
        if not self._file.changed:
            return None
        topics: dict[str, list[str]] = {}
        for topic, group in self._pairs(self._committed):
            topics.setdefault(group, []).append(topic)
        return self._file.write(
            {
                "groupTopicMap": topics,
                "offsetTable": self._committed,
                "pullOffsetTable": self._pulled,
            }
        )

    def _set(self, table: _Table, key: str, queue_id: int, offset: int) -> None:
        queues = table.setdefault(key, {})
        if queues.get(queue_id) != offset:
            queues[queue_id] = offset
            self._file.change()

    def _remove(self, key: str) -> None:
        for table in (self._committed, self._pulled, self._resets):
            table.pop(key, None)
        self._file.change()

    def _pairs(self, *tables: _Table) -> Iterator[tuple[str, str]]:
        """Yield topic and group of each key; what is no pair belongs to neither."""
        for table in tables or (self._committed, self._pulled, self._resets):
            for key in table:
                topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
                if group and TOPIC_GROUP_SEPARATOR not in group:
                    yield topic, group


def _key(topic: str, group: str) -> str:
    return f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
