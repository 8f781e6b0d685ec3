"""Open what option `path` names: a directory of this machine, or the URL of one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from mqlake.errors import StoreError
from mqlake.storage.local import LocalDirectory
from mqlake.storage.protocol import Directory
from mqlake.store.log import segments
from mqlake.store.log.segments import CommitLog
from mqlake.store.snapshot import Snapshot


class OpenStore(NamedTuple):
    """A store directory, opened for reading."""

    directory: Directory
    log: CommitLog
    snapshot: Snapshot


def open_directory(path: str) -> Directory:
    """Return the directory; one of this machine is mapped, others are read through pyarrow.

    Raises:
        StoreError: a URL that pyarrow cannot open.
    """
    if path.startswith("file:"):
        return LocalDirectory(unquote(urlsplit(path).path))
    if "://" in path:
        from mqlake.storage.arrow_fs import open_url

        return open_url(path)
    return LocalDirectory(path)


@contextmanager
def open_store(path: str) -> Generator[OpenStore]:
    """Open the store of a query, in the driver.

    Raises:
        StoreError: there is no store.
    """
    directory = open_directory(path)
    if not directory.is_directory(segments.DIRECTORY):
        raise StoreError(
            f"{path}: no {segments.DIRECTORY}/ in it; path is the store directory itself, and all "
            "hosts of the cluster see it"
        )
    log = CommitLog(directory)
    try:
        yield OpenStore(directory, log, Snapshot(directory, log, None))
    finally:
        log.close()
