"""Consumers that run while their topic is deleted and created again start at its beginning.

They still have offsets of the deleted topic, in their pulls and in their commits. The first pull of
each queue sends them to its beginning, as if an administrator had reset the group, and until then,
their commits do not count.
"""

from __future__ import annotations

from mqlake.protocol.naming import SYSTEM_GROUPS
from mqlake.remoting.slices import Job
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable


class Restarts:
    """Notes which groups have read a topic when it is deleted."""

    def __init__(self, offsets: ConsumerOffsetTable) -> None:
        self._offsets = offsets

    def topic_ended(self, topic: str) -> Job[None]:
        """Note the groups that have read the topic: they start at the beginning of the next one.

        Whether a group has members does not matter: consumers that assign themselves queues send
        no heartbeats. Groups of the system are names that readers share which have no group: they
        ask for the offsets that they want.
        """
        for group in self._offsets.groups_of(topic):
            if group not in SYSTEM_GROUPS:
                self._offsets.begin_anew(group, topic)
            yield

    def group_ended(self, group: str) -> Job[None]:
        """Forget a group that was deleted with its offsets: a new one begins where it asks to."""
        self._offsets.forget_restarts(group)
        yield
