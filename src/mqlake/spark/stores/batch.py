"""The batch readers over several stores: the tasks of each store in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from mqlake.spark.reading import push_down
from mqlake.spark.reading.directory import Location
from mqlake.spark.source.batch import OPTIONS_HELP, BatchReader, PushingReader, TaskPartition
from mqlake.spark.source.options import ReadOptions
from mqlake.spark.source.plan import Task
from mqlake.spark.stores.plan import plan_stores
from mqlake.spark.stores.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class _OfStores(BatchReader):
    """Plans over several stores; reads as over one."""

    def __init__(self, stores: Stores, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._stores = stores

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; if there is nothing to read, a single task that reads nothing."""
        plans = plan_stores(list(self._stores.options.values()), self._pushed)
        tasks = [task for plan in plans for task in plan.tasks]
        empty = Task(Location(""), (), (), fail_on_data_loss=True, broker_name=None)
        return [TaskPartition(task) for task in tasks or [empty]]


class _PushingOfStores(_OfStores, PushingReader):
    """The same, with filters of Spark that limit what is read."""


def reader(stores: Stores, template: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that Spark takes in this process.

    Args:
        template: the options that all stores share.
    """
    is_pushing = push_down.is_used(template.push_filters, OPTIONS_HELP)
    return (_PushingOfStores if is_pushing else _OfStores)(stores, template, schema)
