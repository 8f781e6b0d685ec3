"""The tables of topics and of consumer groups: named entries of a configuration file.

Upstream: `TopicConfigManager`, `SubscriptionGroupManager`, `TopicQueueMappingManager`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Generic, TypeVar, cast

import msgspec

from mqlake.formats import fastjson
from mqlake.formats.config import DataVersion, SubscriptionGroups, TopicQueueMappings, Topics
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topic_queue_mapping import TopicQueueMapping
from mqlake.formats.config.topics import Topic
from mqlake.store.config.config_file import C, ConfigFile, ConfigWrite, Fields, FileTable

E = TypeVar("E", bound=msgspec.Struct)

_DEPTH = 1
"""The table is in the file's object."""


class ConfigEntries(FileTable[C], Generic[C, E]):
    """Entries by name. Every change counts in the file's version; `write` stores them.

    A file may have 50,000 entries, and is written as a whole when one changes: the text of an entry
    is created again only if the entry has changed.
    """

    def __init__(self, file: ConfigFile[C], table: str, entries: dict[str, E]) -> None:
        self._file, self._table, self._entries = file, table, dict(entries)
        found = file.fields.get(table)
        self._loaded = cast("dict[str, Fields | None]", found) if isinstance(found, dict) else {}
        self._encoded: dict[str, E] = {}
        self._texts: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def get(self, name: str) -> E | None:
        """Return an entry, None if no entry has this name."""
        return self._entries.get(name)

    def remove(self, name: str) -> bool:
        """Remove an entry; return whether it existed."""
        if self._entries.pop(name, None) is None:
            return False
        self._loaded.pop(name, None)
        self._file.next_version()
        return True

    def follow(self, entries: Mapping[str, E], version: DataVersion) -> Generator[None, None, None]:
        """Replace all entries, and the version, by those of a master, a bit at a time.

        Nothing changes before the last step, and everything does in that.
        """
        followed: dict[str, E] = {}
        for name, entry in entries.items():
            followed[name] = self._same(name, entry)
            yield
        stale: list[str] = []
        for name in list(self._loaded):
            if self._entries.get(name) != entries.get(name):
                stale.append(name)
            yield
        for name in stale:
            self._loaded.pop(name, None)
        self._entries = followed
        self._file.follow_version(version)

    def _same(self, name: str, entry: E) -> E:
        """Return the existing entry if it is equal: its text is known."""
        known = self._entries.get(name)
        return known if known is not None and known == entry else entry

    def write(self) -> ConfigWrite | None:
        """Return a job that writes the file, None if it is up to date."""
        if not self._file.changed:
            return None
        entries, others = dict(self._entries), self._others()

        def tables() -> Fields:
            return {self._table: self._encode(entries), **others}

        return self._file.write(tables)

    def _encode(self, entries: dict[str, E]) -> fastjson.Encoded:
        """Return the text of the table; only one thread calls it at a time."""
        known, texts = self._encoded, self._texts
        for name in [name for name, entry in entries.items() if known.get(name) is not entry]:
            merged = _merged(entries[name], self._loaded.get(name) or {})
            texts[name] = fastjson.encode_member(name, merged, _DEPTH)
        if len(texts) > len(entries):
            self._texts = texts = {name: texts[name] for name in entries}
        self._encoded = entries
        return fastjson.join_members(texts.values(), _DEPTH)

    def _others(self) -> Fields:
        """Return the file's other tables, which no longer change."""
        return {}

    def _put(self, name: str, entry: E) -> None:
        if self._entries.get(name) != entry:
            self._entries[name] = entry
            self._file.next_version()


