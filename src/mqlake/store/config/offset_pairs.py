"""The topics and groups of which a broker has consumer offsets, each found by the other."""

from __future__ import annotations

import sys

_Groups = tuple[str, ...] | set[str]
_FEW_GROUPS = 4
"""So many groups are in a tuple. It takes a fifth of the memory of a set, and a lite topic has few
groups.
"""


class OffsetPairs:
    """Pairs of a topic and a group."""

    def __init__(self) -> None:
        self._topics_of: dict[str, set[str]] = {}
        self._groups_of: dict[str, _Groups] = {}

    def add(self, topic: str, group: str) -> None:
        """Add a pair, unless it is there."""
        group = sys.intern(group)
        self._topics_of.setdefault(group, set()).add(topic)
        groups = self._groups_of.get(topic, ())
        if isinstance(groups, set):
            groups.add(group)
        elif group not in groups:
            more = (*groups, group)
            self._groups_of[topic] = more if len(more) <= _FEW_GROUPS else set(more)

    def remove(self, topic: str, group: str) -> None:
        """Remove a pair, if it is there."""
        topics = self._topics_of.get(group, set())
        topics.discard(topic)
        if not topics:
            self._topics_of.pop(group, None)
        groups = self._groups_of.get(topic, ())
        if isinstance(groups, set):
            groups.discard(group)
        else:
            groups = self._groups_of[topic] = tuple(each for each in groups if each != group)
        if not groups:
            self._groups_of.pop(topic, None)

    def has_topics(self, group: str) -> bool:
        """Return whether a group is in a pair."""
        return group in self._topics_of

    def topics_of(self, group: str) -> set[str]:
        """Return the topics of a group."""
        return set(self._topics_of.get(group, ()))

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups of a topic."""
        return set(self._groups_of.get(topic, ()))
