"""Find the position at which a new streaming query starts."""

from __future__ import annotations

import msgspec

from mqlake.query.reading.limits import LATEST
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.living import living
from mqlake.query.store.offsets import offsets_of
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import OpenStore
from mqlake.query.store.position import StorePosition


def starting_position(store: OpenStore, end: int, options: StoreReadOptions) -> StorePosition:
    """Return where a query starts on a log that now ends at a physical offset.

    Raises:
        FormatError, StoreError: as for `offsets.offsets_of`.
    """
    found = _start(store, end, options)
    condition = next((one for one in living(store) if found.physical_offset < one.end), None)
    return msgspec.structs.replace(found, living=condition)


def _start(store: OpenStore, end: int, options: StoreReadOptions) -> StorePosition:
    limit, first = options.starting, store.log.min_offset
    starts = offsets_of(store, options, limit, "starting")
    if not starts:
        is_latest = limit.word == LATEST and limit.offsets is None and limit.timestamps is None
        return StorePosition(end if is_latest else first)
    if limit.timestamp is not None or _are_all(options, list(starts)):
        # Queues that do not exist yet begin after the end.
        boundaries = Boundaries(store, end)
        first = min(
            _place(store, boundaries, queue, offset, first, end) for queue, offset in starts.items()
        )
    return StorePosition(first, starts, end)


def _are_all(options: StoreReadOptions, queues: list[tuple[str, int]]) -> bool:
    return options.queues is not None and set(options.queues) <= set(queues)


def _place(
    store: OpenStore,
    boundaries: Boundaries,
    queue: tuple[str, int],
    offset: int,
    first: int,
    end: int,
) -> int:
    if offset >= store.snapshot.queue_range(*queue)[1]:
        return end
    found = boundaries.at_offset(queue, offset)
    return first if found is None else found
