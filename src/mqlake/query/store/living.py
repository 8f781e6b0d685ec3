"""Leave out the records of deleted topics."""

from __future__ import annotations

from mqlake.query.reading.conditions import Living
from mqlake.query.store.place import OpenStore
from mqlake.store.incarnations.table import Incarnations


def living(store: OpenStore) -> tuple[Living, ...]:
    """Return the condition that a record is not one of a deleted topic; () if the log has none.

    Raises:
        StoreError: the table of incarnations cannot be read.
    """
    found = store.snapshot.incarnations
    first = store.log.min_offset
    befores = {topic: before for topic, before in found.befores.items() if _matters(found, before)}
    if max((found.others, *befores.values()), default=0) <= first:
        return ()
    return (Living(befores, found.others),)


def _matters(found: Incarnations, before: int) -> bool:
    # An entry of 0 also says that the offset of the other topics does not apply.
    return before > 0 or found.others > 0
