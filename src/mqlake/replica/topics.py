"""Keep the topics of a replica as its master's are: their attributes decide how it dispatches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mqlake.errors import MqlakeError
from mqlake.remoting.slices import Slices
from mqlake.replication.master_tables import MasterClient
from mqlake.store.port import Store

_EVERY = 60.0
"""Seconds between two looks."""
_WAITING = (1000, "replica")

_log = logging.getLogger(__name__)


class TopicCopy:
    """Copies the master's topics into a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slices = Slices(lambda: _WAITING)
        self._client = MasterClient(self._slices)
        self._problem: str | None = None

    async def copy(self, address: str) -> None:
        """Copy them once; what goes wrong is logged, and they stay as they are."""
        try:
            found = await self._client.topics(address)
            known = self._store.config.topics
            if found.topics and found.version != known.version:
                await self._slices.finish(known.follow(found.topics, found.version))
                await self._store.keep(known)
            self._problem = None
        except MqlakeError as error:
            if str(error) != self._problem:
                _log.warning("topics are not copied, and stay as they are: %s", error)
            self._problem = str(error)

    async def keep(self, address: str, is_followed: Callable[[], bool]) -> None:
        """Copy them again and again.

        Args:
            is_followed: says whether the master's log was compared with the copy: before that, it
                may be another one's.
        """
        while True:
            await asyncio.sleep(_EVERY)
            if is_followed():
                await self.copy(address)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()
