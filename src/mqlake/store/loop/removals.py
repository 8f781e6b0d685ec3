"""Delete the messages of topics on an event loop, while others are served.

Upstream: `DefaultMessageStore.deleteTopics`.
"""

from __future__ import annotations

import asyncio
from time import perf_counter

from mqlake.store.core.health import Health
from mqlake.store.core.topic_removal import TopicRemoval
from mqlake.store.loop.disk_jobs import DiskJobs

_TURN = 0.002
"""Seconds after which others are served."""


class Removals:
    """The removals of topics of one store, one after another. For the tasks of its event loop."""

    def __init__(self, removal: TopicRemoval, health: Health, jobs: DiskJobs) -> None:
        self._removal, self._health, self._jobs = removal, health, jobs
        self._running: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Lock()

    async def remove(self, topic: str, before: int | None = None) -> None:
        """Remove a topic's queues, as `TopicRemoval.remove` does, durably.

        Others are served meanwhile. Messages that are put to the topic before it returns may be
        removed, or belong to the topic's next incarnation.

        Args:
            before: as for `TopicRemoval.steps`.

        Raises:
            StoreError: a sync failed, now or before.
            DiskError: the disk refused another operation; the same call completes it.
        """
        # The caller may be cancelled, and the store closed: half a topic is not left behind.
        task = asyncio.get_running_loop().create_task(self._remove(topic, before))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def finish(self) -> None:
        """Return once no topic is being removed."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _remove(self, topic: str, before: int | None) -> None:
        # Two removals of one topic would remove the same files, or those of its successor.
        async with self._turns:
            await self._remove_queues(topic, before)

    async def _remove_queues(self, topic: str, before: int | None) -> None:
        steps, until = self._removal.steps(topic, before), perf_counter() + _TURN
        for job in steps:
            if job is not None:
                await self._jobs.run(job)
                if self._health.failure is not None:
                    raise self._health.failure
            if perf_counter() >= until:
                await asyncio.sleep(0)
                until = perf_counter() + _TURN
        if self._health.failure is not None:
            raise self._health.failure
