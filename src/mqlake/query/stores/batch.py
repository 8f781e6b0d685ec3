"""A batch query over several stores: the tasks of each store in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.source import BatchQuery
from mqlake.query.store.plan import StoreTask
from mqlake.query.stores.plan import plan_stores
from mqlake.query.stores.stores import Stores


class StoresQuery(BatchQuery[StoreTask]):
    """Plans over several stores; reads as over one."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def plan(self, pushed: Selection) -> Sequence[StoreTask]:
        """Return the tasks; raises StoreError."""
        plans = plan_stores(list(self._stores.options.values()), pushed)
        return [task for plan in plans for task in plan.tasks]

    def read(self, task: StoreTask, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.store.read import read

        return read(task, schema)
