"""Incarnations of topics and consumer groups (docs/formats/incarnations.md).

A topic that is deleted and created again keeps its name and begins with queue offset 0, but its old
records stay in the log. The table says which of them are dead: those before one physical offset.
RocketMQ has no such table: its queue files alone say what exists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import config
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.config.config_file import BACKUP, ConfigFile, ConfigWrite, FileTable
from mqlake.store.config.config_files import DIRECTORY
from mqlake.store.incarnations.checksum import decode_checked, with_checksum

_log = logging.getLogger(__name__)


class TopicEnd(NamedTuple):
    """Where the last deleted incarnation of a topic ended.

    Attributes:
        before: physical offset before which the topic's records are dead. Without a deletion that
            was seen there, it was derived from records: from the first living one.
        seen: physical offset at which the log ended when the broker, or its master, deleted the
            topic; 0 if none of them is known to have done so. It is never derived: a message may
            wait longer for its topic than the first record of the topic exists.
    """

    before: int
    seen: int = 0

    def joined(self, other: TopicEnd) -> TopicEnd:
        """Return what both say."""
        return TopicEnd(max(self.before, other.before), max(self.seen, other.seen))


class Incarnations:
    """The physical offset at which the current incarnation of each name begins; 0 by default.

    A name with 0 was never deleted, or the log no longer has any of its old records. An offset is
    derived again if the table was lost, and may then be greater than it was. So compare the
    physical offset of a record with it, and not two of these offsets with each other.

    Attributes:
        topics: by name, where its last deleted incarnation ended; do not change it.
        groups: by name, the physical offset before which records are dead; do not change it.
        others: the same for topics that are not in `topics`.
    """

    def __init__(
        self,
        topics: Mapping[str, TopicEnd] | None = None,
        groups: Mapping[str, int] | None = None,
        others: int = 0,
    ) -> None:
        self.topics, self.groups, self.others = dict(topics or {}), dict(groups or {}), others

    def __bool__(self) -> bool:
        """Return whether any records of topics are dead."""
        return bool(self.topics or self.others)

    @property
    def befores(self) -> dict[str, int]:
        """Return the physical offset before which records are dead, of each topic in `topics`."""
        return {name: end.before for name, end in self.topics.items()}

    def before(self, topic: str) -> int:
        """Return the physical offset before which all records of a topic are dead."""
        end = self.topics.get(topic)
        return self.others if end is None else end.before

    def is_dead(self, topic: str, physical_offset: int) -> bool:
        """Return whether a record of a topic belongs to an incarnation that was deleted."""
        return physical_offset < self.before(topic)

    def was_deleted(self, topic: str, physical_offset: int) -> bool:
        """Return whether a topic is known to have been deleted after a physical offset.

        For messages that wait for their topic: they may be older than its first record, from which
        `before` is derived.
        """
        end = self.topics.get(topic)
        return end is not None and physical_offset < end.seen

    def derived(self, befores: Mapping[str, int], others: int | None = None) -> Incarnations:
        """Return a table that also has what was derived from records.

        Args:
            befores: by topic, the physical offset before which its records are dead.
            others: the same for topics that are in neither table; the present one if None.
        """
        known = {name: TopicEnd(before) for name, before in befores.items()}
        joined = {name: end.joined(self._end(name)) for name, end in known.items()}
        others = self.others if others is None else others
        return Incarnations({**self.topics, **joined}, self.groups, others)

    def with_older(self, older: Incarnations, min_offset: int) -> Incarnations:
        """Return this table with what an older one says of records before a physical offset.

        For a log that begins before this table's: `prune` forgets what ended before the log.

        Args:
            older: an earlier table of the same store.
            min_offset: physical offset at which the log of this table begins.
        """

        def before(topic: str) -> int:
            return max(self.before(topic), min(older.before(topic), min_offset))

        names = [*older.topics, *self.topics]
        ends = {name: TopicEnd(before(name), self._end(name).seen) for name in names}
        others = max(self.others, min(older.others, min_offset))
        topics = {name: end for name, end in ends.items() if end != TopicEnd(others)}
        return Incarnations(topics, self.groups, others)

    def _end(self, topic: str) -> TopicEnd:
        return self.topics.get(topic) or TopicEnd(self.others)

    def ended(self) -> EndedIncarnations:
        """Return a copy of the table."""
        deletions = {name: end.seen for name, end in self.topics.items() if end.seen}
        return EndedIncarnations(self.befores, self.others, dict(self.groups), deletions)

    def group_before(self, group: str) -> int:
        """Return the physical offset before which all records of a group's state are dead."""
        return self.groups.get(group, 0)


class FoundIncarnations(NamedTuple):
    """The table in a store.

    Attributes:
        table: the content of the file, or of its backup; empty without both.
        is_whole: whether it is the file's. If not, deletions may be missing.
        version: how often it was changed.
    """

    table: Incarnations
    is_whole: bool
    version: config.DataVersion = config.DataVersion()


