"""The writers to a running cluster, as Spark's Python data source API wants them."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from mqlake.errors import StoreError
from mqlake.query.reading.log import logger
from mqlake.spark.live.sink_options import LiveWriteOptions
from mqlake.spark.reading.one_line import raises_lines
from mqlake.spark.sink.columns import check_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

log = logger()


class Sent(WriterCommitMessage):
    """The result of a task: how many messages it sent."""

    def __init__(self, count: int) -> None:
        self.count = count


class _LiveWriter:
    """What batch and streaming writers share."""

    def __init__(self, options: LiveWriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise StoreError("mode overwrite would delete a topic's messages; use mode append")
        check_schema(schema, options.topic)
        self.options = options

    def write(self, iterator: Iterator[Any]) -> Sent:
        """Send the rows of a task."""
        from mqlake.spark.live.send import send_rows

        return Sent(send_rows(iterator, self.options))

    def tell(self, what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log how many messages tasks have sent."""
        sent = [message.count for message in messages if isinstance(message, Sent)]
        log.info(
            "%s: %s %d messages of %d tasks", self.options.name_servers, what, sum(sent), len(sent)
        )


@raises_lines("write")
class LiveBatchWriter(_LiveWriter, DataSourceArrowWriter):
    """Sends the rows of a DataFrame, each at least once."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log what was sent."""
        self.tell("sent", messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log what was sent: messages cannot be taken back."""
        self.tell("failed after", messages)


@raises_lines("write")
class LiveStreamWriter(_LiveWriter, DataSourceStreamArrowWriter):
    """Sends the rows of each micro-batch, each at least once."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Log what was sent."""
        self.tell(f"micro-batch {batchId}: sent", messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Log what was sent: messages cannot be taken back."""
        self.tell(f"micro-batch {batchId}: failed after", messages)
