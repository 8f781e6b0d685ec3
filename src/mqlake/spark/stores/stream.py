"""The streaming reader over several stores: a reader for each, and one position for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from mqlake.spark.reading.conditions import MOST
from mqlake.spark.reading.log import logger
from mqlake.spark.reading.losses import data_loss
from mqlake.spark.reading.schema import arrow_schema
from mqlake.spark.source.columns import columns_of
from mqlake.spark.source.fingerprint import fingerprint
from mqlake.spark.source.options import ReadOptions
from mqlake.spark.source.place import open_store
from mqlake.spark.source.position import Position
from mqlake.spark.source.stream import StreamReader
from mqlake.spark.stores.position import Positions, read_positions, write_positions
from mqlake.spark.stores.stores import Stores, check_distinct, find_stores

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

log = logger()


class StoresStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what was appended to the logs of several stores since the last micro-batch.

    Args:
        given: the options of the query. A pattern in `path` is evaluated again for each batch.
        template: the options that all stores share.
    """

    def __init__(self, given: Mapping[str, str], template: ReadOptions, schema: StructType) -> None:
        columns_of(schema)
        self._given, self._options, self._schema = dict(given), template, schema
        self._readers: dict[str, StreamReader] = {}
        self._has_pattern = True
        self._is_fixed = False
        self._turn = 0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the positions at which a new query starts in each store."""
        self._find()
        return write_positions(
            {name: reader.initialOffset() for name, reader in self._readers.items()}
        )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit that options set, if any."""
        most = self._options.max_offsets_per_trigger
        if most is None and self._options.max_bytes_per_trigger is not None:
            most = MOST
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the current ends as the end of all available messages."""
        self._find()
        for reader in self._readers.values():
            reader.prepareForTriggerAvailableNow()
        self._is_fixed = True

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return where the next microbatch ends; `start` if there is nothing new."""
        before = read_positions(start)
        self._find()
        after = dict(before)
        gone = {name: before[name] for name in sorted(before.keys() - self._readers.keys())}
        for name in sorted(self._readers.keys() - before.keys()):
            former = self._former_name(name, gone)
            after[name] = self._first(name) if former is None else after.pop(former)
            gone.pop(former or "", None)
        for name in gone:
            data_loss(
                self._options,
                f"the store of broker {name}, which this query has read, no longer exists",
            )
        known = {name: position for name, position in before.items() if name in self._readers}
        after |= self._advanced(known, limit)
        return start if after == before else write_positions(after)

    def _advanced(self, known: Positions, limit: ReadLimit) -> Positions:
        """Return the ends of stores with something new; a limit is shared among these."""
        if not isinstance(limit, ReadMaxRows) or limit.max_rows >= MOST:
            return {
                name: self._readers[name].latestOffset(position, limit)
                for name, position in known.items()
            }
        names = [
            name
            for name, position in known.items()
            if self._readers[name].latestOffset(position, ReadAllAvailable()) != position
        ]
        if not names:
            return {}
        # If the limit is below the number of stores, they take turns.
        self._turn = (self._turn + 1) % len(names)
        names = names[self._turn :] + names[: self._turn]
        share, rest = divmod(limit.max_rows, len(names))
        most = {name: share + (number < rest) for number, name in enumerate(names)}
        return {
            name: self._readers[name].latestOffset(known[name], ReadMaxRows(rows))
            for name, rows in most.items()
            if rows
        }

    def _former_name(self, name: str, gone: Positions) -> str | None:
        """Return the name under which this query has read a store, if its broker was renamed."""
        with open_store(self._reader(name).options.location) as store:
            for former, written in gone.items():
                position = Position.read(written)
                mark = position.fingerprint
                if mark is not None and fingerprint(store.log, position.physical_offset) == mark:
                    log.warning("broker %s: its name is %s now", former, name)
                    return former
        return None

    def _first(self, name: str) -> dict[str, Any]:
        """Return where a store that was found later is read from: its first message."""
        options = self._reader(name).options
        log.info("broker %s: found the store %s", name, options.path)
        with open_store(options.location) as store:
            return Position(store.log.min_offset).write()

    def _find(self) -> None:
        """Find the stores; a query over a fixed list does so once."""
        if self._readers and (self._is_fixed or not self._has_pattern):
            return
        found: Stores = find_stores(self._given, streaming=True)
        self._has_pattern = found.has_pattern
        if found.options.keys() - self._readers.keys():
            check_distinct(found.options.values())
        self._readers = {
            name: self._readers.get(name) or StreamReader(options, self._schema)
            for name, options in found.options.items()
        }

    def _reader(self, name: str) -> StreamReader:
        if name not in self._readers:
            self._find()
        return self._readers[name]

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the logs' ends, for the progress of the query."""
        ends = {name: reader.reportLatestOffset() for name, reader in self._readers.items()}
        known = {name: end for name, end in ends.items() if end is not None}
        return write_positions(known) if known else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the tasks of a microbatch, the same ones whenever it is planned."""
        before, after = read_positions(start), read_positions(end)
        moved = [name for name in after if name in before and before[name] != after[name]]
        if moved and not self._readers:
            self._find()
        tasks: list[InputPartition] = []
        for name in moved:
            if name in self._readers:
                tasks += self._readers[name].partitions(before[name], after[name])
            else:
                data_loss(
                    self._options,
                    f"the store of broker {name}, whose messages are in this micro-batch, no "
                    "longer exists",
                )
        return tasks

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.spark.source.read import read

        return read(partition.value, arrow_schema(self._schema))
