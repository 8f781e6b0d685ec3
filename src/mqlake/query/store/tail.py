"""Follow the end of a log that a broker writes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mqlake.formats.record import Fault
from mqlake.query.reading.directory import Location
from mqlake.query.store.place import OpenStore, open_store
from mqlake.store.log.end import find_end

_NOTHING_YET = (Fault.UNWRITTEN, Fault.SHORT, Fault.BLANK)


class LogTail:
    """The end of a store's log, searched from where it was last seen."""

    def __init__(self, location: Location | str) -> None:
        self._location = location
        self.known: int | None = None
        """Physical offset of the end at the last search."""

    @contextmanager
    def look(self) -> Generator[tuple[OpenStore, int]]:
        """Open the store in its current state; return it, and where its log ends."""
        with open_store(self._location) as store:
            self.known = self._end(store)
            yield store, self.known

    def _end(self, store: OpenStore) -> int:
        """Walk over new records. Anything else there means that more has changed."""
        if self.known is not None and store.log.min_offset <= self.known <= store.log.limit:
            end = find_end(store.log, self.known)
            if end.fault in _NOTHING_YET:
                return end.offset
        return store.snapshot.end.offset
