"""The columns of a table and its log as Spark's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.lake.union.followed import open_table
from mqlake.query.store.options import read_options
from mqlake.spark.source.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def union_schema(given: Mapping[str, str]) -> StructType:
    """Return the columns that options select and the table has; all may be null.

    Raises:
        FormatError: an option is wrong, or the table lacks a selected column.
        JobError: the table does not exist.
    """
    options = read_options(given)
    there = set(open_table(options).columns)
    missing = [name for name in options.columns if name not in there]
    if missing and any(name.lower() == "columns" for name in given):
        raise FormatError(f"{options.table}: the table has no column {missing[0]}")
    schema = spark_schema([name for name in options.columns if name in there])
    for field in schema.fields:
        field.nullable = True
    return schema
