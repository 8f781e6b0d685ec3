"""Syncs of many files at once."""

from __future__ import annotations

import pytest

from mqlake.errors import DiskError, SyncError
from mqlake.store.log.pending_sync import PendingSync
from tests.crash.disk import RecordedDisk


class Refusing:
    """A file whose sync fails."""

    def __init__(self, error: DiskError | None = None) -> None:
        self._error = error

    def sync(self) -> None:
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("count", [0, 100])
def test_a_transient_failure_does_not_hide_a_final_one(count: int) -> None:
    files = [Refusing() for _ in range(count)]
    files += [Refusing(DiskError("no descriptor")), Refusing(SyncError("lost"))]
    if not count:
        files.reverse()  # few are synced one after the other: the first failure ends that
    with pytest.raises(SyncError, match="lost"):
        PendingSync(RecordedDisk(), files).run()
