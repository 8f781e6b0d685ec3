"""Open a store by its place: a directory, a URL, an archive, or a directory and its archive."""

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
    """Return a directory; one of this machine is mapped, others are read through pyarrow.

    Args:
        settings: how to reach a URL, as `object_stores.filesystem_of` takes it.

    Raises:
        StoreError: a URL that pyarrow cannot open.
    """
    if place.startswith("file:"):
        return LocalDirectory(unquote(urlsplit(place).path))
    if "://" in place:
        from mqlake.storage.arrow_fs import open_url

        return open_url(place, settings)
    return LocalDirectory(place)


def open_place(
    place: str, archive: str | None = None, settings: Mapping[str, str] | None = None
) -> Directory:
    """Return a store's directory, of which the archive may have a part, or all.

    Args:
        place: of the store, or of an archive.
        archive: of the archive of the store at `place`.

    Raises:
        StoreError: there is no archive, or it is that of another store.
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
            f"{shown}: no {archive_manifest.NAME} in it, so it is no archive; "
            f"mqlake archive {shown_url(place)} --to {shown} makes one"
        )
    check_same_log(directory, manifest, shown)
    return JoinedDirectory(directory, ArchivedDirectory(objects, manifest))
