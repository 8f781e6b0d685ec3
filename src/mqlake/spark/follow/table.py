"""A lake table as `follow` sees it: batches of data files, each committed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.compaction import Merge, Merged
from mqlake.spark.follow.data_file import DataFile
from mqlake.spark.follow.options import FollowOptions, Format
from mqlake.spark.follow.partition_writer import Shapes

PREFIX = "mqlake-"
"""What the names of data files begin with. Others in the table are somebody else's."""


class LakeTable(Protocol):
    """A table that is there, on which one thread works.

    A follower names itself by an id that its checkpoint keeps, and counts its micro-batches.
    """

    def last_batch(self, follower: str) -> int:
        """Return the number of the follower's newest batch in the table, -1 if there is none."""
        ...

    def shape(self, follower: str, batch: int) -> Shapes:
        """Return how the files of a batch are to be; columns that the table lacks are added."""
        ...

    def commit(
        self,
        follower: str,
        batch: int,
        files: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        end: CommittedEnd | None = None,
    ) -> None:
        """Add files, remove others, and note that this batch is in the table, in one step.

        Args:
            end: where the batch ends in the log; None for what is no stretch of it.
        """
        ...

    def expire(self, keep: float) -> None:
        """Forget versions older than `keep` seconds, and remove files that only they have."""
        ...

    def files(self) -> list[DataFile]:
        """Return the files that followers wrote and of which no row was deleted."""
        ...

    def has_other_files(self) -> bool:
        """Return whether the table has rows in files that `files` does not name."""
        ...

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as any reader sees them, as Arrow batches of these columns."""
        ...

    def column_names(self) -> list[str]:
        """Return the table's columns."""
        ...

    def merges(self, *, is_last: bool) -> list[Merge]:
        """Return what should be merged now; `is_last` if nothing comes after it."""
        ...

    def replace(self, merged: Sequence[Merged]) -> None:
        """Put merged files in the place of others in one step."""
        ...


def open_table(options: FollowOptions) -> LakeTable:
    """Open a table; make it where there is none.

    Raises:
        JobError: a package is missing, or what is there cannot be followed into.
    """
    if options.is_per_topic:
        from mqlake.spark.follow.topic_tables import TopicTables

        return TopicTables(options, open_table)
    match options.format:
        case Format.DELTA:
            from mqlake.spark.follow.delta_table import DeltaLakeTable

            return DeltaLakeTable(options)
        case Format.ICEBERG:
            from mqlake.spark.follow.iceberg_table import IcebergTable

            return IcebergTable(options)
        case Format.PARQUET:
            from mqlake.spark.follow.parquet_table import ParquetTable

            return ParquetTable(options)


def stem_of(follower: str, batch: int) -> str:
    """Return what the names of a batch's files begin with: they sort as the log does."""
    return f"{PREFIX}{follower[:8]}-{batch:010d}"
