"""The batch readers over several stores: the tasks of each, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from mqlake.spark.reading import push_down
from mqlake.spark.reading.conditions import Selection
from mqlake.spark.reading.directory import Location
from mqlake.spark.reading.losses import data_loss
from mqlake.spark.source.asked import missing
from mqlake.spark.source.batch import OPTIONS_HELP, BatchReader, PushingReader, TaskPartition
from mqlake.spark.source.options import ReadOptions
from mqlake.spark.source.place import open_store
from mqlake.spark.source.plan import Task, plan_batch
from mqlake.spark.stores.stores import Stores, check_distinct

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def plan_stores(stores: Stores, pushed: Selection = ()) -> list[Task]:
    """Plan a batch query; the stores' tasks follow each other in the order of brokers.

    Raises:
        StoreError: as `plan_batch`; or a topic is in none of the stores.
    """
    options = list(stores.options.values())
    check_distinct(options)
    _check_asked(options)
    plans = [plan_batch(one, pushed, is_checked=False) for one in options]
    return [task for plan in plans for task in plan.tasks]


def _check_asked(stores: Sequence[ReadOptions]) -> None:
    """Check that each topic and queue that options name is in one of the stores."""
    common: list[str] | None = None
    for options in stores:
        with open_store(options.location) as store:
            found = list(missing(store, options))
        common = found if common is None else [what for what in common if what in found]
        if not common:
            return
    for what in common or ():
        data_loss(stores[0], f"{', '.join(one.path for one in stores)}: {what}")


class _OfStores(BatchReader):
    """Plans over several stores; reads as over one."""

    def __init__(self, stores: Stores, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._stores = stores

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; one that reads nothing if there is nothing to read."""
        tasks: Iterable[Task] = plan_stores(self._stores, self._pushed)
        empty = Task(Location(""), (), (), fail_on_data_loss=True, broker_name=None)
        return [TaskPartition(task) for task in tasks or [empty]]


class _PushingOfStores(_OfStores, PushingReader):
    """The same, where Spark's filters narrow what is read."""


def reader(stores: Stores, template: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that Spark takes in this process.

    Args:
        template: the options that all stores share.
    """
    is_pushing = push_down.is_used(template.push_filters, OPTIONS_HELP)
    return (_PushingOfStores if is_pushing else _OfStores)(stores, template, schema)
