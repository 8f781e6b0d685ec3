"""Plan the tasks of a query, in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from mqlake.jobs.local import cores
from mqlake.jobs.splits.sizes import SMALLEST
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.directory import Location
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.shares import share_count
from mqlake.query.store.access import access, stretches
from mqlake.query.store.access.access import AccessPath
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.access.stretches import Share, Stretch
from mqlake.query.store.asked import check_asked
from mqlake.query.store.living import living
from mqlake.query.store.offsets import batch_ranges, subscription
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import OpenStore, open_store
from mqlake.store.log.segments import CommitLog

log = logger()

_MOST_TASKS = 4096
"""Tasks into which a log is split by size."""


class StoreTask(msgspec.Struct, frozen=True):
    """The input of one task.

    Attributes:
        decompress: whether bodies are decompressed, and inner batches split.
    """

    location: Location
    pieces: Share
    selection: Selection
    fail_on_data_loss: bool
    broker_name: str | None
    decompress: bool

    @property
    def store(self) -> str:
        """The name of the store in messages."""
        return self.location.name


class StorePlan(msgspec.Struct, frozen=True):
    """The tasks of a query, and how its messages are found."""

    tasks: list[StoreTask]
    access: AccessPath

    def explain(self) -> str:
        """Describe in one line how messages are found."""
        return f"{self.access.explain()}, {len(self.tasks)} tasks"


def plan_batch(
    options: StoreReadOptions,
    pushed: Selection = (),
    task_bytes: int | None = None,
    *,
    is_checked: bool = True,
) -> StorePlan:
    """Plan a batch query.

    Args:
        pushed: conditions from Spark's filters.
        task_bytes: approximate bytes of the log that a task reads; None to plan for Spark.
        is_checked: whether topics and queues that options name must exist.

    Raises:
        StoreError: there is no store; or a topic does not exist, or messages are lost, unless that
            is tolerated.
    """
    with open_store(options.location) as store:
        if is_checked:
            check_asked(store, options)
        selection = (*subscription(options), *batch_ranges(store, options), *pushed)
        boundaries = Boundaries(store, store.snapshot.end.offset)
        found = access.choose(
            store, boundaries, selection, options.access_path, is_split=options.decompress
        )
        selection = (*selection, *living(store))
        tasks = plan_tasks(store, boundaries, options, selection, found.stretches, task_bytes)
        plan = StorePlan(tasks, found)
    log.info("%s: %s", options.path, plan.explain())
    return plan


def plan_tasks(
    store: OpenStore,
    boundaries: Boundaries,
    options: StoreReadOptions,
    selection: Selection,
    found: Sequence[Stretch],
    task_bytes: int | None = None,
) -> list[StoreTask]:
    """Share stretches among tasks; report parts that are in no file."""
    for start, end in stretches.missing(store.log, found):
        data_loss(options, f"{options.path}: the log lacks {end - start} bytes from {start} on")
    shares = _shares(store, boundaries, options, selection, found, task_bytes)
    return [
        StoreTask(
            options.location,
            tuple(stretches.in_segments(store.log, share)),
            selection,
            options.fail_on_data_loss,
            options.broker_name,
            options.decompress,
        )
        for share in shares
    ]


def _shares(
    store: OpenStore,
    boundaries: Boundaries,
    options: StoreReadOptions,
    selection: Selection,
    found: Sequence[Stretch],
    task_bytes: int | None,
) -> Iterable[list[Stretch]]:
    size = stretches.size(_without_holes(store, found))
    least = options.min_partitions
    if task_bytes is not None and least is None:
        least = max(1, min(size // task_bytes, _MOST_TASKS))
    count = share_count(size, cores(), least)

    def boundary(position: int, within: Stretch) -> int | None:
        return boundary_near(boundaries, store.log, within[0], position)

    shares = stretches.share(found, count, boundary)
    if options.max_records_per_partition is not None:
        shares = _cut_by_count(
            store,
            selection,
            shares,
            options.max_records_per_partition,
            is_split=options.decompress,
        )
    return shares


def boundary_near(boundaries: Boundaries, log: CommitLog, start: int, position: int) -> int | None:
    """Return where a record starts at or after a position, None if only a search could find it.

    Args:
        start: a boundary before the position.
    """
    near = boundaries.at_or_after(position)
    if near is not None and near - position <= SMALLEST // 4:
        return near
    from mqlake.query.store.counting import boundary_by_walk

    return boundary_by_walk(log, start, position)


def _without_holes(store: OpenStore, found: Sequence[Stretch]) -> list[Stretch]:
    """Return stretches without the parts of files that were never written."""
    data: list[Stretch] = []
    for piece in stretches.in_segments(store.log, found):
        segment = store.log.segment_at(piece.start)
        file = store.log.file(segment) if segment else None
        if file is None or piece.end - piece.start <= SMALLEST:
            data.append((piece.start, piece.end))
            continue
        ranges = file.data_ranges(piece.start - piece.base, piece.end - piece.base)
        data += [(piece.base + first, piece.base + last) for first, last in ranges]
    return data


def _cut_by_count(
    store: OpenStore,
    selection: Selection,
    shares: Iterable[list[Stretch]],
    most: int,
    *,
    is_split: bool,
) -> list[list[Stretch]]:
    from mqlake.query.store.counting import cuts
    from mqlake.query.store.row_filter import RowFilter

    row_filter = RowFilter(selection)
    found: list[list[Stretch]] = []
    for share in shares:
        for start, end in share:
            for cut in cuts(store.log, (start, end), row_filter, most, is_split=is_split):
                found.append([(start, cut)])
                start = cut
            if start < end:
                found.append([(start, end)])
    return found
