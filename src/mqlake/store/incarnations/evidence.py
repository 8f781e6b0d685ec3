"""Find from a store's queue files and tables which records belong to deleted topics.

This decides if the table of incarnations lacks a topic: a store that another broker wrote has no
such table. The queue files are what the broker serves, so they weigh more than the log alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from mqlake.store.incarnations.restarts import Start, Trace, befores, is_restart
from mqlake.store.log.scan import Queue


class Evidence(msgspec.Struct, frozen=True):
    """What queue files and tables show.

    Attributes:
        begins: of each queue with files, the physical offset of the record with queue offset 0
            with which they begin; None if they begin with another one.
        topics: the topics that exist: with queue files, or with settings; None if that is unknown,
            because a table is missing or there are no queue files at all.
        dispatched: records before this physical offset have been dispatched.
        is_table_complete: whether the table of incarnations is complete. If so, records before the
            first one of a topic's queue files prove no deletion: files of other queues were lost.
        queue_counts: the number of queues of each topic, by its settings. If known, a topic's files
            prove a deletion only if each of these queues has some: a queue whose files were lost
            looks like one that was deleted and not used again. None: its files suffice.
    """

    begins: dict[Queue, int | None] = {}
    topics: frozenset[str] | None = None
    dispatched: int = 0
    is_table_complete: bool = False
    queue_counts: Mapping[str, int] | None = None

    def removed_before(self, topic: str) -> int:
        """Return the physical offset before which a topic's records are dead, because the topic
        does not exist; 0 if it does.

        The dispatched records of a topic without queue files and without settings had entries, so
        a deletion has removed these.
        """
        is_removed = self.topics is not None and topic not in self.topics
        return self.dispatched if is_removed else 0

    def befores(self, traces: Mapping[Queue, Trace]) -> dict[str, int]:
        """Return the physical offset before which the records of each topic are dead that was
        deleted and created again; topics without dead records are left out.

        Args:
            traces: the queues in the whole log.
        """
        found = befores(traces, self._is_restart)
        if self.is_table_complete:
            return found
        for topic, begin in self._first_begins().items():
            own = [(queue, trace) for queue, trace in traces.items() if queue[0] == topic]
            is_any_before = any(trace.first.physical_offset < begin for _, trace in own)
            if is_any_before and all(self._may_be_deleted(*each, begin) for each in own):
                found[topic] = max(begin, found.get(topic, 0))
        return found

    def _first_begins(self) -> dict[str, int]:
        """Return the first record of each topic whose queue files all begin at queue offset 0."""
        firsts: dict[str, dict[int, int | None]] = defaultdict(dict)
        for (topic, queue_id), begin in self.begins.items():
            firsts[topic][queue_id] = begin
        known = {
            topic: [first for first in found.values() if first is not None]
            for topic, found in firsts.items()
            if self._has_all_queues(topic, found)
        }
        return {
            topic: min(found) for topic, found in known.items() if len(found) == len(firsts[topic])
        }

    def _has_all_queues(self, topic: str, queue_ids: Collection[int]) -> bool:
        if self.queue_counts is None:
            return True
        count = self.queue_counts.get(topic)
        return count is not None and all(each in queue_ids for each in range(max(1, count)))

    def _may_be_deleted(self, queue: Queue, trace: Trace, begin: int) -> bool:
        """Return whether the records of a queue before a physical offset may all be dead.

        The records of a queue without files are dead if the deletion came after all of them. If
        others follow, the queue was not deleted, and its files are lost.
        """
        if not trace.first.physical_offset < begin <= trace.last.physical_offset:
            return True
        return any(
            start.previous is not None
            and start.previous.physical_offset < begin <= start.physical_offset
            and self._is_restart(queue, start)
            for start in trace.starts
        )

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
