"""Find from a store's queue files and tables which records belong to deleted topics.

This decides where the table of incarnations lacks a topic: a store that another broker wrote has no
such table. The queue files are what the broker serves, so they weigh more than the log alone.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from mqlake.store.incarnations.restarts import Start, Starts, befores, is_restart
from mqlake.store.log.scan import Queue


class Evidence(msgspec.Struct, frozen=True):
    """What queue files and tables show.

    Attributes:
        begins: the physical offset of the record with queue offset 0, of each queue whose files
            begin with it: earlier records of the queue are dead.
        topics: the topics that exist: with queue files, or with settings; None if that is unknown,
            because a table is missing or there are no queue files at all.
        dispatched: records before this physical offset have been dispatched.
    """

    begins: dict[Queue, int] = {}
    topics: frozenset[str] | None = None
    dispatched: int = 0

    def removed_before(self, topic: str) -> int:
        """Return the physical offset before which a topic's records are dead, because the topic
        does not exist; 0 if it does.

        The dispatched records of a topic without queue files and without settings had entries, so
        a deletion has removed these.
        """
        is_removed = self.topics is not None and topic not in self.topics
        return self.dispatched if is_removed else 0

    def befores(self, starts: Starts) -> dict[str, int]:
        """Return the physical offset before which the records of each topic are dead that was
        deleted and created again; topics without a restart are left out.
        """
        return befores(starts, self._is_restart)

    def _is_restart(self, queue: Queue, start: Start) -> bool:
        """Return whether a start is a restart: the queue's files decide if they begin with it.

        They say nothing about records that were not dispatched yet.
        """
        begin = self.begins.get(queue)
        if begin is None or start.physical_offset >= self.dispatched:
            return is_restart(start)
        return start.physical_offset == begin


def existing_topics(
    with_files: Collection[str], with_settings: Collection[str] | None
) -> frozenset[str] | None:
    """Return the topics that exist, or None if that is unknown.

    Args:
        with_files: the topics that have queue files.
        with_settings: the topics of a broker's table; None without a readable table.
    """
    if with_settings is None or not with_files:
        return None
    return frozenset(with_files) | frozenset(with_settings)
