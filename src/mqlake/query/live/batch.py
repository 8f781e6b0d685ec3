"""A batch query over a running cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.query.live.options import LiveOptions
from mqlake.query.live.plan import plan_batch
from mqlake.query.live.task import LiveTask
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import BatchQuery


class LiveQuery(BatchQuery[LiveTask]):
    """Reads the messages that options ask for."""

    def __init__(self, options: LiveOptions) -> None:
        self._options = options

    def plan(self, pushed: Selection) -> Sequence[LiveTask]:
        """Return the tasks; raises StoreError."""
        return plan_batch(self._options, pushed)

    def read(self, task: LiveTask, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.live.read import read

        return read(task, schema)
