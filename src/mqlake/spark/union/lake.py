"""One version of a lake table: its files, and how much of which logs they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mqlake.errors import FormatError, JobError
from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.options import STATE
from mqlake.spark.reading.conditions import Selection


@dataclass(frozen=True)
class LakeFile:
    """A Parquet file of a table.

    Attributes:
        topic: of all its rows, if the file has no such column.
        deleted: numbers of rows that were deleted, ascending; None for none.
        later: where the file may be moved to.
    """

    path: str
    size: int
    topic: str | None = None
    deleted: Any = None
    later: str | None = None


class Lake(Protocol):
    """A table as it was when it was opened; commits that come later do not change it."""

    @property
    def root(self) -> Path:
        """The directory of the table."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The table's columns."""
        ...

    def last_batch(self, follower: str) -> int:
        """Return the number of the follower's newest batch in the table, -1 if there is none."""
        ...

    def end(self, follower: str) -> CommittedEnd | None:
        """Return where that batch ends in the log; None if the table does not say."""
        ...

    def files(self, selection: Selection) -> list[LakeFile]:
        """Return the files that may have rows of a selection."""
        ...

    def has_topic(self, topic: str) -> bool:
        """Return whether any file may have rows of a topic."""
        ...


def open_lake(table: str, catalog: str | None, catalog_name: str) -> Lake:
    """Open the newest version of a table.

    Args:
        table: its directory; or its name in an Iceberg catalog, if one is given.

    Raises:
        FormatError, JobError: it is no table that is followed into, or a package is missing.
    """
    if catalog is not None or catalog_name != "default":
        from mqlake.spark.union.iceberg_lake import in_catalog

        return in_catalog(table, catalog, catalog_name)
    if "://" in table and not table.startswith("file://"):
        raise FormatError(
            f"option table: {table} is no directory: give the --out of mqlake follow, or option "
            "catalog and the name of an Iceberg table in it"
        )
    root = Path(table.removeprefix("file://"))
    if (root / "_delta_log").is_dir():
        from mqlake.spark.union.delta_lake import DeltaLake

        return DeltaLake(root)
    if (root / STATE / "catalog.db").is_file():
        from mqlake.spark.union.iceberg_lake import in_own_catalog

        return in_own_catalog(root)
    if (root / STATE / "state.json").is_file():
        from mqlake.spark.union.parquet_lake import ParquetLake

        return ParquetLake(root)
    raise JobError(
        f"{table}: no table that mqlake follow keeps: it has neither _delta_log/ nor "
        f"{STATE}/catalog.db nor {STATE}/state.json; for an Iceberg table in a catalog of yours, "
        "give option catalog"
    )
