"""The writers of the sink, as Spark's Python data source API wants them."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from mqlake.errors import StoreError
from mqlake.spark.reading.one_line import raises_lines
from mqlake.spark.sink.columns import check_schema
from mqlake.spark.sink.journal import DIRECTORY
from mqlake.spark.sink.options import WriteOptions
from mqlake.spark.sink.staged import StagedFile
from mqlake.spark.sink.target import check_target, largest_record
from mqlake.storage.local_owned import LocalOwnedDirectory

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_QUERY, _EPOCH = "sql.streaming.queryId", "streaming.sql.batchId"


class StagedTask(WriterCommitMessage):
    """The result of a task: a part, in a directory below `.mqlake-sink`, and its query."""

    def __init__(self, place: str, query: str | None, part: StagedFile) -> None:
        self.place, self.query, self.part = place, query, part


class _Writer:
    """What batch and streaming writers share."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise StoreError(
                f"{options.path}: mode overwrite would delete a store, which the sink does "
                "not do; use mode append, which also creates a store"
            )
        check_schema(schema, options.topic)
        check_target(options.path)
        self.options = options
        self._largest_record = largest_record(options.path, options.settings)
        self.staging = LocalOwnedDirectory.make(options.path / DIRECTORY).root

    def stage(self, batches: Iterator[Any], place: str, query: str | None, task: int) -> StagedTask:
        """Stage the rows of a task in a directory of this name."""
        from mqlake.spark.sink.stage import stage

        if not self.staging.is_dir():
            raise StoreError(f"{self.staging}: does not exist; all hosts must see this directory")
        directory = self.staging / place
        directory.mkdir(exist_ok=True)
        part = stage(batches, directory, self.options, self._largest_record, task)
        return StagedTask(place, query, part)

    def add(self, messages: Sequence[WriterCommitMessage | None], epoch: int | None) -> None:
        """Append what tasks have staged."""
        from mqlake.spark.sink.commit import SinkEpoch, commit

        staged = [message for message in messages if isinstance(message, StagedTask)]
        parts = [message.part for message in staged if message.part.rows]
        if parts:
            query = staged[0].query
            of = None if epoch is None or query is None else SinkEpoch(query, epoch)
            place = self.staging / staged[0].place
            directory = LocalOwnedDirectory.make(self.options.path)
            commit(directory, self.options.settings, place, parts, of)

    def clear(self, places: set[str]) -> None:
        """Remove what was staged."""
        for place in places:
            shutil.rmtree(self.staging / place, ignore_errors=True)


@raises_lines("write", "commit")
class BatchWriter(_Writer, DataSourceArrowWriter):
    """Adds the rows of a DataFrame to a store, all of them or none."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite=overwrite)
        self._place = f"batch-{uuid4().hex}"

    def write(self, iterator: Iterator[Any]) -> StagedTask:
        """Stage the rows of a task."""
        return self.stage(iterator, self._place, None, _task().partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append the rows of all tasks."""
        self.add(messages, None)
        self.clear({self._place})

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Remove what was staged."""
        from mqlake.spark.sink.roll_back import roll_back

        self.clear({self._place})
        roll_back(LocalOwnedDirectory(self.options.path), self.options.settings)


@raises_lines("write", "commit")
class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Adds the rows of each micro-batch to a store exactly once, however often it runs."""

    def write(self, iterator: Iterator[Any]) -> StagedTask:
        """Stage the rows of a task."""
        task = _task()
        query, epoch = task.getLocalProperty(_QUERY), task.getLocalProperty(_EPOCH)
        if query is None or epoch is None:
            raise StoreError(
                "Spark does not say which streaming query this is: set option checkpointLocation"
            )
        return self.stage(iterator, f"{query}-{epoch}", query, task.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Append the rows of all tasks, unless the store already has this micro-batch."""
        self.add(messages, batchId)
        # What was staged before a driver was killed is removed, too.
        queries = {message.query for message in messages if isinstance(message, StagedTask)}
        self.clear({left.name for query in queries for left in self.staging.glob(f"{query}-*")})

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Remove what was staged; the next commit removes what was appended."""
        self.clear({message.place for message in messages if isinstance(message, StagedTask)})


def _task() -> Any:
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    return task
