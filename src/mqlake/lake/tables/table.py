"""A lake table from the view of `follow`: batches of data files, each committed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from mqlake.lake.files.compaction import Merge, Merged
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.partition_writer import Shapes
from mqlake.lake.tables.committed_end import CommittedEnd

PREFIX = "mqlake-"
"""The beginning of the names of data files. Others in the table belong to other programs."""


class LakeTable(Protocol):
    """An open table, used by one thread.

    A follower identifies itself by the id in its checkpoint, and counts its micro-batches.
    """

    def last_batch(self, follower: str) -> int:
        """Return the number of the follower's newest batch in the table, -1 without a batch."""
        ...

    def shape(self, follower: str, batch: int) -> Shapes:
        """Return the form of a batch's files; columns that the table lacks are added."""
        ...

    def commit(
        self,
        follower: str,
        batch: int,
        files: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        end: CommittedEnd | None = None,
    ) -> None:
        """Add files, remove others, and record that the table has this batch, atomically.

        Args:
            end: where the batch ends in the log; None if it is not a stretch of the log.
        """
        ...

    def expire(self, keep: float) -> None:
        """Expire versions older than `keep` seconds, and remove files that only they contain."""
        ...

    def files(self) -> list[DataFile]:
        """Return the files that followers wrote and that have no deleted rows."""
        ...

    def has_other_files(self) -> bool:
        """Return whether the table has rows in files that `files` does not return."""
        ...

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as any reader sees them, as Arrow batches of these columns."""
        ...

    def column_names(self) -> list[str]:
        """Return the table's columns."""
        ...

    def merges(self, *, is_last: bool) -> list[Merge]:
        """Return the merges that are due; `is_last` if nothing comes after them."""
        ...

    def replace(self, merged: Sequence[Merged]) -> None:
        """Replace files by merged ones, atomically."""
        ...


def stem_of(follower: str, batch: int) -> str:
    """Return the beginning of the names of a batch's files; the names sort like the log."""
    return f"{PREFIX}{follower[:8]}-{batch:010d}"
