"""A directory that remembers which of its files could not be read."""

from __future__ import annotations

from mqlake.errors import StoreError
from mqlake.storage.protocol import Directory, ReadableFile


class WatchedDirectory:
    """A directory, and the first error of a file that still exists.

    Readers of a live store continue without a file that they cannot open: it was removed since it
    was listed. An archive that left out a file which exists would publish it as removed.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._error: StoreError | None = None

    def check(self) -> None:
        """Raise the first error of a file that still exists.

        Raises:
            StoreError: a file could not be read.
        """
        if self._error is not None:
            raise self._error

    def describe(self, path: str = "") -> str:
        return self._directory.describe(path)

    def names(self, path: str) -> list[str]:
        return self._directory.names(path)

    def is_directory(self, path: str) -> bool:
        return self._directory.is_directory(path)

    def exists(self, path: str) -> bool:
        return self._directory.exists(path)

    def size(self, path: str) -> int:
        try:
            return self._directory.size(path)
        except StoreError as error:
            self._note(path, error)
            raise

    def open(self, path: str) -> ReadableFile:
        try:
            return self._directory.open(path)
        except StoreError as error:
            self._note(path, error)
            raise

    def lock_holder(self, path: str) -> int | None:
        return self._directory.lock_holder(path)

    def _note(self, path: str, error: StoreError) -> None:
        if self._error is None and self._directory.exists(path):
            self._error = error
