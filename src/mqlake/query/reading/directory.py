"""Open the store of a query: a local directory, a URL, or a store with its archive."""

from __future__ import annotations

import msgspec

from mqlake.storage.protocol import Directory
from mqlake.storage.shown_url import shown_url
from mqlake.store.archive.opening import open_directory, open_place

__all__ = ["Location", "open_directory", "open_location"]


class Location(msgspec.Struct, frozen=True):
    """The location of a store, and how it is reached.

    Attributes:
        path: a directory, its URL, or an archive.
        archive: the location of the archive of the store at `path`, if it has one.
        settings: settings of object stores, as for `object_stores.filesystem_of`.
    """

    path: str
    archive: str | None = None
    settings: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The name of the store in messages: its path, without secrets."""
        return shown_url(self.path)


def open_location(location: Location | str) -> Directory:
    """Return the directory of a store.

    Raises:
        StoreError: the directory cannot be opened.
    """
    if isinstance(location, str):
        location = Location(location)
    return open_place(location.path, location.archive, location.settings)
