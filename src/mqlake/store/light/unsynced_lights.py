"""What of a store's light queues may not be on the disk yet."""

from __future__ import annotations

from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.light.light_file import LightFile
from mqlake.store.log.pending_sync import PendingSync


class UnsyncedLights:
    """The files of light queues with new entries, and the directories with new names.

    Each has the number of the last sync that had begun when it was changed: a sync covers what was
    changed before it.
    """

    def __init__(self, directory: OwnedDirectory) -> None:
        self._directory = directory
        self._files: dict[tuple[str, int], tuple[LightFile, int]] = {}
        self._names: dict[str, int] = {}
        self._syncs = 0

    def changed(self, topic: str, file: LightFile) -> None:
        """Note that a file was changed."""
        self._files[topic, file.base] = file, self._syncs

    def renamed(self, path: str) -> None:
        """Note that a directory has got or lost names."""
        self._names[path] = self._syncs

    def forget(self, topic: str, base: int) -> None:
        """Forget a file that was removed."""
        self._files.pop((topic, base), None)

    def forget_names(self, path: str) -> None:
        """Forget a directory that was removed."""
        self._names.pop(path, None)

    def clear(self) -> None:
        """Forget all files."""
        self._files.clear()

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all of this durable."""
        files = [file.file for file, _ in self._files.values()]
        names = sorted(self._names, key=lambda path: (-path.count("/"), path == ""))
        self._syncs = number = self._syncs + 1

        def done() -> None:
            self._files = {key: each for key, each in self._files.items() if each[1] >= number}
            self._names = {path: begun for path, begun in self._names.items() if begun >= number}

        return PendingSync(self._directory, files, names, done)
