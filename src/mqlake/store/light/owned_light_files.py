"""The files of light queues of a store that this process writes: which exist, and their removal."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Callable, Iterator

from mqlake.errors import DiskError, FormatError
from mqlake.formats.file_name import check_topic_name, parse_segment_name
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import LightHeader
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.light.light_directory import DIRECTORY, found_seed, light_path
from mqlake.store.light.light_file import LightFile
from mqlake.store.light.open_lights import OpenLights
from mqlake.store.light.unsynced_lights import UnsyncedLights
from mqlake.store.log.pending_sync import PendingSync

COMPLETE = f"{DIRECTORY}/complete"
"""Exists once all records before the checkpoint have their entries."""


class OwnedLightFiles:
    """One file for each topic and segment of the log with records in light queues.

    Args:
        segment_size: bytes of a segment of the log.
        make_seed: returns the seed of the name hashes of a store that has none yet.
    """

    def __init__(
        self, directory: OwnedDirectory, segment_size: int, make_seed: Callable[[], int] | None
    ) -> None:
        self._directory, self.segment_size = directory, segment_size
        self._make_seed = make_seed or (lambda: secrets.randbits(64))
        self._seed: int | None = None
        self._bases: dict[str, list[int]] = {}
        self._open = OpenLights(directory, light_queue_file.capacity_of(segment_size))
        self._unsynced = UnsyncedLights(directory)
        self._ended: set[tuple[str, int]] = set()

    @property
    def seed(self) -> int:
        """The seed of the hashes of names."""
        if self._seed is None:
            self._seed = self._make_seed()
        return self._seed

    def topics(self) -> list[str]:
        """Return the topics that have files, sorted."""
        return sorted(self._bases)

    def bases(self, topic: str) -> list[int]:
        """Return the bases of a topic's files, ascending; do not change them."""
        return self._bases.get(topic, [])

    def base_of(self, physical_offset: int) -> int:
        """Return the base of the segment in which a record is."""
        return physical_offset // self.segment_size * self.segment_size

    def file(self, topic: str, base: int) -> LightFile:
        """Return a file that exists."""
        return self._open.file(topic, base)

    def files(self, topic: str) -> Iterator[LightFile]:
        """Yield a topic's files, newest first."""
        for base in reversed(self.bases(topic)):
            yield self._open.file(topic, base)

    def changed(self, topic: str, file: LightFile) -> None:
        """Note that a file was changed."""
        self._unsynced.changed(topic, file)

    def create(self, topic: str, base: int) -> LightFile:
        """Create a topic's next file.

        Raises:
            DiskError: there is no room on the disk.
        """
        check_topic_name(topic)
        for path in (DIRECTORY, f"{DIRECTORY}/{topic}"):
            if not self._directory.is_directory(path):
                self._directory.make_directory(path)
                self._unsynced.renamed(path.rpartition("/")[0])
        size = light_queue_file.file_size(self.segment_size)
        file = self._directory.create(light_path(topic, base), size)
        self._ended.discard((topic, base))
        slots = light_queue_file.slots_of(self.segment_size)
        made = self._open.add(topic, file, LightHeader(base, self.seed, slots, 1, 0))
        made.begin()
        self._bases.setdefault(topic, []).append(base)
        self._unsynced.changed(topic, made)
        self._unsynced.renamed(f"{DIRECTORY}/{topic}")
        return made

    # Remove

    def remove(self, topic: str, base: int) -> None:
        """Remove a file.

        Raises:
            DiskError: the system refused it.
        """
        self._directory.remove(light_path(topic, base))
        self._forget(topic, base)
        self._unsynced.renamed(f"{DIRECTORY}/{topic}")

    def _forget(self, topic: str, base: int) -> None:
        self._open.forget(topic, base)
        self._unsynced.forget(topic, base)
        bases = self._bases[topic]
        bases.remove(base)
        if not bases:
            del self._bases[topic]

    def end(self, topic: str, before: int) -> None:
        """Forget a topic's files without records from a physical offset on; `bury` removes them."""
        for base in list(self.bases(topic)):
            if self._open.file(topic, base).last_physical < before:
                self._forget(topic, base)
                self._ended.add((topic, base))

    def bury(self) -> None:
        """Remove the files that `end` forgot.

        Raises:
            DiskError: the system refused it; the same call completes it.
        """
        for topic, base in sorted(self._ended):
            self._directory.remove(light_path(topic, base))
            self._ended.discard((topic, base))
            self._unsynced.renamed(f"{DIRECTORY}/{topic}")
            if topic not in self._bases and not any(name == topic for name, _ in self._ended):
                self._remove_directory(topic)

    def _remove_directory(self, topic: str) -> None:
        try:
            self._directory.remove_directory(f"{DIRECTORY}/{topic}")
        except DiskError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        self._unsynced.forget_names(f"{DIRECTORY}/{topic}")
        self._unsynced.renamed(DIRECTORY)

    def remove_all(self) -> None:
        """Remove all files: their entries are derived from the log again, or not wanted.

        Raises:
            DiskError: the disk failed.
        """
        directory = self._directory
        if not directory.is_directory(DIRECTORY):
            return
        directory.remove(COMPLETE)
        directory.sync_directory(DIRECTORY)
        self._bases = {}
        self._open.clear()
        self._unsynced.clear()
        for topic in directory.names(DIRECTORY):
            path = f"{DIRECTORY}/{topic}"
            if not directory.is_directory(path):
                continue
            for name in directory.names(path):
                if parse_segment_name(name) is not None:
                    directory.remove(f"{path}/{name}")
            self._unsynced.renamed(path)

    # Recover

    def adopt(self, position: int, first_of: Callable[[str], int], min_physical: int) -> bool:
        """Take over the files of an earlier process; return whether all of them can be read.

        If not, all are removed.

        Args:
            position: physical offset before which all entries are durable; -1 if that is unknown.
            first_of: returns the physical offset before which no record of a topic counts.
            min_physical: physical offset before which the log was removed.

        Raises:
            DiskError: the disk failed.
        """
        directory = self._directory
        if position >= 0 and directory.exists(COMPLETE):
            topics = filter(
                lambda topic: directory.is_directory(f"{DIRECTORY}/{topic}"),
                directory.names(DIRECTORY),
            )
            if all(self._adopt(topic, position, first_of(topic), min_physical) for topic in topics):
                return True
        self._seed = found_seed(directory)
        self.remove_all()
        return False

    def _adopt(self, topic: str, position: int, before: int, min_physical: int) -> bool:
        for name in self._directory.names(f"{DIRECTORY}/{topic}"):
            base = parse_segment_name(name)
            if base is None:
                continue
            self._unsynced.renamed(f"{DIRECTORY}/{topic}")
            if base >= position or base + self.segment_size <= min_physical:
                self._directory.remove(light_path(topic, base))
                continue
            self._bases.setdefault(topic, []).append(base)
            try:
                file = self._open.file(topic, base)
            except FormatError:
                return False
            if not self._is_usable(file):
                return False
            if base + self.segment_size > position:
                file.keep_before(position)
                self._unsynced.changed(topic, file)
            if file.last_physical < before or not file.count:
                self.remove(topic, base)
        return True

    def _is_usable(self, file: LightFile) -> bool:
        size = light_queue_file.file_size(self.segment_size)
        slots = light_queue_file.slots_of(self.segment_size)
        self._seed = file.seed if self._seed is None else self._seed
        return (file.file.size, file.header.slots, file.seed) == (size, slots, self._seed)

    def complete(self) -> None:
        """Note that all records so far have their entries, which are durable.

        Raises:
            DiskError: the disk failed.
        """
        self.pending_sync().complete()
        directory = self._directory
        if not directory.exists(COMPLETE):
            if not directory.is_directory(DIRECTORY):
                directory.make_directory(DIRECTORY)
            directory.create(COMPLETE, 0).close()
        directory.sync_directory(DIRECTORY)
        directory.sync_directory("")

    # Sync

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all current entries durable, and the names of their files."""
        return self._unsynced.pending_sync()

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        Raises:
            SyncError: it was removed.
        """
        self._open.check_linked()

    def close(self) -> None:
        """Close all files."""
        self._open.close()
        self._unsynced.clear()
