"""The batch readers of the source, as Spark's Python data source API wants them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqlake.spark.source.columns import arrow_schema, columns_of
from mqlake.spark.source.conditions import Selection
from mqlake.spark.source.log import logger
from mqlake.spark.source.options import ReadOptions
from mqlake.spark.source.plan import Task, plan_batch

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

log = logger()

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

FORGETS_FILTERS = hasattr(DataSourceReader, "pushLimit")
"""Whether Spark keeps pushed filters to their query.

Spark 4.1 and 4.2 keep what was planned with them beside the relation (`PythonDataSourceV2`), and
use it for whatever else is asked of the same DataFrame. The release that can push limits does not.
"""

_OPTIONS_HELP = "options such as subscribe, keys, tags and startingTimestamp narrow it all the same"

_said: set[str] = set()


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
        """Plan the tasks; one that reads nothing where there is nothing to read."""
        tasks = plan_batch(self._options, self._pushed).tasks
        empty = Task(self._options.path, (), (), fail_on_data_loss=True, broker_name=None)
        return [TaskPartition(task) for task in tasks or [empty]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.spark.source.read import read

        return read(partition.value, arrow_schema(self._schema))


class PushingReader(BatchReader):
    """Reads less where Spark's filters allow it.

    Spark refuses a reader with `pushFilters` while spark.sql.python.filterPushdown.enabled is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take what narrows the log. Spark applies all filters again, which costs little."""
        from mqlake.spark.source.filters import conditions

        self._pushed = conditions(filters)
        return filters


def reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that Spark takes in this process."""
    if not _is_pushing():
        _say_once(
            "Spark hands no filters to the source: spark.sql.python.filterPushdown.enabled is "
            f"off, or the query has none; {_OPTIONS_HELP}"
        )
        return BatchReader(options, schema)
    if options.push_filters == "true" or (options.push_filters == "auto" and FORGETS_FILTERS):
        return PushingReader(options, schema)
    _say_once(
        "filters are not used to narrow what is read: this Spark would use those of one query for "
        f"others on the same DataFrame (option pushFilters); {_OPTIONS_HELP}"
    )
    return BatchReader(options, schema)


def _is_pushing() -> bool:
    """Say whether this process was started to push filters down, which only then is enabled.

    Spark does not tell a data source about its settings; but it runs different programs.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return _PUSHING_WORKER in sys.modules or getattr(spec, "name", "") == _PUSHING_WORKER


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        log.info("%s", text)
