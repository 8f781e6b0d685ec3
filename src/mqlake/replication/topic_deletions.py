"""Remove from a copy of a master's log what the master has deleted: the queues of topics.

The log does not say that a topic was deleted, and RocketMQ's slaves keep its queues. A slave that
is promoted would create the topic again, since it has messages. A master of this project says which
topics it has deleted; RocketMQ's masters only say which topics they have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final, NamedTuple

from mqlake.formats.config import DataVersion
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.protocol.errors import RemotingError
from mqlake.replication.master_tables import MasterClient
from mqlake.store.port import Store

_TURN: Final = 1.0
"""Seconds after which the rest is left to the next call: positions are copied in between."""

_MANY: Final = 100
"""Names after which other tasks run."""

_log: Final = logging.getLogger(__name__)


class _Table(NamedTuple):
    """A copy of a master's topics.

    Attributes:
        address: the master's.
        end: physical offset at which its log ended before its topics were read.
    """

    address: str
    version: DataVersion
    end: int


class TopicDeletions:
    """Removes the queues that a master has removed.

    A topic may be missing in the master's table for other reasons: it is younger than the table, or
    the table was lost. So a queue is removed only if the master has no such queue any more, and
    only if all its messages are older than the table.

    Args:
        store: the copy.
        follows: returns whether the log of the master at an address is copied: a log that is not
            the master's may have any messages.
        without_topic: returns which names of topics with queues the copied table does not have.
    """

    def __init__(
        self,
        store: Store,
        master: MasterClient,
        follows: Callable[[str], bool],
        without_topic: Callable[[Iterable[str]], list[str]],
    ) -> None:
        self._store, self._master, self._follows = store, master, follows
        self._without_topic = without_topic
        self._due: _Table | None = None
        self._done: tuple[str, DataVersion] | None = None
        self._ended = "", EndedIncarnations()

    def copied(
        self, address: str, version: DataVersion, end: int, ended: EndedIncarnations | None
    ) -> None:
        """Note that the topics of a master were copied.

        Args:
            end: as in `_Table`.
            ended: which topics and groups the master has deleted; None if it does not say so.
        """
        self._ended = address, ended or EndedIncarnations()
        if self._done != (address, version):
            self._due = _Table(address, version, end)

    async def follow(self, address: str) -> bool:
        """Remove the queues without a topic, if the log has what the master's had.

        Returns:
            Whether nothing is left to a later call.

        Raises:
            MqlakeError: the master does not answer, or the disk failed.
        """
        are_ended = await self._follow_incarnations(address)
        store, due = self._store, self._due
        if due is None:
            return are_ended
        if due.address != address or store.watermarks.dispatched < due.end:
            return False
        is_complete, deadline = True, monotonic() + _TURN
        for name in self._without_topic(store.reads.topics()):
            if monotonic() > deadline or not self._follows(address):
                return False
            queue_ids = store.reads.queues(name)
            if await self._are_kept(address, name, queue_ids):
                is_complete = False
                continue
            if not self._follows(address):
                return False
            await store.removals.remove(name, due.end)
            if store.reads.queues(name):
                is_complete = False  # They have messages that are younger than the table.
            else:
                _log.info("topic %s: its queues are removed: the master has deleted it", name)
        self._due = None
        if is_complete:
            self._done = address, due.version
        return are_ended

    async def _follow_incarnations(self, address: str) -> bool:
        """End the incarnations that the master has ended; return whether there was time for all.

        One that ends after what the copy has dispatched is left to a later call: its last records
        have yet to arrive, and the log may be cut before them.
        """
        whose, ended = self._ended
        store, deadline, is_complete = self._store, monotonic() + _TURN, True
        incarnations, dispatched = store.incarnations, store.watermarks.dispatched
        if whose != address:
            return True
        before = incarnations.changes
        for number, (group, offset) in enumerate(ended.groups.items(), 1):
            if offset <= dispatched:
                incarnations.end_group(group, offset)
            if not number % _MANY:
                await asyncio.sleep(0)  # There may be thousands of them: others are served.
        for number, (topic, offset) in enumerate(list(ended.topics.items()), 1):
            if not number % _MANY:
                await asyncio.sleep(0)
            if offset > dispatched:
                continue
            seen = ended.deletions.get(topic, 0)
            if offset <= incarnations.before(topic):
                incarnations.end_topic(topic, 0, seen)
                continue
            if monotonic() > deadline or not self._follows(address):
                is_complete = False
                break
            if self._has_before(topic, offset):
                await store.removals.remove(topic, offset)
                incarnations.end_topic(topic, offset, seen)
                _log.info("topic %s: its old queues are removed: the master has deleted it", topic)
            else:
                incarnations.end_topic(topic, offset, seen)
                await asyncio.sleep(0)
        if incarnations.changes != before:
            await store.keeping.keep(incarnations)
        return is_complete

    def _has_before(self, topic: str, physical_offset: int) -> bool:
        """Return whether a queue of a topic begins before a physical offset."""
        reads = self._store.reads
        firsts = (
            reads.entries(topic, queue_id, reads.queue(topic, queue_id).min_offset, 1)
            for queue_id in reads.queues(topic)
        )
        return any(each.physical_offset < physical_offset for first in firsts for each in first)

    async def _are_kept(self, address: str, topic: str, queue_ids: list[int]) -> bool:
        """Return whether the master has one of these queues, or refuses to say so."""
        try:
            for queue_id in queue_ids:
                if await self._master.max_offset(address, topic, queue_id) != 0:
                    return True
        except RemotingError as error:
            _log.warning("topic %s: its queues stay: %s", topic, error)
            return True
        return False
