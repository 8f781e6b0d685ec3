"""The totals of topics and groups end with these, also those that the store counts."""

from __future__ import annotations

from mqlake.broker.state.pop_counts import PopCounts
from mqlake.remoting.slices import Job
from mqlake.store.port import Store


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
        for counts in (timers.entered, timers.delivered):
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
