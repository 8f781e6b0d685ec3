"""The batch readers of a table and its log, as Spark's Python data source API wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from mqlake.errors import FormatError
from mqlake.spark.reading import push_down
from mqlake.spark.reading.schema import arrow_schema
from mqlake.spark.source.batch import OPTIONS_HELP, BatchReader, PushingReader
from mqlake.spark.source.columns import spark_schema
from mqlake.spark.source.options import ReadOptions, read_options
from mqlake.spark.union.followed import open_table
from mqlake.spark.union.plan import UnionTask, plan_union
from mqlake.spark.union.read import LakeTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class UnionPartition(InputPartition):
    """One task of a query."""

    def __init__(self, task: UnionTask) -> None:
        super().__init__(task)


class UnionReader(BatchReader):
    """Reads a table, and the log after it."""

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; if there is nothing to read, a single task that reads nothing."""
        tasks = plan_union(self._options, self._schema.names, self._pushed)
        return [UnionPartition(task) for task in tasks or [LakeTask((), ())]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the rows of one task, as Arrow batches."""
        task, schema = partition.value, arrow_schema(self._schema)
        if isinstance(task, LakeTask):
            from mqlake.spark.union.read import read

            return read(task, schema)
        from mqlake.spark.source.read import read as read_log

        return read_log(task, schema)


class PushingUnionReader(UnionReader, PushingReader):
    """Reads less if Spark's filters allow it."""


def reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that Spark takes in this process."""
    pushes = push_down.is_used(options.push_filters, OPTIONS_HELP)
    return (PushingUnionReader if pushes else UnionReader)(options, schema)


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
