"""Open the lake table that options name."""

from __future__ import annotations

from mqlake.lake.options import FollowOptions, Format
from mqlake.lake.tables.table import LakeTable


def open_table(options: FollowOptions) -> LakeTable:
    """Open a table, created if missing.

    Raises:
        JobError: a package is missing, or the existing table cannot be followed into.
    """
    if options.is_per_topic:
        from mqlake.lake.tables.topic_tables import TopicTables

        return TopicTables(options, open_table)
    match options.format:
        case Format.DELTA:
            from mqlake.lake.tables.delta_table import DeltaLakeTable

            return DeltaLakeTable(options)
        case Format.ICEBERG:
            from mqlake.lake.tables.iceberg_table import IcebergTable

            return IcebergTable(options)
        case Format.PARQUET:
            from mqlake.lake.tables.parquet_table import ParquetTable

            return ParquetTable(options)


def table_exists(options: FollowOptions) -> bool:
    """Return whether a table has been created.

    The bucket of a REST catalog may refuse requests for what is no table, so the catalog is asked.
    """
    if options.format is Format.ICEBERG and options.url is not None:
        from mqlake.lake.tables.iceberg_catalog import exists

        return exists(options)
    return options.files.exists(options.place)
