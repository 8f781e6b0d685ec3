"""Plan the tasks of a batch query over several stores."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.losses import absent
from mqlake.query.store.asked import missing
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import StorePlan, plan_batch
from mqlake.query.stores.stores import check_distinct


def plan_stores(
    stores: Sequence[StoreReadOptions], pushed: Selection = (), task_bytes: int | None = None
) -> list[StorePlan]:
    """Plan a batch query over several stores.

    Args:
        task_bytes: as for `plan_batch`.

    Raises:
        StoreError: as for `plan_batch`; or a topic is in none of the stores.
    """
    check_distinct(stores)
    _check_asked(stores)
    return [plan_batch(one, pushed, task_bytes, is_checked=False) for one in stores]


def _check_asked(stores: Sequence[StoreReadOptions]) -> None:
    """Check that each topic and queue that options name is in one of the stores."""
    common: dict[str, str] | None = None
    for options in stores:
        with open_store(options.location) as store:
            found = missing(store, options)
        if common is None:
            common = found
        common = {name: what for name, what in common.items() if name in found}
        if not common:
            return
    for what in (common or {}).values():
        absent(stores[0], f"{', '.join(one.path for one in stores)}: {what}")
