"""A batch query over a Kafka log directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.query.kafka_log.options import KafkaLogReadOptions
from mqlake.query.kafka_log.plan import KafkaLogTask, plan_batch
from mqlake.query.reading.bounds import ConditionColumns
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import BatchQuery

KNOWN = ConditionColumns(texts=["topic"], numbers=["partition", "offset"], time="timestamp")
"""What limits the part of the log that is read, among an engine's filters."""


class KafkaQuery(BatchQuery[KafkaLogTask]):
    """Reads the records that options ask for."""

    def __init__(self, options: KafkaLogReadOptions) -> None:
        self._options = options

    def plan(self, pushed: Selection) -> Sequence[KafkaLogTask]:
        """Return the tasks; raises StoreError, FormatError."""
        return plan_batch(self._options, pushed).tasks

    def read(self, task: KafkaLogTask, schema: Any) -> Iterator[Any]:
        """Read the records of one task, as Arrow batches."""
        from mqlake.query.kafka_log.read import read

        return read(task, schema)
