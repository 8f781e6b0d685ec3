"""Keep the topics of a replica as its master's are: their attributes decide how it dispatches, and
those that the master has deleted are deleted from the copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from mqlake.errors import MqlakeError
from mqlake.protocol import naming
from mqlake.remoting.slices import Slices
from mqlake.replica.options import ReplicaOptions
from mqlake.replication.master_tables import MasterClient, MasterTopics
from mqlake.replication.topic_deletions import TopicDeletions
from mqlake.store.port import Store

_EVERY = 60.0
"""Seconds between two copies of the topics."""
_TICK = 3.0
"""Seconds between two looks whether deletions can be followed."""
_SOON = 0.05
"""The same until those have been followed that the master had made at the start."""
_WAITING = (1000, "replica")

_log = logging.getLogger(__name__)


class TopicCopy:
    """Copies the master's topics into a store.

    Args:
        options: how the master is reached.
        is_followed: returns whether the master's log was compared with the copy, and is copied.
        settled: called once what the master had deleted at the start is deleted.

    Attributes:
        is_settled: whether `settled` was called.
    """

    def __init__(
        self,
        store: Store,
        options: ReplicaOptions,
        is_followed: Callable[[], bool],
        settled: Callable[[], object],
    ) -> None:
        self._store, self._is_followed, self._settled = store, is_followed, settled
        self._slices = Slices(lambda: _WAITING)
        self._client = MasterClient(self._slices, options.tls, options.credentials)
        self._address = ""
        self._deletions = TopicDeletions(store, self._client, self._copies, self._without_topic)
        self._problems: dict[str, str] = {}
        self.is_settled = False

    async def copy(self, address: str) -> None:
        """Copy them once; what goes wrong is logged, and they stay as they are.

        The master's log has been compared with the copy: before that, it may be another one's.
        """
        self._address = address
        try:
            end = await self._log_end(address)
            found = await self._client.topics(address)
            known = self._store.config.topics
            if found.topics and found.version != known.version:
                await self._slices.finish(known.follow(found.topics, found.version))
                await self._store.keeping.keep(known)
            self._note_deletions(address, end, found)
            self._problems.pop("topics", None)
        except MqlakeError as error:
            self._warn("topics", f"topics are not copied, and stay as they are: {error}")

    async def keep(self, address: str) -> None:
        """Copy them again and again, and delete what the master has deleted."""
        loop = asyncio.get_running_loop()
        next_copy = loop.time() + _EVERY
        while True:
            if self._is_followed():
                if loop.time() >= next_copy:
                    await self.copy(address)
                    next_copy = loop.time() + _EVERY
                await self._delete(address)
            await asyncio.sleep(_TICK if self.is_settled else _SOON)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _log_end(self, address: str) -> int | None:
        try:
            return (await self._client.log(address)).end
        except MqlakeError as error:
            _log.info("where the master's log is, is not known: %s", error)
            return None

    def _note_deletions(self, address: str, end: int | None, found: MasterTopics) -> None:
        """Note which topics the master had at an end of its log.

        An empty table was lost, and says nothing about deletions.
        """
        if end is not None and found.topics and found.version == self._store.config.topics.version:
            self._deletions.copied(address, found.version, end, found.incarnations)

    async def _delete(self, address: str) -> None:
        try:
            is_complete = await self._deletions.follow(address)
            self._problems.pop("deletions", None)
        except MqlakeError as error:
            self._warn("deletions", f"topics that the master has deleted stay: {error}")
            is_complete = True  # Nobody waits for a master that refuses.
        if is_complete and not self.is_settled:
            self.is_settled = True
            self._settled()

    def _copies(self, address: str) -> bool:
        return address == self._address and self._is_followed()

    def _without_topic(self, names: Iterable[str]) -> list[str]:
        topics = self._store.config.topics
        return [
            name
            for name in names
            if name not in topics
            and name not in naming.SYSTEM_TOPICS
            and not name.startswith(naming.SYSTEM_PREFIX)
            and naming.topic_fault(name) is None
        ]

    def _warn(self, what: str, problem: str) -> None:
        """Log a problem, once for as long as it is the same."""
        if self._problems.get(what) != problem:
            _log.warning("%s", problem)
        self._problems[what] = problem
