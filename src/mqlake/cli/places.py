"""Open the store that an argument names: a directory, a URL, an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.cli.options import settings_given

if TYPE_CHECKING:
    from mqlake.storage.protocol import Directory


def open_place(place: str, archive: str | None, override: list[str] | None) -> Directory:
    """Return the directory of a store, and of its archive if one is given.

    Raises:
        UsageError: a setting is not NAME=VALUE.
        FormatError: a setting does not exist.
        StoreError: the store cannot be opened.
    """
    from mqlake.storage.remote.object_stores import check_settings
    from mqlake.store.archive import opening

    return opening.open_place(place, archive, check_settings(settings_given(override)))
