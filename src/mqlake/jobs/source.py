"""The store that a job reads."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mqlake.errors import JobError
from mqlake.formats.dialect import Dialect
from mqlake.storage.local import LocalDirectory
from mqlake.store.log.end import last_segments_start
from mqlake.store.log.nearby_store import why_no_store
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.snapshot import Snapshot


class StoreSource(NamedTuple):
    """A store directory, opened for reading."""

    directory: LocalDirectory
    log: CommitLog
    snapshot: Snapshot

    @property
    def path(self) -> str:
        """The directory's absolute path, by which tasks open it again."""
        return str(self.directory.root)

    @property
    def recovery_start(self) -> int:
        """Physical offset at which RocketMQ's recovery begins to check the log.

        After a clean stop it checks the last three segments.
        """
        if self.snapshot.is_crashed:
            return self.snapshot.walk_start
        return last_segments_start(self.log)

    @property
    def undispatched_from(self) -> int:
        """Physical offset from which entries may be missing without being damage."""
        return self.snapshot.walk_start if self.snapshot.has_abort_file else self.log.limit

    @property
    def batch_topics(self) -> frozenset[str]:
        """The topics with batch consume queues, for which RocketMQ expects no other kind."""
        return self.snapshot.batch_topics


@contextmanager
def open_source(store: Path, dialect: Dialect | None = None) -> Generator[StoreSource, None, None]:
    """Open a store directory for a job.

    Raises:
        StoreError: the directory cannot be read.
        JobError: the store has no commit log.
    """
    directory = LocalDirectory(store.absolute())
    if not directory.is_directory("commitlog"):
        raise JobError(f"{store}: {why_no_store(str(store))}")
    log = open_log(directory)
    try:
        yield StoreSource(directory, log, Snapshot(directory, log, dialect))
    finally:
        log.close()
