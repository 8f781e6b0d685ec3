"""A streaming query over a store that a broker writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.query.reading.conditions import MOST, Selection
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.source import Stream, Written, most_of
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.fingerprint import fingerprint
from mqlake.query.store.offsets import subscription
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import OpenStore
from mqlake.query.store.plan import StoreTask, boundary_near, plan_tasks
from mqlake.query.store.position import StorePosition
from mqlake.query.store.starting import starting_position
from mqlake.query.store.subscribed import check_subscription, described
from mqlake.query.store.tail import LogTail
from mqlake.storage.clock import SystemClock

log = logger()


class LogStream(Stream[StoreTask]):
    """Reads what was appended to the log since the last micro-batch."""

    def __init__(self, options: StoreReadOptions) -> None:
        self._options = options
        self._tail = LogTail(options.location)
        self._subscription = described(options)
        self._is_subscription_checked = False
        self._target: int | None = None
        self._last_batch = 0.0

    @property
    def options(self) -> StoreReadOptions:
        """The options of the query."""
        return self._options

    @property
    def most(self) -> int | None:
        """The most messages of a micro-batch that options allow; None if they set no limit."""
        options = self._options
        return most_of(
            options.max_offsets_per_trigger,
            options.min_offsets_per_trigger,
            options.max_bytes_per_trigger,
        )

    @property
    def seen(self) -> Written | None:
        """The log's end."""
        return None if self._tail.known is None else StorePosition(self._tail.known).write()

    def stop_at_end(self) -> None:
        """Let the query end at the log's current end."""
        with self._tail.look() as (_, end):
            self._target = end

    def position(self, after: Written | None = None, most: int | None = None) -> Written:
        """Return where the micro-batch after a position ends; `after` if there is nothing new.

        Raises:
            StoreError: there is no store, or the log is not the one that was read, unless that is
                tolerated.
        """
        return self._first() if after is None else self._next(after, most)

    def _first(self) -> Written:
        if self._options.starting_position is not None:
            return self._options.starting_position
        with self._tail.look() as (store, end):
            found = starting_position(store, end, self._options)
            return self._at(store, found, found.physical_offset)

    def _next(self, start: Written, most: int | None) -> Written:
        position = StorePosition.read(start)
        self._check_subscription(position)
        with self._tail.look() as (store, end):
            if end < position.physical_offset:
                data_loss(
                    self._options,
                    f"{self._options.path}: the log ends at {end}, but the query is at "
                    f"{position.physical_offset}: the log was cut, or is another one",
                )
                return self._at(store, position, end)
            self._check_log(store, position)
            if self._target is not None:
                end = max(position.physical_offset, min(end, self._target))
            if most is not None:
                end = self._admitted(store, position, end, most)
            if end == position.physical_offset:
                return start
            self._last_batch = SystemClock().monotonic()
            return self._at(store, position, end)

    def _at(self, store: OpenStore, position: StorePosition, end: int) -> Written:
        """Return the text for Spark's checkpoint at a physical offset."""
        return position.at(end, fingerprint(store.log, end), self._subscription).write()

    def _check_subscription(self, position: StorePosition) -> None:
        """Check the first position, which comes from Spark's checkpoint; later ones are the
        reader's own.
        """
        if not self._is_subscription_checked:
            check_subscription(self._options, position)
            self._is_subscription_checked = True

    def _check_log(self, store: OpenStore, position: StorePosition) -> None:
        """Raise, or warn if losses are tolerated, if the log is not the one that was read."""
        expected, at = position.fingerprint, position.physical_offset
        if expected is None:
            return
        found = fingerprint(store.log, at)
        if found is not None and found != expected:
            data_loss(
                self._options,
                f"{self._options.path}: the log before physical offset {at} is not the one "
                "that this query has read: the store was created again, or its log was cut "
                "and written again; start a new query, with a new checkpoint, to read it "
                "from its beginning",
            )

    def _admitted(self, store: OpenStore, position: StorePosition, end: int, most: int) -> int:
        """Return where the options end the next micro-batch."""
        from mqlake.query.store import counting
        from mqlake.query.store.row_filter import RowFilter

        start = max(position.physical_offset, store.log.min_offset)
        if start >= end:
            return end
        row_filter = RowFilter(self._selection(position))
        least = self._options.min_offsets_per_trigger
        waits = self._target is None and not self._has_waited()
        is_split = self._options.decompress
        if least and waits:
            stretch = start, end
            found = counting.count(store.log, stretch, row_filter, least, is_split=is_split)
            if found < least:
                return position.physical_offset
        end = self._within_bytes(store, start, end)
        if most >= MOST:
            return end
        cuts = counting.cuts(store.log, (start, end), row_filter, most, is_split=is_split)
        return next(cuts, end)

    def _within_bytes(self, store: OpenStore, start: int, end: int) -> int:
        """Return where `maxBytesPerTrigger` ends the next micro-batch: at a record's start."""
        most = self._options.max_bytes_per_trigger
        if most is None or start + most >= end:
            return end
        found = boundary_near(Boundaries(store, end), store.log, start, start + most)
        return end if found is None else min(found, end)

    def _has_waited(self) -> bool:
        waited = (SystemClock().monotonic() - self._last_batch) * 1000
        return not self._last_batch or waited >= self._options.max_trigger_delay

    def _selection(self, position: StorePosition) -> Selection:
        return (*subscription(self._options), *position.selection)

    def plan(self, start: Written, end: Written) -> Sequence[StoreTask]:
        """Return the tasks of a micro-batch, the same ones whenever it is planned.

        Raises:
            StoreError: the log is not the one that was read, or messages were deleted, unless that
                is tolerated.
        """
        position, until = StorePosition.read(start), StorePosition.read(end)
        self._check_subscription(position)
        first, last = position.physical_offset, until.physical_offset
        if first >= last:
            return []
        with self._tail.look() as (store, _):
            self._check_log(store, position)
            self._check_log(store, until)
            if first < store.log.min_offset:
                data_loss(
                    self._options,
                    f"{self._options.path}: the log begins at {store.log.min_offset}; "
                    f"messages from {first} on were deleted before the query read them",
                )
                first = min(store.log.min_offset, last)
            tasks = plan_tasks(
                store,
                Boundaries(store, last),
                self._options,
                self._selection(position),
                [(first, last)] if first < last else [],
            )
        log.info(
            "%s: micro-batch from %d to %d in %d tasks", self._options.path, first, last, len(tasks)
        )
        return tasks

    def read(self, task: StoreTask, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.store.read import read

        return read(task, schema)
