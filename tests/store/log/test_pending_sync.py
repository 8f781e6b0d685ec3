"""Syncs of many files at once."""

from __future__ import annotations

from collections.abc import Sequence

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

    def check_linked(self) -> None:
        """Do nothing: it exists."""


@pytest.mark.parametrize("count", [0, 100])
def test_a_transient_failure_does_not_hide_a_final_one(count: int) -> None:
    files = [Refusing() for _ in range(count)]
    files += [Refusing(DiskError("no descriptor")), Refusing(SyncError("lost"))]
    if not count:
        files.reverse()  # few are synced one after the other: the first failure ends that
    with pytest.raises(SyncError, match="lost"):
        PendingSync(RecordedDisk(), files).run()


class Noted(Refusing):
    """A file that notes what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def sync(self) -> None:
        self.done.append("sync")

    def check_linked(self) -> None:
        self.done.append("check")


class Together(RecordedDisk):
    """A disk that syncs all but one file and one directory by one call."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync_together(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if path in ("file-7", "folder-7")]

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)


def test_many_are_synced_together_and_the_rest_one_by_one() -> None:
    disk, files = Together(), [Noted() for _ in range(100)]
    paths = [f"file-{number}" for number in range(100)]
    folders = [f"folder-{number}" for number in range(9)]
    PendingSync(disk, files, folders, paths=paths).run()
    assert disk.synced == ["folder-7"]
    assert [file.done for file in files] == [["check"]] * 7 + [["sync"]] + [["check"]] * 92


def test_few_are_synced_one_by_one() -> None:
    disk, files = Together(), [Noted() for _ in range(10)]
    PendingSync(disk, files, ["folder"], paths=[str(number) for number in range(10)]).run()
    assert disk.synced == ["folder"]
    assert {file.done[0] for file in files} == {"sync"}


def test_a_file_that_was_removed_meanwhile_fails_a_sync_of_many() -> None:
    class Removed(Noted):
        def check_linked(self) -> None:
            raise SyncError("removed")

    files = [*(Noted() for _ in range(99)), Removed()]
    paths = [f"file-{number}" for number in range(100)]
    with pytest.raises(SyncError, match="removed"):
        PendingSync(Together(), files, paths=paths).run()
