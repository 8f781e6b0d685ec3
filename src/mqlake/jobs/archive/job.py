"""Archive a store: copy what is new since the last run, then name it in the manifest.

Each segment is in the manifest as soon as it is copied. A run that was killed therefore is resumed
by the next one, and readers see a whole archive at any moment.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from mqlake.errors import JobError, StoreError, raise_passing
from mqlake.formats import archive_manifest
from mqlake.formats.archive_manifest import ArchivedFile, ArchivedSegment, Manifest
from mqlake.jobs.archive.copying import copy_file, copy_segment
from mqlake.jobs.archive.derived import derived_files
from mqlake.jobs.archive.first_run import check_new
from mqlake.jobs.archive.orphans import changing_directory, orphans
from mqlake.jobs.archive.restarted import is_queue_file, without_change
from mqlake.jobs.archive.watched import WatchedDirectory
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.source import StoreSource, open_source
from mqlake.storage.clock import SystemClock
from mqlake.storage.durable import TEMPORARY
from mqlake.storage.memory import MemoryFile
from mqlake.storage.object_target import Target
from mqlake.storage.protocol import Directory
from mqlake.store.archive.archived import ArchivedDirectory, read_manifest
from mqlake.store.archive.joined import check_same_log
from mqlake.store.archive.joined_incarnations import TABLE, joined_table
from mqlake.store.log.segments import Segment

Progress = Callable[[str, int, int], None]


class Missing(msgspec.Struct, frozen=True, rename="camel"):
    """A stretch of the log that was deleted before it was archived; physical offsets."""

    start: int
    end: int


class ArchiveReport(msgspec.Struct, frozen=True, rename="camel"):
    """What an archive contains after a run, and what the run copied."""

    store: str
    archive: str
    min_offset: int
    max_offset: int
    segments: int
    records: int
    damaged_bytes: int
    min_store_timestamp: int
    max_store_timestamp: int
    files: int
    bytes_stored: int
    new_segments: int
    new_files: int
    bytes_copied: int
    missing: list[Missing]


@reports_disk_faults
def archive(store: Path, target: Target, progress: Progress | None = None) -> ArchiveReport:
    """Copy the closed segments of a store that its archive lacks, and its derived files.

    Args:
        progress: called with (title, files done, files in all).

    Raises:
        JobError: there is no commit log, or another run writes to the archive.
        StoreError: the archive belongs to another store, its place is a store, or a file cannot be
            read or written.
    """
    with open_source(store) as source:
        run = _ArchiveRun(source, target, progress or _nothing)
        run.copy_segments()
        run.copy_derived()
        run.remove_orphans()
        return run.report()


class _ArchiveRun:
    def __init__(self, source: StoreSource, target: Target, progress: Progress) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._name = target.directory.describe()
        found = read_manifest(target.directory)
        if found is None and not target.directory.exists(archive_manifest.NAME + TEMPORARY):
            check_new(target.directory)
        self.before = found or Manifest()
        self.manifest = self.before
        check_same_log(source.directory, self.before, self._name)
        self._check_order()

    def _check_order(self) -> None:
        """Check that the log does not end before the archive does."""
        log, end = self._source.log, self.before.end
        if log.segments and log.limit < end:
            raise StoreError(
                f"{self._name}: this archive ends at physical offset {end}, but the log of "
                f"{self._source.path} ends at {log.limit}: it is the archive of another store"
            )

    def copy_segments(self) -> None:
        """Copy the closed segments that are not archived; skip those that no longer exist."""
        title, closed = "archive segments", self._closed()
        self._progress(title, 0, len(closed))
        for done, segment in enumerate(closed, start=1):
            directory = self._source.directory
            try:
                copied = copy_segment(directory, segment, self._target)
            except StoreError:
                if directory.exists(segment.path):
                    raise
                continue  # Retention removed it first.
            segments = (*self.manifest.segments, copied)
            self._publish(self.manifest.files, self.manifest.superseded, segments)
            self._progress(title, done, len(closed))

    def _closed(self) -> list[Segment]:
        log_end = self._source.snapshot.end.offset
        return [
            segment
            for segment in self._source.log.segments
            if segment.base >= self.before.end and segment.end <= log_end
        ]

    def copy_derived(self) -> None:
        """Copy the derived files, up to the current end of the archive's log."""
        directory, objects = WatchedDirectory(self._source.directory), self._target.directory
        known = {file.path: file for file in self.manifest.files}
        taken = {file.object for file in self.manifest.files} | {*self.manifest.superseded}
        found = list(derived_files(directory, self.manifest.end)) if self.manifest.segments else []
        changing = changing_directory(self.manifest.generation + 1, uuid.uuid4().hex[:8])
        title = "archive queues and index"
        for done, (path, length, is_final) in enumerate(found, start=1):
            self._progress(title, done, len(found))
            before = known.get(path)
            if before and before.is_final and not is_queue_file(path):
                continue
            name = path if is_final and path not in taken else f"{changing}/{path}"
            try:
                table = self._table(directory) if path == TABLE else None
                file = directory.open(path) if table is None else table
            except StoreError as error:
                raise_passing(error)
                continue  # The file was removed since it was listed.
            if table is not None:
                length = table.size
            try:
                kept = before and before.is_final and without_change(file, before, objects)
                known[path] = kept or copy_file(
                    file, path, length, self._target, before, name, is_final=is_final
                )
            finally:
                file.close()
        directory.check()
        files = _without_replaced(self.manifest.files, known, {path for path, *_ in found})
        self._replace(tuple(files[path] for path in sorted(files)))

    def _table(self, directory: Directory) -> MemoryFile | None:
        """Return the table of incarnations if the archive has records of topics that the store has
        forgotten.
        """
        archived = ArchivedDirectory(self._target.directory, self.manifest)
        content = joined_table(directory, archived)
        return None if content is None else MemoryFile(content)

    def remove_orphans(self) -> None:
        """Remove the objects that failed runs left."""
        for name in list(orphans(self._target.directory, self.manifest)):
            self._target.remove(name)

    def _replace(self, files: tuple[ArchivedFile, ...]) -> None:
        """Publish new derived files; remove those that only the manifest before the last one
        named.

        They are removed first: if that fails, the manifest still names them for the next run.
        """
        # A manifest that was written beside its name is not yet one that others read.
        is_published = self._target.directory.exists(archive_manifest.NAME)
        if files == self.manifest.files and is_published:
            return
        current = {file.object for file in files}
        replaced = {file.object for file in self.manifest.files} - current
        gone = set(self.manifest.superseded) - current - replaced
        self._check_alone()
        for name in sorted(gone):
            self._target.remove(name)
        self._publish(files, tuple(sorted(replaced)), self.manifest.segments)

    def _publish(
        self,
        files: tuple[ArchivedFile, ...],
        superseded: tuple[str, ...],
        segments: tuple[ArchivedSegment, ...],
    ) -> None:
        self._check_alone()
        self.manifest = Manifest(
            generation=self.manifest.generation + 1,
            written=SystemClock().milliseconds(),
            segments=segments,
            files=files,
            superseded=superseded,
        )
        data = archive_manifest.encode(self.manifest)
        self._target.put(archive_manifest.NAME, len(data), [data])
        self._check_alone()

    def _check_alone(self) -> None:
        """Check that the archive has the manifest that this run read or published last."""
        if (read_manifest(self._target.directory) or Manifest()) != self.manifest:
            raise JobError(f"{self._name}: another run writes to this archive; let one of them end")

    def report(self) -> ArchiveReport:
        """Return what the archive contains, and what was copied."""
        manifest, segments = self.manifest, self.manifest.segments
        old = {file.object for file in self.before.all_files}
        new = [file for file in manifest.all_files if file.object not in old]
        with_records = [segment for segment in segments if segment.records]
        return ArchiveReport(
            store=self._source.path,
            archive=self._name,
            min_offset=segments[0].start if segments else 0,
            max_offset=manifest.end,
            segments=len(segments),
            records=sum(segment.records for segment in segments),
            damaged_bytes=sum(segment.damaged for segment in segments),
            min_store_timestamp=min((one.min_store_timestamp for one in with_records), default=0),
            max_store_timestamp=max((one.max_store_timestamp for one in with_records), default=0),
            files=len(manifest.files),
            bytes_stored=sum(file.stored for file in manifest.all_files),
            new_segments=sum(isinstance(file, ArchivedSegment) for file in new),
            new_files=sum(not isinstance(file, ArchivedSegment) for file in new),
            bytes_copied=sum(file.stored for file in new),
            missing=_missing(segments),
        )


def _without_replaced(
    before: tuple[ArchivedFile, ...], known: dict[str, ArchivedFile], present: set[str]
) -> dict[str, ArchivedFile]:
    """Return the files without those of a queue that began again after its topic was deleted.

    Args:
        present: the paths that the store has now.
    """
    restarted = {
        file.path.rpartition("/")[0]
        for file in before
        if file.is_final and known[file.path].object != file.object
    }
    return {
        path: file
        for path, file in known.items()
        if path in present or path.rpartition("/")[0] not in restarted
    }


def _missing(segments: tuple[ArchivedSegment, ...]) -> list[Missing]:
    return [
        Missing(before.end, after.start)
        for before, after in pairwise(segments)
        if before.end < after.start
    ]


def _nothing(title: str, done: int, total: int) -> None:
    pass
