"""A world whose disk fails one operation, in memory."""

from __future__ import annotations

from mqlake.errors import DiskError, SyncError
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk

FAILURES = tuple(fault.name for fault in Fault if not fault.for_ever)


class _NotedDisk(FaultyDisk):
    """A disk that notes what has failed."""

    failure: tuple[str, int] | None = None
    is_final = False

    def error(self, path: str) -> DiskError:
        self.failure = path, self._fault.reason
        return super().error(path)

    def sync_error(self, path: str) -> SyncError:
        self.failure, self.is_final = (path, self._fault.reason), True
        return super().sync_error(path)


class DiskWorld:
    """A process with a disk. `disk` is another object after a restart, with the same content."""

    def __init__(self, failure: str, at: int) -> None:
        self.clock = ManualClock()
        self._failing = _NotedDisk(Fault[failure], at, self.clock)
        self.disk: RecordedDisk = self._failing

    @property
    def failure(self) -> tuple[str, int] | None:
        return self._failing.failure

    @property
    def is_final(self) -> bool:
        return self._failing.is_final

    def count(self, failure: str) -> int:
        return sum(self._failing.counted[kind] for kind in Fault[failure].kinds)

    def restart(self) -> None:
        self.disk = self.left()

    def left(self) -> RecordedDisk:
        """Return what the next process finds after a kill."""
        left = RecordedDisk(self.disk.snapshot(), self.clock)
        times = {path: node.modified for path, node in self.disk._walk(self.disk._root, "")}
        for path, node in left._walk(left._root, ""):
            node.modified = times[path]  # A snapshot has none, and retention asks for them.
        return left
