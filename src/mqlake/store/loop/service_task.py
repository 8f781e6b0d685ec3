"""The task that runs a live store's services on an event loop (docs/live-store.md)."""

from __future__ import annotations

import asyncio
import logging

from mqlake.errors import StoreError
from mqlake.store.loop.acknowledgements import Acknowledgements
from mqlake.store.loop.disk_jobs import DiskJobs
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.owned_store import OwnedStore
from mqlake.store.services import LOOK_INTERVAL, PAUSE

_log = logging.getLogger(__name__)


class ServiceTask:
    """Looks at intervals which services are due, from now until `end`.

    Args:
        where: the directory, for log lines.

    Attributes:
        failed: done once the task has ended by itself, with the reason. The store then accepts no
            more messages, and delivers and stores nothing.
    """

    def __init__(
        self,
        core: OwnedStore,
        jobs: DiskJobs,
        dispatching: Dispatching,
        waiting: Acknowledgements,
        where: str,
    ) -> None:
        self._core, self._jobs, self._dispatching = core, jobs, dispatching
        self._waiting, self._where = waiting, where
        self._ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[StoreError] = loop.create_future()
        self._task = loop.create_task(self._serve())
        self._task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Return once the task has ended.

        It is not cancelled: the job that it may wait for writes files that closing also writes.
        """
        self._ending.set()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _serve(self) -> None:
        while not await self._is_ending_after(LOOK_INTERVAL):
            self._dispatching.now()
            while (job := self._core.services.due()) is not None:
                if job is PAUSE:
                    await asyncio.sleep(0)
                    continue
                await self._jobs.run(job)
                # What it made durable is dispatched before its puts are answered.
                self._dispatching.catch_up()
                self._waiting.release()
            self._waiting.release()

    async def _is_ending_after(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._ending.wait()
        except TimeoutError:
            return False

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Fail the store if the task has ended for another reason than `end`."""
        if task.cancelled():
            reason, error = "it was cancelled", None
        elif (error := task.exception()) is not None:
            reason = f"{type(error).__name__}: {error}"
        else:
            return
        failure = StoreError(f"the store's service task has ended: {reason}; open the store again")
        _log.critical("%s: %s", self._where, failure, exc_info=error)
        self._core.health.fail(failure)
        self._waiting.release()
        self.failed.set_result(failure)
