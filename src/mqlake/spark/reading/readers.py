"""Any source as readers of Spark's Python data source API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from mqlake.query.reading.bounds import MESSAGES, ConditionColumns
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import BatchQuery, Stream, Written
from mqlake.spark.reading import push_down
from mqlake.spark.reading.forked_worker import expect_hang_up, spare_collections
from mqlake.spark.reading.one_line import lines, raises_lines
from mqlake.spark.reading.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class TaskPartition(InputPartition):
    """One task of a query; None reads nothing."""

    def __init__(self, task: Any) -> None:
        super().__init__(task)


@raises_lines("partitions")
class BatchReader(DataSourceReader):
    """Reads the messages of a batch query."""

    def __init__(self, query: BatchQuery[Any], schema: StructType) -> None:
        self._query, self._schema = query, schema
        self._pushed: Selection = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; Spark wants one even if there is nothing to read."""
        found = [TaskPartition(task) for task in self._query.plan(self._pushed) or [None]]
        spare_collections()
        return found

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the rows of one task, as Arrow batches."""
        return _rows(self._query, partition, self._schema)


class PushingReader(BatchReader):
    """Reads less if Spark's filters allow it.

    Spark refuses a reader with `pushFilters` while spark.sql.python.filterPushdown.enabled is off.
    """

    def __init__(self, query: BatchQuery[Any], schema: StructType, known: ConditionColumns) -> None:
        super().__init__(query, schema)
        self._known = known

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Accept filters that limit what is read; Spark applies all of them again."""
        from mqlake.spark.reading.filters import conditions

        self._pushed = conditions(filters, self._known)
        return filters


def batch_reader(
    query: BatchQuery[Any],
    schema: StructType,
    push_filters: str,
    otherwise: str,
    known: ConditionColumns = MESSAGES,
) -> BatchReader:
    """Return the reader that Spark accepts in this process.

    Args:
        push_filters: the option `pushFilters`.
        otherwise: what else limits what is read; logged if filters do not.
        known: the columns whose filters limit what is read.
    """
    if push_down.is_used(push_filters, otherwise):
        return PushingReader(query, schema, known)
    return BatchReader(query, schema)


@raises_lines("initialOffset", "latestOffset", "partitions", "commit")
class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what was added since the last micro-batch."""

    def __init__(self, stream: Stream[Any], schema: StructType) -> None:
        self._stream, self._schema = stream, schema

    def initialOffset(self) -> Written:  # noqa: N802
        """Return the position at which a new query starts."""
        return self._stream.position()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit that options set, if any; Spark passes it back, or asks for
        everything.
        """
        most = self._stream.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the current end as the end of all available messages."""
        self._stream.stop_at_end()

    def latestOffset(self, start: Written, limit: ReadLimit) -> Written:  # noqa: N802
        """Return where the next micro-batch ends; `start` if there is nothing new."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._stream.position(start, most)

    def reportLatestOffset(self) -> Written | None:  # noqa: N802
        """Return the position of the newest message, for the progress of the query."""
        return self._stream.seen

    def partitions(self, start: Written, end: Written) -> Sequence[InputPartition]:
        """Plan the tasks of a micro-batch, the same ones whenever it is planned."""
        return [TaskPartition(task) for task in self._stream.plan(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the rows of one task, as Arrow batches."""
        return _rows(self._stream, partition, self._schema)

    def commit(self, end: Written) -> None:
        """Tell the source that Spark has finished all micro-batches before `end`."""
        self._stream.done(end)


def _rows(
    source: BatchQuery[Any] | Stream[Any], partition: InputPartition, schema: StructType
) -> Iterator[Any]:
    if partition.value is None:
        return iter(())
    expect_hang_up()
    return lines(_read(source, partition.value, arrow_schema(schema)))


def _read(source: BatchQuery[Any] | Stream[Any], task: Any, schema: Any) -> Iterator[Any]:
    yield from source.read(task, schema)
    spare_collections()
