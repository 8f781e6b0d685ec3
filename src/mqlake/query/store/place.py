"""Open the store of the option `path`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from mqlake.errors import StoreError
from mqlake.query.reading.directory import Location, open_location
from mqlake.storage.protocol import Directory
from mqlake.storage.shown_url import shown_url
from mqlake.store.log.nearby_store import why_no_store
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.snapshot import Snapshot, is_store


class OpenStore(NamedTuple):
    """A store directory, opened for reading."""

    directory: Directory
    log: CommitLog
    snapshot: Snapshot


@contextmanager
def open_store(location: Location | str) -> Generator[OpenStore]:
    """Open the store of a query, in the driver.

    Raises:
        StoreError: the path is not a store.
    """
    directory = open_location(location)
    if not is_store(directory):
        path = location if isinstance(location, str) else location.path
        raise StoreError(f"{shown_url(path)}: {why_no_store(path)}")
    log = open_log(directory)
    try:
        yield OpenStore(directory, log, Snapshot(directory, log, None))
    finally:
        log.close()
