"""One version of a lake table: its files, and how much of which logs they contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mqlake.errors import FormatError, JobError
from mqlake.query.reading.conditions import Selection
from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.lake_files import ALIASES, SCHEMES, LakeFiles
from mqlake.spark.follow.options import STATE
from mqlake.storage.shown_url import shown_url


@dataclass(frozen=True)
class LakeFile:
    """A Parquet file of a table.

    Attributes:
        topic: the topic of all its rows, if the file has no such column.
        deleted: numbers of rows that were deleted, ascending; None without any.
        later: the path to which the file may be moved.
        ids: field ids of columns. A file that has ids is read by them, whatever its names are.
    """

    path: str
    size: int
    topic: str | None = None
    deleted: Any = None
    later: str | None = None
    ids: Mapping[str, int] | None = None


class Lake(Protocol):
    """A table as it was when it was opened; later commits do not change it."""

    @property
    def root(self) -> str:
        """The directory or URL of the table."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The table's columns."""
        ...

    def last_batch(self, follower: str) -> int:
        """Return the number of the follower's newest batch in the table, -1 without a batch."""
        ...

    def end(self, follower: str) -> CommittedEnd | None:
        """Return where that batch ends in the log; None if the table does not record it."""
        ...

    def files(self, selection: Selection) -> list[LakeFile]:
        """Return the files that may have rows of a selection."""
        ...

    def has_topic(self, topic: str) -> bool:
        """Return whether any file may have rows of a topic."""
        ...


def open_lake(table: str, catalog: str | None, catalog_name: str, files: LakeFiles) -> Lake:
    """Open the newest version of a table.

    Args:
        table: its directory or URL; or its name in an Iceberg catalog, if one is given.
        files: what reads its files.

    Raises:
        FormatError, JobError: `mqlake follow` does not write this table, or a package is missing.
    """
    if catalog is not None or catalog_name != "default":
        from mqlake.spark.union.iceberg_lake import in_catalog

        return in_catalog(table, catalog, catalog_name, files.settings)
    if "://" in table and not table.startswith("file://"):
        from mqlake.spark.union.delta_lake import DeltaLake

        return DeltaLake(_table_url(table), files)
    root = Path(table.removeprefix("file://"))
    if (root / "_delta_log").is_dir():
        from mqlake.spark.union.delta_lake import DeltaLake

        return DeltaLake(str(root), files)
    if (root / STATE / "catalog.db").is_file():
        from mqlake.spark.union.iceberg_lake import in_own_catalog

        return in_own_catalog(root)
    if (root / STATE / "state.json").is_file():
        from mqlake.spark.union.parquet_lake import ParquetLake

        return ParquetLake(root)
    raise JobError(
        f"{table}: mqlake follow does not write this table: it has neither _delta_log/ nor "
        f"{STATE}/catalog.db nor {STATE}/state.json; for an Iceberg table in another catalog, "
        "give option catalog"
    )


def _table_url(table: str) -> str:
    """Return the URL of a table as `follow` writes it.

    Raises:
        FormatError: a table cannot be there.
    """
    given, _, rest = table.partition("://")
    scheme = ALIASES.get(given, given)
    if scheme not in SCHEMES:
        raise FormatError(
            f"option table: {shown_url(table)} is neither a directory nor on an object store: "
            "give the --out of mqlake follow, or option catalog and the name of an Iceberg table "
            "in it"
        )
    return f"{scheme}://{rest.rstrip('/')}"
