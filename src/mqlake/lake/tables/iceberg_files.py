"""Data files as an Iceberg table describes them."""

# pyright: basic
# Reason: pyarrow and pyiceberg carry few types.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyarrow import parquet
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.metadata import TableMetadata


def described(io: FileIO, metadata: TableMetadata, uri: str) -> DataFile:
    """Return the description of a Parquet file whose columns have the table's field ids.

    The file may have columns that the table has no longer, and the table may call them otherwise:
    readers go by the ids.
    """
    opened = io.new_input(uri)
    with opened.open() as stream:
        footer = parquet.read_metadata(stream)
    inside = pyarrow_to_schema(footer.schema.to_arrow_schema(), metadata.name_mapping())
    schema, properties = metadata.schema(), metadata.properties
    # A column may have been widened after the file was written: its bounds have the new type.
    plan: dict[int, Any] = {
        **compute_statistics_plan(inside, properties),
        **compute_statistics_plan(schema, properties),
    }
    ids = parquet_path_to_id_mapping(inside)
    for path in _without_bounds(footer):
        plan[ids[path]] = replace(plan[ids[path]], mode=MetricsMode(MetricModeTypes.COUNTS))
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer, stats_columns=plan, parquet_column_mapping=ids
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=statistics.partition(metadata.spec(), schema),
        file_size_in_bytes=len(opened),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _without_bounds(footer: Any) -> Iterator[str]:
    """Yield the columns with times in years that Python, and so PyIceberg, does not have."""
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for column in map(group.column, range(footer.num_columns)):
            try:
                _ = column.statistics and column.statistics.has_min_max and column.statistics.min
                _ = column.statistics and column.statistics.has_min_max and column.statistics.max
            except OverflowError:
                yield column.path_in_schema
