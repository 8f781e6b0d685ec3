"""A streaming query over several stores: a query for each, and one position for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mqlake.query.reading.conditions import MOST
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.source import Stream, Written, most_of
from mqlake.query.store.fingerprint import fingerprint
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import StoreTask
from mqlake.query.store.position import StorePosition
from mqlake.query.store.stream import LogStream
from mqlake.query.stores.position import Positions, read_positions, write_positions
from mqlake.query.stores.stores import Stores, check_distinct, find_stores

log = logger()


class StoresStream(Stream[StoreTask]):
    """Reads what was appended to the logs of several stores since the last micro-batch.

    Args:
        given: the options of the query. A pattern in `path` is evaluated again for each batch.
        template: the options that all stores share.
    """

    def __init__(self, given: Mapping[str, str], template: StoreReadOptions) -> None:
        self._given, self._options = dict(given), template
        self._streams: dict[str, LogStream] = {}
        self._has_pattern = True
        self._is_fixed = False
        self._turn = 0

    @property
    def most(self) -> int | None:
        """The most messages of a micro-batch that options allow; None if they set no limit."""
        return most_of(self._options.max_offsets_per_trigger, self._options.max_bytes_per_trigger)

    @property
    def seen(self) -> Written | None:
        """The logs' ends."""
        ends = {name: stream.seen for name, stream in self._streams.items()}
        known = {name: end for name, end in ends.items() if end is not None}
        return write_positions(known) if known else None

    def stop_at_end(self) -> None:
        """Let the query end at the current ends of the logs."""
        self._find()
        for stream in self._streams.values():
            stream.stop_at_end()
        self._is_fixed = True

    def position(self, after: Written | None = None, most: int | None = None) -> Written:
        """Return where the micro-batch after a position ends; `after` if there is nothing new.

        Raises:
            StoreError: a store does not exist, or its log is not the one that was read, unless
                that is tolerated.
        """
        if after is not None:
            return self._next(after, most)
        self._find()
        return write_positions({name: stream.position() for name, stream in self._streams.items()})

    def _next(self, start: Written, most: int | None) -> Written:
        before = read_positions(start)
        self._find()
        after = dict(before)
        gone = {name: before[name] for name in sorted(before.keys() - self._streams.keys())}
        for name in sorted(self._streams.keys() - before.keys()):
            former = self._former_name(name, gone)
            after[name] = self._first(name) if former is None else after.pop(former)
            gone.pop(former or "", None)
        for name in gone:
            data_loss(
                self._options,
                f"the store of broker {name}, which this query has read, no longer exists",
            )
        known = {name: position for name, position in before.items() if name in self._streams}
        after |= self._advanced(known, most)
        return start if after == before else write_positions(after)

    def _advanced(self, known: Positions, most: int | None) -> Positions:
        """Return the ends of stores with something new; a limit is shared among these."""
        if most is None or most >= MOST:
            return {
                name: self._streams[name].position(position, most)
                for name, position in known.items()
            }
        names = [
            name
            for name, position in known.items()
            if self._streams[name].position(position) != position
        ]
        if not names:
            return {}
        # If the limit is below the number of stores, they take turns.
        self._turn = (self._turn + 1) % len(names)
        names = names[self._turn :] + names[: self._turn]
        share, rest = divmod(most, len(names))
        shares = {name: share + (number < rest) for number, name in enumerate(names)}
        return {
            name: self._streams[name].position(known[name], rows)
            for name, rows in shares.items()
            if rows
        }

    def _former_name(self, name: str, gone: Positions) -> str | None:
        """Return the name under which this query has read a store, if its broker was renamed."""
        with open_store(self._stream(name).options.location) as store:
            for former, written in gone.items():
                position = StorePosition.read(written)
                mark = position.fingerprint
                if mark is not None and fingerprint(store.log, position.physical_offset) == mark:
                    log.warning("broker %s: its name is %s now", former, name)
                    return former
        return None

    def _first(self, name: str) -> Written:
        """Return where a store that was found later is read from: its first message."""
        options = self._stream(name).options
        log.info("broker %s: found the store %s", name, options.path)
        with open_store(options.location) as store:
            return StorePosition(store.log.min_offset).write()

    def _find(self) -> None:
        """Find the stores; a query over a fixed list does so once."""
        if self._streams and (self._is_fixed or not self._has_pattern):
            return
        found: Stores = find_stores(self._given, streaming=True)
        self._has_pattern = found.has_pattern
        if found.options.keys() - self._streams.keys():
            check_distinct(found.options.values())
        self._streams = {
            name: self._streams.get(name) or LogStream(options)
            for name, options in found.options.items()
        }

    def _stream(self, name: str) -> LogStream:
        if name not in self._streams:
            self._find()
        return self._streams[name]

    def plan(self, start: Written, end: Written) -> Sequence[StoreTask]:
        """Return the tasks of a micro-batch, the same ones whenever it is planned."""
        before, after = read_positions(start), read_positions(end)
        moved = [name for name in after if name in before and before[name] != after[name]]
        if moved and not self._streams:
            self._find()
        tasks: list[StoreTask] = []
        for name in moved:
            if name in self._streams:
                tasks += self._streams[name].plan(before[name], after[name])
            else:
                data_loss(
                    self._options,
                    f"the store of broker {name}, whose messages are in this micro-batch, no "
                    "longer exists",
                )
        return tasks

    def read(self, task: StoreTask, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.store.read import read

        return read(task, schema)
