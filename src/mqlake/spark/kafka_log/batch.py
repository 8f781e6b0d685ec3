"""The batch readers of the source, as Spark's Python data source API wants them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqlake.spark.kafka_log.columns import check_schema
from mqlake.spark.kafka_log.options import ReadOptions
from mqlake.spark.kafka_log.plan import Task, plan_batch
from mqlake.spark.reading import push_down
from mqlake.spark.reading.conditions import Selection
from mqlake.spark.reading.filters import Known
from mqlake.spark.reading.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

KNOWN = Known(texts=["topic"], numbers=["partition", "offset"], time="timestamp")
"""What limits the part of the log that is read, among Spark's filters."""

_OPTIONS_HELP = (
    "options such as subscribe, startingOffsets and startingTimestamp limit what is read"
)


class TaskPartition(InputPartition):
    """One task of a query."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)


class BatchReader(DataSourceReader):
    """Plan the tasks; if there is nothing to read, a single task that reads nothing."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        check_schema(schema)
        self._options, self._schema = options, schema
        self._pushed: Selection = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; one that reads nothing if there is nothing to read."""
        options = self._options
        tasks = plan_batch(options, self._pushed).tasks
        empty = Task(options.location, (), options.isolation, options.fail_on_data_loss)
        return [TaskPartition(task) for task in tasks or [empty]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one task, as Arrow batches."""
        from mqlake.spark.kafka_log.read import read

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

        self._pushed = conditions(filters, KNOWN)
        return filters


def reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that Spark takes in this process."""
    kind = PushingReader if push_down.is_used(options.push_filters, _OPTIONS_HELP) else BatchReader
    return kind(options, schema)
