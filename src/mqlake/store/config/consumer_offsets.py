"""Where each consumer group stands in each queue: `config/consumerOffset.json`.

Of groups that share their messages (clustering); who broadcasts keeps its offsets by itself.
RocketMQ: `ConsumerOffsetManager`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from mqlake.formats.config import ConsumerOffsets, DataVersion
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.store.config.config_file import ConfigFile, ConfigWrite

COMMITS_A_VERSION = 500
"""So many commits count as one change of the table (`consumerOffsetUpdateVersionStep`)."""

_Table = dict[str, dict[int, int]]


class ConsumerOffsetTable:
    """Offsets by group, topic and queue; `write` keeps them."""

    def __init__(self, file: ConfigFile[ConsumerOffsets]) -> None:
        self._file = file
        self._committed: _Table = self._file.known.offset_table
        self._pulled: _Table = self._file.known.pull_offset_table
        # RocketMQ keeps these in memory only: a reset that nobody has taken is gone with it.
        self._resets: _Table = {}
        self._commits = 0
        self._count = 0
        self._topics_of: dict[str, set[str]] = {}
        self._groups_of: dict[str, set[str]] = {}
        # Offsets of one topic and group that no write that is under way has.
        self._own: set[int] = set()
        for table in (self._committed, self._pulled):
            for key, queues in table.items():
                self._count += len(queues)
                self._note(key)

    def __len__(self) -> int:
        """Return how many offsets there are, committed ones and others."""
        return self._count

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

    def has(self, group: str, topic: str, queue_id: int) -> bool:
        """Say whether a group has committed an offset in a queue."""
        return queue_id in self._committed.get(_key(topic, group), ())

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

    def has_pull(self, group: str, topic: str, queue_id: int) -> bool:
        """Say whether it is noted how far a group has pulled in a queue."""
        return queue_id in self._pulled.get(_key(topic, group), ())

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
        if not self._resets:
            return None
        key = _key(topic, group)
        resets = self._resets.get(key)
        if resets is None:
            return None
        offset = resets.pop(queue_id, None)
        if not resets:
            del self._resets[key]
        return offset

    def committed(self) -> Generator[tuple[str, dict[int, int]]]:
        """Yield each `topic@group` with its committed offsets by queue id; do not change them."""
        for key in list(self._committed):
            if (queues := self._committed.get(key)) is not None:
                yield key, queues

    def follow(
        self, table: Mapping[str, dict[int, int]], version: DataVersion
    ) -> Generator[None, None, None]:
        """Replace all committed offsets, and the version, by those of a master, a bit at a time.

        Args:
            table: by `topic@group`, then by queue id; it is this table's from now on.
        """
        for key, queues in table.items():
            self._follow(key, queues)
            yield
        for key in [key for key in self._committed if key not in table]:
            if (pair := _pair(key)) is not None:
                self.remove(pair[1], pair[0])
            yield
        if self._file.version != version:
            self._file.follow_version(version)

    def _follow(self, key: str, queues: dict[int, int]) -> None:
        old = self._committed.get(key)
        if old == queues:
            return
        if old is None:
            self._note(key)
        else:
            self._own.discard(id(old))
        self._count += len(queues) - len(old or ())
        self._committed[key] = queues
        self._own.add(id(queues))
        self._file.change()

    def topics_of(self, group: str) -> set[str]:
        """Return the topics of which a group has offsets."""
        return set(self._topics_of.get(group, ()))

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups that have offsets of a topic."""
        return set(self._groups_of.get(topic, ()))

    def committed_groups_of(self, topic: str) -> set[str]:
        """Return the groups that have committed offsets of a topic."""
        groups = self._groups_of.get(topic, ())
        return {group for group in groups if _key(topic, group) in self._committed}

    def remove(self, group: str, topic: str) -> None:
        """Forget a group's offsets of a topic."""
        key = _key(topic, group)
        for table in (self._committed, self._pulled):
            queues = table.pop(key, None)
            if queues is not None:
                self._count -= len(queues)
                self._own.discard(id(queues))
        self._resets.pop(key, None)
        _discard(self._topics_of, group, topic)
        _discard(self._groups_of, topic, group)
        self._file.change()

    def write(self) -> ConfigWrite | None:
        """Return what writes the file, None if it lacks nothing."""
        if not self._file.changed:
            return None
        # The offsets of a topic and group are copied when they change next: see `_set`.
        self._own.clear()
        committed, pulled = dict(self._committed), dict(self._pulled)

        def tables() -> dict[str, object]:
            topics: dict[str, list[str]] = {}
            for pair in map(_pair, committed):
                if pair is not None:
                    topics.setdefault(pair[1], []).append(pair[0])
            return {
                "groupTopicMap": topics,
                "offsetTable": committed,
                "pullOffsetTable": pulled,
            }

        return self._file.write(tables)

    def _set(self, table: _Table, key: str, queue_id: int, offset: int) -> None:
        queues = table.get(key)
        if queues is None:
            queues = table[key] = {}
            self._own.add(id(queues))
            self._note(key)
        old = queues.get(queue_id)
        if old == offset:
            return
        if id(queues) not in self._own:
            queues = table[key] = dict(queues)
            self._own.add(id(queues))
        if old is None:
            self._count += 1
        queues[queue_id] = offset
        self._file.change()

    def _note(self, key: str) -> None:
        """Note which group has offsets of which topic."""
        pair = _pair(key)
        if pair is not None:
            topic, group = pair
            self._topics_of.setdefault(group, set()).add(topic)
            self._groups_of.setdefault(topic, set()).add(group)


def _discard(table: dict[str, set[str]], key: str, value: str) -> None:
    found = table.get(key)
    if found is not None:
        found.discard(value)
        if not found:
            del table[key]


def _pair(key: str) -> tuple[str, str] | None:
    """Return the topic and the group of a key; what is no pair belongs to neither."""
    topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
    return (topic, group) if group and TOPIC_GROUP_SEPARATOR not in group else None


def _key(topic: str, group: str) -> str:
    return f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
