"""The offsets of each consumer group in each queue: `config/consumerOffset.json`.

These are groups that share their messages (clustering); broadcasting consumers keep their offsets
themselves. Upstream: `ConsumerOffsetManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from mqlake.formats.config import ConsumerOffsets, DataVersion
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.store.config.config_file import ConfigFile, ConfigWrite, FileTable
from mqlake.store.config.offset_pairs import OffsetPairs

COMMITS_A_VERSION = 500
"""The number of commits that count as one change of the table
(`consumerOffsetUpdateVersionStep`).
"""

NO_OFFSET = -1
"""What RocketMQ's clients may commit before they know an offset."""

LARGEST_OFFSET = 2**62
"""The largest offset that is stored: queues count up from there without a limit in sight."""

MOST_RESTARTS = 10_000
"""The maximum number of topics of groups that start at 0 again; the oldest are forgotten."""

_Table = dict[str, dict[int, int]]
_MEMBERS = _TOPICS, _OFFSETS, _PULLED = "groupTopicMap", "offsetTable", "pullOffsetTable"
"""Members of the file that a write replaces."""


class ConsumerOffsetTable(FileTable[ConsumerOffsets]):
    """Offsets by group, topic and queue; `write` stores them.

    Attributes:
        reset_changes: counts the resets that came, were applied or were forgotten.
    """

    def __init__(self, file: ConfigFile[ConsumerOffsets]) -> None:
        self._file = file
        found = file.hand_over(*_MEMBERS)
        self._committed: _Table = found.offset_table
        self._pulled: _Table = found.pull_offset_table
        # RocketMQ keeps these only in memory: a reset that no consumer has applied is lost when it
        # stops.
        self._resets: _Table = {}
        # The queues of deleted topics that running consumers start again, by topic and group.
        self._restarts: dict[str, set[int]] = {}
        self._commits = 0
        self._count = self.reset_changes = 0
        self._pairs = OffsetPairs()
        # Offsets of one topic and group that are not in a write in progress.
        self._own: set[int] = set()
        self._counted: Callable[[str, int], None] = lambda _group, _more: None
        for table in (self._committed, self._pulled):
            for key, queues in table.items():
                self._count += len(queues)
                self._note(key)

    def __len__(self) -> int:
        """Return how many offsets there are, committed ones and others."""
        return self._count

    def on_count(self, counted: Callable[[str, int], None]) -> None:
        """Call a function with a group, and how many offsets it has more (or fewer) than before.

        It is first called for the present offsets.
        """
        for table in (self._committed, self._pulled):
            for key, queues in table.items():
                if (pair := _pair(key)) is not None:
                    counted(pair[1], len(queues))
        self._counted = counted

    def _count_more(self, key: str, more: int) -> None:
        self._count += more
        if more and (pair := _pair(key)) is not None:
            self._counted(pair[1], more)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the offset that a group reads next in a queue; it may decrease.

        What is no queue offset is ignored: slaves would refuse it.
        """
        if not may_be_committed(offset):
            return
        self._set(self._committed, _key(topic, group), queue_id, offset)
        self._commits += 1
        if self._commits % COMMITS_A_VERSION == 0:
            self._file.next_version()

    def has(self, group: str, topic: str, queue_id: int) -> bool:
        """Return whether a group has committed an offset in a queue."""
        return queue_id in self._committed.get(_key(topic, group), ())

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the offset that a group reads next in a queue, or None if it has no offset.

        A reset that the group has not applied yet comes first.
        """
        key = _key(topic, group)
        reset = self._resets.get(key, {}).get(queue_id)
        if reset is None and queue_id in self._restarts.get(key, ()):
            return 0
        return self._committed.get(key, {}).get(queue_id) if reset is None else reset

    def query_topic(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's committed offsets of a topic, by queue id."""
        return dict(self._committed.get(_key(topic, group), {}))

    def commit_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store how far a group has pulled; it may not have consumed those messages yet.

        What is no queue offset is ignored.
        """
        if not may_be_committed(offset):
            return
        self._set(self._pulled, _key(topic, group), queue_id, offset)

    def has_pull(self, group: str, topic: str, queue_id: int) -> bool:
        """Return whether it is known how far a group has pulled in a queue."""
        return queue_id in self._pulled.get(_key(topic, group), ())

    def query_pull(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return how far a group has pulled; its committed offset if that is unknown."""
        found = self._pulled.get(_key(topic, group), {}).get(queue_id)
        return self.query(group, topic, queue_id) if found is None else found

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the offset at which a group continues, whatever it commits until it applies the
        reset.

        What is no queue offset becomes the nearest one.
        """
        offset = min(max(offset, NO_OFFSET), LARGEST_OFFSET)
        self.reset_changes += 1
        self._resets.setdefault(_key(topic, group), {})[queue_id] = offset
        self._set(self._committed, _key(topic, group), queue_id, offset)
        self._file.next_version()

    @property
    def has_resets(self) -> bool:
        """Return whether there is any reset that its group has not applied yet."""
        return bool(self._resets or self._restarts)

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Return whether there is a reset that the group has not applied yet."""
        if not self.has_resets:
            return False
        return queue_id in self._resets.get(_key(topic, group), ()) or self.begins_anew(
            group, topic, queue_id
        )

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Remove a reset; return its offset, or None if the queue has no reset."""
        if not self.has_resets:
            return None
        key = _key(topic, group)
        self.reset_changes += 1
        is_restart = self._take_restart(key, queue_id)
        resets = self._resets.get(key)
        if resets is None:
            return 0 if is_restart else None
        offset = resets.pop(queue_id, None)
        if not resets:
            del self._resets[key]
        return 0 if offset is None and is_restart else offset

    def begin_anew(self, group: str, topic: str) -> None:
        """Start a group at 0 in the queues of a topic that is deleted, if it is created again.

        This is a reset that survives the removal of the group's offsets, but not a restart.
        """
        key = _key(topic, group)
        queue_ids = {
            queue_id
            for table in (self._committed, self._pulled)
            for queue_id, offset in table.get(key, {}).items()
            if offset
        }
        if not queue_ids:
            return
        self.reset_changes += 1
        self._restarts[key] = queue_ids | self._restarts.pop(key, set())
        if len(self._restarts) > MOST_RESTARTS:
            del self._restarts[next(iter(self._restarts))]

    def begins_anew(self, group: str, topic: str, queue_id: int) -> bool:
        """Return whether a group has not begun a queue of a topic that was created again."""
        return queue_id in self._restarts.get(_key(topic, group), ())

    def forget_restarts(self, group: str) -> None:
        """Forget the queues that a group was to start again."""
        self.reset_changes += 1
        for key in [key for key in self._restarts if (_pair(key) or ("", ""))[1] == group]:
            del self._restarts[key]

    def _take_restart(self, key: str, queue_id: int) -> bool:
        queue_ids = self._restarts.get(key)
        if queue_ids is None or queue_id not in queue_ids:
            return False
        queue_ids.discard(queue_id)
        if not queue_ids:
            del self._restarts[key]
        return True

    def committed(self) -> Generator[tuple[str, dict[int, int]]]:
        """Yield each `topic@group` with its committed offsets by queue id; do not change them."""
        for key in list(self._committed):
            if (queues := self._committed.get(key)) is not None:
                yield key, queues

    def follow(
        self, table: Mapping[str, dict[int, int]], version: DataVersion
    ) -> Generator[None, None, None]:
        """Replace all committed offsets, and the version, by those of a master, in slices.

        Args:
            table: by `topic@group`, then by queue id; this object owns it from now on.
        """
        for key, queues in table.items():
            self._follow(key, queues)
            yield
        for key in [key for key in self._committed if key not in table]:
            if (pair := _pair(key)) is not None:
                self._remove(pair[1], pair[0])
            yield
        if self._file.version != version:
            self._file.follow_version(version)

    def clamp(self, end_of: Callable[[str, int], int | None]) -> Generator[None, None, int]:
        """Move offsets past the end of their queue to the end, a topic of a group at a time.

        Otherwise a group would skip the messages that are put there next.

        Args:
            end_of: returns the end of a topic's queue; None if its offsets are not its own.

        Returns:
            How many were moved.
        """
        count = 0
        for table in (self._committed, self._pulled):
            for key in list(table):
                topic, _ = _pair(key) or ("", "")
                for queue_id, offset in list(table.get(key, {}).items()) if topic else ():
                    end = end_of(topic, queue_id)
                    if end is not None and offset > end:
                        self._set(table, key, queue_id, end)
                        count += 1
                yield
        if count:
            self._file.next_version()
        return count

    def advance(self, group: str, topic: str, queues: Mapping[int, int]) -> None:
        """Set a group's committed offsets to those by queue id that are larger."""
        key = _key(topic, group)
        for queue_id, offset in queues.items():
            known = self._committed.get(key, {}).get(queue_id)
            if known is None or offset > known:
                self._set(self._committed, key, queue_id, offset)

    def next_version(self) -> None:
        """Let this table be later than every copy of it."""
        self._file.next_version()

    def keep_up(self, version: DataVersion) -> None:
        """Let this table's version be no earlier than another one."""
        if is_older(self._file.version, version):
            self._file.follow_version(version)

    def _follow(self, key: str, queues: dict[int, int]) -> None:
        old = self._committed.get(key)
        if old == queues:
            return
        if old is None:
            self._note(key)
        else:
            self._own.discard(id(old))
        self._count_more(key, len(queues) - len(old or ()))
        self._committed[key] = queues
        self._own.add(id(queues))
        self._file.change()

    def has_any(self, group: str) -> bool:
        """Return whether a group has offsets."""
        return self._pairs.has_topics(group)

    def topics_of(self, group: str) -> set[str]:
        """Return the topics for which a group has offsets."""
        return self._pairs.topics_of(group)

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups that have offsets for a topic."""
        return self._pairs.groups_of(topic)

    def has_committed(self, group: str, topic: str) -> bool:
        """Return whether a group has committed offsets for a topic."""
        return _key(topic, group) in self._committed

    def remove(self, group: str, topic: str) -> None:
        """Remove a group's offsets for a topic."""
        before = self._count
        self._remove(group, topic)
        if self._count != before:
            self._file.next_version()

    def _remove(self, group: str, topic: str) -> None:
        key = _key(topic, group)
        for table in (self._committed, self._pulled):
            queues = table.pop(key, None)
            if queues is not None:
                self._count_more(key, -len(queues))
                self._own.discard(id(queues))
        self.reset_changes += 1
        self._resets.pop(key, None)
        self._pairs.remove(topic, group)
        self._file.change()

    def write(self) -> ConfigWrite | None:
        """Return a job that writes the file, or None if it is up to date."""
        if not self._file.changed:
            return None
        # The offsets of a topic and group are copied at their next change: see `_set`.
        self._own.clear()
        committed, pulled = dict(self._committed), dict(self._pulled)

        def tables() -> dict[str, object]:
            topics: dict[str, list[str]] = {}
            for pair in map(_pair, committed):
                if pair is not None:
                    topics.setdefault(pair[1], []).append(pair[0])
            return {
                _TOPICS: topics,
                _OFFSETS: committed,
                _PULLED: pulled,
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
            self._count_more(key, 1)
        queues[queue_id] = offset
        self._file.change()

    def _note(self, key: str) -> None:
        """Note which group has offsets for which topic."""
        pair = _pair(key)
        if pair is not None:
            self._pairs.add(*pair)


def may_be_committed(offset: int) -> bool:
    """Return whether a number can be stored as a committed offset."""
    return NO_OFFSET <= offset <= LARGEST_OFFSET


def is_older(version: DataVersion, other: DataVersion) -> bool:
    """Return whether a version of the table is older than another one."""
    return _age(version) < _age(other)


def _age(version: DataVersion) -> tuple[int, int, int]:
    """Return what RocketMQ compares versions by, most significant first."""
    return version.state_version, version.counter, version.timestamp


def _pair(key: str) -> tuple[str, str] | None:
    """Return the topic and the group of a key; two empty strings if it is not such a pair."""
    topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
    return (topic, group) if group and TOPIC_GROUP_SEPARATOR not in group else None


def _key(topic: str, group: str) -> str:
    return f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
