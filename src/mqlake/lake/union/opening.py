"""Open the newest version of a table, whose format its files show."""

from __future__ import annotations

from pathlib import Path

from mqlake.errors import FormatError, JobError
from mqlake.lake.files.lake_files import ALIASES, SCHEMES, LakeFiles
from mqlake.lake.options import STATE
from mqlake.lake.union.lake import Lake
from mqlake.storage.shown_url import shown_url


def open_lake(table: str, catalog: str | None, catalog_name: str, files: LakeFiles) -> Lake:
    """Open the newest version of a table.

    Args:
        table: its directory or URL; or its name in an Iceberg catalog, if one is given.
        files: what reads its files.

    Raises:
        FormatError, JobError: `mqlake follow` does not write this table, or a package is missing.
    """
    if catalog is not None or catalog_name != "default":
        from mqlake.lake.union.iceberg_lake import in_catalog

        return in_catalog(table, catalog, catalog_name, files.settings)
    if "://" in table and not table.startswith("file://"):
        from mqlake.lake.union.delta_lake import DeltaLake

        return DeltaLake(_table_url(table), files)
    root = Path(table.removeprefix("file://"))
    if (root / "_delta_log").is_dir():
        from mqlake.lake.union.delta_lake import DeltaLake

        return DeltaLake(str(root), files)
    if (root / STATE / "catalog.db").is_file():
        from mqlake.lake.union.iceberg_lake import in_own_catalog

        return in_own_catalog(root)
    if (root / STATE / "state.json").is_file():
        from mqlake.lake.union.parquet_lake import ParquetLake

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
