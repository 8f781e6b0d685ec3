"""Where in the log the micro-batches of a checkpoint begin and end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from mqlake.errors import JobError, StoreError
from mqlake.lake.options import StoreQuery
from mqlake.query.store.fingerprint import fingerprint
from mqlake.query.store.options import StoreReadOptions, read_options
from mqlake.query.store.place import open_store
from mqlake.query.store.position import StorePosition
from mqlake.query.store.starting import starting_position
from mqlake.query.store.subscribed import described
from mqlake.query.store.tail import LogTail


class LogPositions:
    """The positions of the batches of one checkpoint.

    Args:
        begin: where the first batch began; None if the checkpoint is older than this note.
    """

    def __init__(self, store: Path, checkpoint: Path, begin: dict[str, Any] | None) -> None:
        self._store, self._checkpoint = store, checkpoint
        self.begin = None if begin is None else StorePosition.read(begin)

    def end_of(self, batch: int) -> StorePosition | None:
        """Return where a batch ended (-1: where the first one begins); None if unknown.

        Raises:
            JobError: Spark's note of the batch is damaged.
        """
        if batch < 0:
            return self.begin
        path = self._checkpoint / "offsets" / str(batch)
        try:
            lines = path.read_text().strip().splitlines()
            return StorePosition.read(json.loads(lines[-1]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, IndexError, StoreError) as error:
            raise JobError(f"{path}: damaged: {error}") from None

    def last_done(self) -> int:
        """Return the newest batch that Spark recorded as done, -1 without one."""
        names = [path.name for path in (self._checkpoint / "commits").glob("[0-9]*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def stretch(self, batch: int) -> tuple[StorePosition, StorePosition] | None:
        """Return where a batch begins and ends; None if unknown.

        Raises:
            StoreError: the log is not the one that earlier batches have read.
        """
        start, end = self.end_of(batch - 1), self.end_of(batch)
        if start is None or end is None:
            return None
        first, last = start.physical_offset, end.physical_offset
        if last < first:
            raise StoreError(
                f"{self._store}: the log ends at {last}, and the query is at {first}: the log has "
                "been cut, or it is another one"
            )
        with open_store(str(self._store)) as store:
            found = fingerprint(store.log, first)
        if start.fingerprint is not None and found not in (None, start.fingerprint):
            raise StoreError(
                f"{self._store}: the log before physical offset {first} is not the one that this "
                "query has read: the store was created again, or its log was cut and written "
                "again; follow it with a new --checkpoint"
            )
        return start, end


def committed_offset(query: StoreQuery) -> int:
    """Return the physical offset before which the log is in the table; 0 if unknown.

    Raises:
        JobError: Spark's note of the newest batch is damaged.
    """
    positions = LogPositions(query.store, query.checkpoint, None)
    end = positions.end_of(positions.last_done())
    return 0 if end is None else end.physical_offset


def read_options_of(query: StoreQuery) -> StoreReadOptions:
    """Return the options with which a query reads its store, tolerating damage."""
    query = msgspec.structs.replace(query, source={**query.source, "failOnDataLoss": "false"})
    return stream_options_of(query)


def stream_options_of(query: StoreQuery) -> StoreReadOptions:
    """Return the options with which a query reads its store."""
    given = {"startingOffsets": "earliest", **query.source, "path": str(query.store)}
    return read_options(given, streaming=True)


def begin_of(query: StoreQuery) -> dict[str, Any]:
    """Return where a new query begins, in the source's format of positions.

    Raises:
        StoreError, FormatError: the errors of the source.
    """
    options = stream_options_of(query)
    with LogTail(options.location).look() as (store, end):
        found = starting_position(store, end, options)
        first = found.physical_offset
        position = found.at(first, fingerprint(store.log, first), described(options))
    return msgspec.to_builtins(position.write())
