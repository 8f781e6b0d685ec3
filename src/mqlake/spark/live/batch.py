"""The batch readers over a running cluster, as Spark's Python data source API wants them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqlake.spark.live.options import LiveOptions
from mqlake.spark.live.plan import plan_batch
from mqlake.spark.live.task import Task
from mqlake.spark.reading import push_down
from mqlake.spark.reading.conditions import Selection
from mqlake.spark.reading.schema import arrow_schema
from mqlake.spark.source.columns import columns_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

_OPTIONS_HELP = "options such as subscribe, tags and startingTimestamp limit what is read"


class LiveTaskPartition(InputPartition):
    """One task of a query."""

    def __init__(self, task: Task | None) -> None:
        super().__init__(task)


class LiveBatchReader(DataSourceReader):
    """Reads the messages that options ask for."""

    def __init__(self, options: LiveOptions, schema: StructType) -> None:
        columns_of(schema)
        self._options, self._schema = options, schema
        self._pushed: Selection = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; if there is nothing to read, a single task that reads nothing."""
        tasks = plan_batch(self._options, self._pushed)
        return [LiveTaskPartition(task) for task in tasks or [None]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        if partition.value is not None:
            from mqlake.spark.live.read import read

            yield from read(partition.value, arrow_schema(self._schema))


class LivePushingReader(LiveBatchReader):
    """Reads less if Spark's filters allow it.

    Spark refuses a reader with `pushFilters` while spark.sql.python.filterPushdown.enabled is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Accept filters that limit the part of the queues to read.

        Spark applies all filters again, which costs little.
        """
        from mqlake.spark.reading.filters import conditions

        self._pushed = conditions(filters)
        return filters


def reader(options: LiveOptions, schema: StructType) -> LiveBatchReader:
    """Return the reader that Spark accepts in this process."""
    pushes = push_down.is_used(options.push_filters, _OPTIONS_HELP)
    return (LivePushingReader if pushes else LiveBatchReader)(options, schema)
