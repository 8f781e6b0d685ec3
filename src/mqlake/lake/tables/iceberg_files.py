"""Data files as an Iceberg table describes them."""

# pyright: basic
# Reason: pyarrow and pyiceberg carry few types.

from __future__ import annotations

from typing import Any

from pyarrow import parquet
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
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
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=plan,
        parquet_column_mapping=parquet_path_to_id_mapping(inside),
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
