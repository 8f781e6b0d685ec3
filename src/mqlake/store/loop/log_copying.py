"""The bytes of a live store's log: read for slaves, and received from a master.

Upstream: `DefaultMessageStore.getCommitLogData` and `appendToCommitLog`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import closing

from mqlake.errors import StoreError
from mqlake.store.loop.acknowledgements import Acknowledgements
from mqlake.store.loop.disk_jobs import DiskJobs
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.loop.log_growth import LogGrowth
from mqlake.store.owned_store import OwnedStore
from mqlake.store.services import Job
from mqlake.store.settings import FlushDiskType


class LogCopying:
    """The log of one store as bytes. For the tasks of its event loop.

    Attributes:
        growth: notifies the one that copies the log to slaves.
    """

    def __init__(
        self,
        core: OwnedStore,
        growth: LogGrowth,
        dispatching: Dispatching,
        waiting: Acknowledgements,
        jobs: DiskJobs,
    ) -> None:
        self._core, self.growth, self._dispatching = core, growth, dispatching
        self._waiting, self._jobs = waiting, jobs

    # A master

    @property
    def end(self) -> int:
        """Physical offset before which the log may be copied."""
        return self._core.watermarks.kept

    @property
    def last_file(self) -> int:
        """Physical offset of the first byte of the file that `end` is in."""
        log = self._core.log
        return next((each.base for each in reversed(log.segments) if each.base <= self.end), 0)

    def part(self, offset: int, most: int) -> memoryview:
        """Return up to `most` bytes of one file from a physical offset on; none at `end`.

        Raises:
            StoreError: the log does not have that byte any more, or cannot be read.
        """
        log, end = self._core.log, self.end
        if offset >= end:
            return memoryview(b"")
        segment = log.segment_at(offset)
        if segment is None:
            where = f"[{log.min_offset}, {end})"
            raise StoreError(f"the log has {where}, and nothing at physical offset {offset}")
        return log.read(offset, min(most, segment.end - offset, end - offset))

    def reading(self, offset: int, buffer: memoryview) -> Callable[[], int]:
        """Return a job that reads into a buffer in another thread, and may wait for the disk.

        It returns how many bytes `part` would, up to the length of the buffer.

        Raises:
            StoreError: as for `part`.
        """
        log, length = self._core.log, len(self.part(offset, len(buffer)))
        segment = log.segment_at(offset)
        assert segment is not None
        file = log.file(segment)
        return lambda: file.read_into(buffer[:length], offset - segment.base)

    # A slave

    @property
    def expected(self) -> int:
        """Physical offset of the next byte to receive."""
        return self._core.role.received.expected

    @property
    def recovered_from(self) -> int | None:
        """Physical offset from which on a power loss may have changed what recovery kept.

        None if the last process closed the store.
        """
        found = self._core.recovered
        return None if found.is_clean else min(found.start, found.log_end)

    @property
    def last_stored(self) -> int:
        """Store time (ms) of the newest record that was received; 0 before the first."""
        return self._core.role.received.last_stored

    @property
    def is_empty(self) -> bool:
        """Whether the log has no record yet: it begins where the master's does.

        It may have a file: a crash may come between the two, and a power loss take the record.
        """
        log = self._core.log
        return not log.segments or log.end == log.min_offset

    @property
    def largest_record(self) -> int:
        """Maximum bytes of a record of this log."""
        return self._core.log.largest_record

    def begin_at(self, physical_offset: int) -> None:
        """Let an empty log begin at a physical offset: see `Role.begin_at`."""
        self._core.role.begin_at(physical_offset)

    def take(self, data: bytes | memoryview) -> None:
        """Append bytes that begin at `expected`: see `Role.receive`."""
        self._core.role.receive(data)
        self._dispatching.received(len(data))

    def drop(self) -> None:
        """Drop the bytes of an incomplete record: they must be sent again."""
        self._core.role.received.drop()

    async def follow(self) -> None:
        """Prepare for a master's records: see `Role.following`.

        Raises:
            StoreError: the disk failed.
        """
        await self._finish(self._core.role.following())

    async def lead(self) -> None:
        """Prepare for messages of this broker's own: see `Role.leading`.

        Raises:
            StoreError: what the master sent cannot be dispatched, or the disk failed.
        """
        await self._finish(self._core.role.leading())

    async def _finish(self, steps: Generator[Job | None]) -> None:
        with closing(steps):
            for job in steps:
                await (asyncio.sleep(0) if job is None else self._jobs.run(job))
                if self._core.health.failure is not None:
                    raise self._core.health.failure

    def confirm(self) -> None:
        """Dispatch soon what has become readable: slaves have it, or the master confirmed it."""
        self._dispatching.received(0)

    async def kept(self) -> int:
        """Return the physical offset up to which a master may count on this copy.

        Under SYNC_FLUSH, everything before it is durable.

        Raises:
            StoreError: the disk failed.
        """
        core = self._core
        if core.settings.flush_disk_type is FlushDiskType.SYNC_FLUSH:
            if core.log.flushed < core.log.end:
                await self._waiting.sync()
            if core.health.failure is not None:
                raise core.health.failure
            return core.log.flushed
        return core.log.end
