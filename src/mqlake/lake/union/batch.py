"""A batch query over a table and its log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.lake.union.plan import UnionTask, plan_union
from mqlake.lake.union.read import LakeTask
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import BatchQuery
from mqlake.query.store.options import StoreReadOptions


class UnionQuery(BatchQuery[UnionTask]):
    """Reads a table, and the log after it."""

    def __init__(self, options: StoreReadOptions, columns: Sequence[str]) -> None:
        self._options, self._columns = options, tuple(columns)

    def plan(self, pushed: Selection) -> Sequence[UnionTask]:
        """Return the tasks; raises FormatError, JobError, StoreError."""
        return plan_union(self._options, self._columns, pushed)

    def read(self, task: UnionTask, schema: Any) -> Iterator[Any]:
        """Read the rows of one task, as Arrow batches."""
        if isinstance(task, LakeTask):
            from mqlake.lake.union.read import read

            return read(task, schema)
        from mqlake.query.store.read import read as read_log

        return read_log(task, schema)
