"""The batch readers of the source, as Spark's Python data source API wants them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqlake.spark.reading import push_down
from mqlake.spark.reading.conditions import Selection
from mqlake.spark.reading.schema import arrow_schema
from mqlake.spark.source.columns import columns_of
from mqlake.spark.source.options import ReadOptions
from mqlake.spark.source.plan import Task, plan_batch

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

OPTIONS_HELP = "options such as subscribe, keys, tags and startingTimestamp limit what is read"


class TaskPartition(InputPartition):
    """One task of a query."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)


class BatchReader(DataSourceReader):
    """Reads the messages that options ask for."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        columns_of(schema)
        self._options, self._schema = options, schema
        self._pushed: Selection = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; if there is nothing to read, a single task that reads nothing."""
        tasks = plan_batch(self._options, self._pushed).tasks
        empty = Task(self._options.location, (), (), fail_on_data_loss=True, broker_name=None)
        return [TaskPartition(task) for task in tasks or [empty]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.spark.source.read import read

        return read(partition.value, arrow_schema(self._schema))


class PushingReader(BatchReader):
    """Reads less if Spark's filters allow it.

    Spark refuses a reader with `pushFilters` while spark.sql.python.filterPushdown.enabled is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Accept filters that limit the part of the log to read.

        Spark applies all filters again, which costs little.
        """
        from mqlake.spark.reading.filters import conditions

        self._pushed = conditions(filters)
        return filters


def reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that Spark takes in this process."""
    kind = PushingReader if push_down.is_used(options.push_filters, OPTIONS_HELP) else BatchReader
    return kind(options, schema)
