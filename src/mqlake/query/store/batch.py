"""A batch query over a store directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import Query
from mqlake.query.store.options import ReadOptions
from mqlake.query.store.plan import Task, plan_batch


class LogQuery(Query[Task]):
    """Reads the messages that options ask for."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def plan(self, pushed: Selection) -> Sequence[Task]:
        """Return the tasks; raises StoreError."""
        return plan_batch(self._options, pushed).tasks

    def read(self, task: Task, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.store.read import read

        return read(task, schema)
