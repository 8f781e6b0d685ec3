"""Open a store by its location: a directory, a URL, an archive, or a directory and its archive."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from mqlake.errors import StoreError
from mqlake.formats import archive_manifest
from mqlake.storage.local import LocalDirectory
from mqlake.storage.protocol import Directory
from mqlake.storage.shown_url import shown_url
from mqlake.store.archive.archived import ArchivedDirectory, read_manifest
from mqlake.store.archive.joined import JoinedDirectory, check_same_log


def open_directory(place: str, settings: Mapping[str, str] | None = None) -> Directory:
    """Return a directory; a local one is mapped, others are read through pyarrow.

    Args:
        settings: how to reach a URL, as for `object_stores.filesystem_of`.

    Raises:
        StoreError: pyarrow cannot open the URL.
    """
    if place.startswith("file:"):
        return LocalDirectory(unquote(urlsplit(place).path))
    if "://" in place:
        from mqlake.storage.remote.arrow_fs import open_url

        return open_url(place, settings)
    return LocalDirectory(place)


def open_place(
    place: str, archive: str | None = None, settings: Mapping[str, str] | None = None
) -> Directory:
    """Return a store's directory, of which the archive may supply a part, or all.

    Args:
        place: the location of the store, or of an archive.
        archive: the location of the archive of the store at `place`.

    Raises:
        StoreError: there is no archive, or it belongs to another store.
    """
    directory = open_directory(place, settings)
    if archive is None:
        if directory.exists(archive_manifest.NAME):
            return ArchivedDirectory(directory)
        return directory
    objects = open_directory(archive, settings)
    manifest, shown = read_manifest(objects), shown_url(archive)
    if manifest is None:
        raise StoreError(
            f"{shown}: there is no {archive_manifest.NAME} in it, so it is not an archive; "
            f"create one with mqlake archive {shown_url(place)} --to {shown}"
        )
    check_same_log(directory, manifest, shown)
    return JoinedDirectory(directory, ArchivedDirectory(objects, manifest))