class TopicTable(ConfigEntries[Topics, Topic]):
    """The topics of a store: `config/topics.json`."""

    def __init__(self, file: ConfigFile[Topics]) -> None:
        super().__init__(file, "topicConfigTable", file.known.topic_config_table)

    def put(self, topic: Topic) -> None:
        """Create or change a topic."""
        self._put(topic.topic_name, topic)

    def count_change(self) -> None:
        """Count a change of what brokers register in addition to the topics."""
        self._file.next_version()

    def begin_state(self, state_version: int) -> None:
        """Let the versions from now on be later than those of earlier masters."""
        self._file.begin_state(state_version)

    def ensure(self, name: str, queues: int) -> Topic:
        """Return a topic; if it does not exist, create it with so many queues to read and write."""
        found = self.get(name)
        if found is None:
            found = Topic(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
            self.put(found)
        return found


class GroupTable(ConfigEntries[SubscriptionGroups, SubscriptionGroup]):
    """The consumer groups of a store: `config/subscriptionGroup.json`."""

    def __init__(self, file: ConfigFile[SubscriptionGroups]) -> None:
        super().__init__(file, "subscriptionGroupTable", file.known.subscription_group_table)
        self._forbidden = file.known.forbidden_table
        file.fields["forbiddenTable"] = {}

    def _others(self) -> Fields:
        return {"forbiddenTable": self.forbidden_table()}

    def put(self, group: SubscriptionGroup) -> None:
        """Create or change a consumer group."""
        self._put(group.group_name, group)

    def forbidden(self, group: str, topic: str) -> int:
        """Return what a group must not do with a topic: a sum of PERM_* bits."""
        return self._forbidden.get(group, {}).get(topic, 0)

    def is_forbidden_any(self, group: str) -> bool:
        """Return whether a group must not do something with any topic."""
        return group in self._forbidden

    def forbid(self, group: str, topic: str, bits: int) -> None:
        """Set what a group must not do with a topic."""
        if bits == self.forbidden(group, topic):
            return
        topics = self._forbidden.setdefault(group, {})
        if bits:
            topics[topic] = bits
        else:
            topics.pop(topic, None)
        if not topics:
            del self._forbidden[group]
        self._file.next_version()

    def forbidden_table(self) -> dict[str, dict[str, int]]:
        """Return what groups must not do, by group and topic."""
        return {group: dict(topics) for group, topics in self._forbidden.items()}

    def follow_forbidden(self, table: Mapping[str, Mapping[str, int]]) -> None:
        """Replace what groups must not do by a master's table."""
        self._forbidden = {group: dict(topics) for group, topics in table.items() if topics}
        self._file.change()

    @property
    def forbidden_count(self) -> int:
        """The number of topics of groups for which something is forbidden."""
        return sum(map(len, self._forbidden.values()))

    def remove(self, name: str) -> bool:
        """Remove a group, and what it must not do; return whether it existed."""
        if self._forbidden.pop(name, None) is not None:
            self._file.next_version()
        return super().remove(name)


class TopicMappingTable(ConfigEntries[TopicQueueMappings, TopicQueueMapping]):
    """The static topics of a store: `config/topicQueueMapping.json`."""

    def __init__(self, file: ConfigFile[TopicQueueMappings]) -> None:
        table = "topicQueueMappingInfoMap"
        super().__init__(file, table, file.known.topic_queue_mapping_info_map)

    def put(self, mapping: TopicQueueMapping) -> None:
        """Create or change the mapping of a static topic."""
        self._put(mapping.topic, mapping)


def _merged(entry: msgspec.Struct, stored: Fields) -> Fields:
    """Return the members of an entry, with those in the file that this release does not know.

    Members without a value are left out, as fastjson leaves out null.
    """
    known = cast("Fields", msgspec.to_builtins(entry))
    unknown = {name: value for name, value in stored.items() if name not in known}
    given = {name: _without_nulls(value) for name, value in known.items() if value is not None}
    given = {name: value for name, value in given.items() if value != [] or name in stored}
    return dict(sorted({**unknown, **given}.items()))


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        items = cast("Fields", value).items()
        return {name: _without_nulls(item) for name, item in items if item is not None}
    return value
