"""Make a live store's messages durable when its user wants it, on an event loop."""

from __future__ import annotations

from mqlake.metrics.histogram import Histogram
from mqlake.store.loop.acknowledgements import Acknowledgements
from mqlake.store.loop.disk_jobs import DiskJobs
from mqlake.store.owned_store import OwnedStore


class LogSync:
    """Syncs the log of one store on request. For the tasks of its event loop."""

    def __init__(self, core: OwnedStore, waiting: Acknowledgements, jobs: DiskJobs) -> None:
        self._core, self._waiting, self._jobs = core, waiting, jobs

    @property
    def times(self) -> Histogram:
        """Seconds that syncs of the log's files took since the store was opened."""
        return self._core.log.files.sync_times

    def now(self) -> None:
        """Return once every message is durable and dispatched. It blocks the event loop.

        Raises:
            SyncError: the disk failed; the store accepts no more messages.
            DiskError: the disk refused an operation; the same call may succeed later.
        """
        self._core.durability.sync_log()
        self._waiting.release()

    async def trim(self) -> None:
        """Make everything durable, and remove what retention does not keep, without waiting for it.

        Raises:
            SyncError, DiskError: as `now`, or a file cannot be removed.
        """
        self.now()
        self._core.durability.checkpoint()
        retention = self._core.retention
        retention.check()
        while (job := retention.remove_next()) is not None:
            await self._jobs.run(job)
