"""Open what options name: a directory of this machine, the URL of one, a store with its archive."""

from __future__ import annotations

import msgspec

from mqlake.storage.protocol import Directory
from mqlake.storage.shown_url import shown_url
from mqlake.store.archive.opening import open_directory, open_place

__all__ = ["Location", "open_directory", "open_location"]


class Location(msgspec.Struct, frozen=True):
    """Where a store is, and how it is reached.

    Attributes:
        path: a directory, its URL, or an archive.
        archive: of the archive of the store at `path`, if it has one.
        settings: of object stores, as `object_stores.filesystem_of` takes them.
    """

    path: str
    archive: str | None = None
    settings: dict[str, str] = {}

    @property
    def name(self) -> str:
        """What messages call the store: its path, without what may be a secret."""
        return shown_url(self.path)


def open_location(location: Location | str) -> Directory:
    """Return the directory of a store.

    Raises:
        StoreError: it cannot be opened.
    """
    if isinstance(location, str):
        location = Location(location)
    return open_place(location.path, location.archive, location.settings)
