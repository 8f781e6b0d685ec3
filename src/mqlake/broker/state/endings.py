"""What ends with a topic, a group or queues.

A topic that is deleted and created again is another topic, although it has the same name. Whatever
a broker knows of the first one must not hide messages of the second one, or bring messages back.
So each part that keeps something under the name of a topic or a group is registered here, and
called at each deletion (docs/what-ends.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from mqlake.broker.state.pop_counts import PopCounts
from mqlake.remoting.slices import Job
from mqlake.store.port import Store


class Endings(Protocol):
    """A part of the broker that keeps something under the names of topics and groups."""

    def topic_ended(self, topic: str) -> Job[None]:
        """Forget what belongs to a topic that is being deleted; nobody can use it any more."""
        ...

    def group_ended(self, group: str) -> Job[None]:
        """Forget what belongs to a group that was deleted together with its offsets."""
        ...


class AllEndings:
    """All parts of a broker that take part, in the order in which they were created."""

    def __init__(self) -> None:
        self._parts: list[Endings] = []
        self._tables: list[Callable[[], Awaitable[None]]] = []

    def keep_with(self, keep: Callable[[], Awaitable[None]]) -> None:
        """Have a table written before a deletion is answered.

        Args:
            keep: returns once the table's file has all changes; raises StoreError.
        """
        self._tables.append(keep)

    async def kept(self) -> None:
        """Return once no crash can bring back what a part has forgotten.

        Raises:
            StoreError: the disk refuses a table.
        """
        for keep in self._tables:
            await keep()

    def add(self, part: Endings) -> None:
        """Tell a part of each topic and group that ends."""
        self._parts.append(part)

    def topic_ended(self, topic: str) -> Job[None]:
        """Tell all parts that a topic is being deleted.

        The caller has removed the topic from the broker's topics, and prevents its creation until
        this has ended (`Topics.deleting`), so no part learns anything new of it meanwhile.
        """
        for part in self._parts:
            yield from part.topic_ended(topic)
            yield

    def group_ended(self, group: str) -> Job[None]:
        """Tell all parts that a group was deleted together with its offsets."""
        for part in self._parts:
            yield from part.group_ended(group)
            yield


class EndedSamples:
    """Drops what was counted of a topic or a group that is deleted.

    Otherwise names of what is gone would use up the number of samples (`Counts`).
    """

    def __init__(self, store: Store, pops: PopCounts) -> None:
        self._store = store
        self._of_pops = (pops.put, pops.read, pops.retried)

    def topic_ended(self, topic: str) -> Job[None]:
        """Drop the totals of a topic."""
        transactions, timers = self._store.transactions, self._store.timers
        for counts in (transactions.committed, transactions.rolled_back, transactions.durations):
            counts.forget((topic,))
        for counts in (timers.entered, timers.delivered, timers.delays):
            counts.forget((topic,))
        yield from self._forget(1, topic)

    def group_ended(self, group: str) -> Job[None]:
        """Drop the totals of a group."""
        yield from self._forget(0, group)

    def _forget(self, place: int, name: str) -> Job[None]:
        """Args: `place`: of the name among the labels."""
        for counts in self._of_pops:
            for labels, _ in counts:
                if labels[place] == name:
                    counts.forget(labels)
                yield