def find_incarnations(directory: Directory) -> FoundIncarnations:
    """Read the table of a store. A damaged file counts as a missing one: it can be derived again.
    So does a file that was changed after it was written, which is logged.

    Raises:
        StoreError: an existing file cannot be read.
    """
    for suffix in ("", BACKUP):
        path = f"{DIRECTORY}/{EndedIncarnations.file_name}{suffix}"
        if content := read_file(directory, path):
            try:
                found = decode_checked(content)
            except FormatError as error:
                _log.warning(
                    "%s counts as missing, and which messages are of deleted topics is derived: %s",
                    directory.describe(path),
                    error,
                )
                continue
            return FoundIncarnations(_table(found), not suffix, found.data_version)
    return FoundIncarnations(Incarnations(), is_whole=False)


def _table(found: EndedIncarnations) -> Incarnations:
    """Return the content of a file."""
    befores = dict.fromkeys(found.deletions, found.others) | found.topics
    topics = {
        name: TopicEnd(before, found.deletions.get(name, 0)) for name, before in befores.items()
    }
    return Incarnations(topics, found.groups, found.others)


class OwnedIncarnations(Incarnations, FileTable[EndedIncarnations]):
    """The table of a store that this process owns; `write` stores it. For the store's thread.

    No dead record comes back to life, except where `adopt` and `clamp` say so.
    """

    def __init__(self, directory: OwnedDirectory, clock: Clock, found: FoundIncarnations) -> None:
        table = found.table
        super().__init__(table.topics, table.groups, table.others)
        known = msgspec.structs.replace(self.ended(), data_version=found.version)
        self._file = ConfigFile(directory, EndedIncarnations, clock, (known, {}, found.is_whole))

    @classmethod
    def load(cls, directory: OwnedDirectory, clock: Clock) -> Self:
        """Read the table of a store.

        Raises:
            StoreError: an existing file cannot be read.
        """
        return cls(directory, clock, find_incarnations(directory))

    # Change

    def end_topic(self, topic: str, before: int, seen: int = 0) -> bool:
        """Mark all records of a topic before a physical offset as dead; return whether that changes
        anything.

        Args:
            seen: as in `TopicEnd`.
        """
        known = self._end(topic)
        end = known.joined(TopicEnd(before, seen))
        if end != known:
            self.topics[topic] = end
            self._file.next_version()
        return end.before > known.before

    def end_group(self, group: str, physical_offset: int) -> bool:
        """Mark all records of a group's state before a physical offset as dead."""
        if physical_offset <= self.group_before(group):
            return False
        self.groups[group] = physical_offset
        self._file.next_version()
        return True

    def adopt(self, table: Incarnations) -> None:
        """Have the entries of another table, and no others."""
        self._replace(dict(table.topics), dict(table.groups), table.others)

    def clamp(self, log_end: int) -> int:
        """Move offsets past the log's end to it; return how many.

        The log lost its end, or an older copy of it was restored. All records that it has are dead
        nevertheless, but records that are appended from now on are not.
        """
        offsets = (*self.befores.values(), *self.groups.values(), self.others)
        count = sum(each > log_end for each in offsets)
        topics = {
            name: TopicEnd(min(end.before, log_end), min(end.seen, log_end))
            for name, end in self.topics.items()
        }
        groups = {name: min(each, log_end) for name, each in self.groups.items()}
        self._replace(topics, groups, min(self.others, log_end))
        return count

    def prune(
        self,
        min_offset: int,
        has_topic: Callable[[str], bool],
        has_group: Callable[[str], bool],
    ) -> None:
        """Forget names that do not exist and of which the log has no records.

        Names that exist stay: somebody may have a position in a dead incarnation of them.

        Args:
            min_offset: physical offset of the log's first byte.
        """
        others = self.others if self.others > min_offset else 0
        ends = {
            name: end if end.seen > min_offset else TopicEnd(end.before)
            for name, end in self.topics.items()
        }
        topics = {
            name: end
            for name, end in ends.items()
            if end != TopicEnd(others) and (end.before > min_offset or others or has_topic(name))
        }
        groups = {
            name: each for name, each in self.groups.items() if each > min_offset or has_group(name)
        }
        self._replace(topics, groups, others)

    def _replace(self, topics: dict[str, TopicEnd], groups: dict[str, int], others: int) -> None:
        if (topics, groups, others) == (self.topics, self.groups, self.others):
            return
        self.topics, self.groups, self.others = topics, groups, others
        self._file.next_version()

    # Store

    def complete(self) -> None:
        """Note that the table is complete: the store needs the file, even an empty one."""
        self._file.change()

    def write(self) -> ConfigWrite | None:
        """Return a job that writes the file, None if it is up to date."""
        if not self._file.changed:
            return None
        now = msgspec.structs.replace(self.ended(), data_version=self.version)
        return self._file.write(lambda: with_checksum(now))
