"""Run what waits for the disk in other threads, for the tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from mqlake.errors import SyncError
from mqlake.store.core.health import Health
from mqlake.store.services import Job


class DiskJobs:
    """Runs the jobs of one store.

    Args:
        threads: the threads that wait for the disk.
    """

    def __init__(self, threads: Executor, health: Health) -> None:
        self._threads, self._health = threads, health
        self._loop = asyncio.get_running_loop()

    async def run(self, job: Job, beside: Callable[[], object] | None = None) -> None:
        """Run a job in another thread; a failed sync is a failure of the store.

        Args:
            beside: called in this thread while the job runs.

        Raises:
            DiskError: the disk refused another operation; the job is not done.
        """
        try:
            running = self._loop.run_in_executor(self._threads, self._run_in_thread, job)
            if beside is not None:
                beside()
            await running
            job.done()
        except SyncError as error:
            self._health.fail(error)

    def _run_in_thread(self, job: Job) -> None:
        try:
            job.run()
        except SyncError as error:
            # The caller that waits for the job may have been cancelled: the failure counts
            # nevertheless.
            self._loop.call_soon_threadsafe(self._health.fail, error)
            raise
