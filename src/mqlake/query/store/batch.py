"""A batch query over a store directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import BatchQuery
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.plan import StoreTask, plan_batch


class LogQuery(BatchQuery[StoreTask]):
    """Reads the messages that options ask for."""

    def __init__(self, options: StoreReadOptions) -> None:
        self._options = options

    def plan(self, pushed: Selection) -> Sequence[StoreTask]:
        """Return the tasks; raises StoreError."""
        return plan_batch(self._options, pushed).tasks

    def read(self, task: StoreTask, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.store.read import read

        return read(task, schema)
