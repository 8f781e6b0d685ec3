"""The files of a store directory: segments and their ages, index files, the checkpoint.

Only names, sizes, headers and the first record of each segment are read, so it takes little time
whatever the store's size is, and a broker may run on the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats import abort_file, checkpoint
from mqlake.formats.checkpoint import SIZE, Checkpoint, ResumePoint
from mqlake.formats.file_name import is_index_name
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.config.named_broker import named_broker
from mqlake.store.index.index_files import DIRECTORY as INDEX
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log import cut_off
from mqlake.store.log.scan import head_at
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.recovery.recovery_note import ENDS, RecoveryNote, last_recovery
from mqlake.store.report import CheckpointReport, CutOffReport
from mqlake.store.snapshot import ABORT_NAME, CHECKPOINT_NAME, is_store

T = TypeVar("T")

MOST_FILES = 2000
"""Files of each kind that a page lists: the oldest and the newest."""


class SegmentFacts(msgspec.Struct, frozen=True, rename="camel"):
    """A segment of the commit log.

    Attributes:
        offset: physical offset of its first byte.
        modified: when it was last written (ms); retention compares this time.
        first_stored: store time of its first record (ms); None if it has no good one.
    """

    path: str
    offset: int
    length: int = msgspec.field(name="bytes")
    modified: int
    first_stored: int | None


class IndexFacts(msgspec.Struct, frozen=True, rename="camel"):
    """An index file.

    Attributes:
        entries, most_entries: how many it has, and how many it has room for.
        begin, end: physical offsets of its first and its last record.
        first_stored, last_stored: their store times (ms).
        problem: why it is not used; None if it is.
    """

    path: str
    length: int = msgspec.field(name="bytes")
    modified: int
    entries: int = 0
    most_entries: int = 0
    begin: int = 0
    end: int = 0
    first_stored: int = 0
    last_stored: int = 0
    problem: str | None = None


class StoreFacts(msgspec.Struct, frozen=True, rename="camel"):
    """A store directory.

    Attributes:
        broker: the name of its broker, if its settings have it.
        owner: process that has the store open; None without one, 0 or less if unknown.
        stopped_cleanly: None while a broker has the store open.
        abort_process: process id in the abort file; None without the file.
        log_end: physical offset after the last segment: the log ends at or before it.
        segment_count, index_count: all of them, also those that are not listed.
        not_indexed: bytes of the log before the last index file's end that no index file covers;
            a query by key scans them.
        checkpoint: None if it is missing or cannot be read.
        resume: physical offset from which mqlake reads the log when it opens the store; None if
            the checkpoint does not tell.
        cut_off: what recoveries cut off the log and kept.
        recovery: what the last start found and repaired, if it was mqlake's broker.
        disk_total, disk_free: bytes of the disk.
    """

    path: str
    broker: str | None
    owner: int | None
    stopped_cleanly: bool | None
    abort_process: int | None
    log_start: int
    log_end: int
    segment_count: int
    segments: list[SegmentFacts]
    index_count: int
    index: list[IndexFacts]
    not_indexed: int
    checkpoint: CheckpointReport | None
    resume: int | None
    cut_off: list[CutOffReport]
    recovery: RecoveryNote | None
    disk_total: int
    disk_free: int

    @property
    def is_crashed(self) -> bool:
        """Whether the last broker did not stop cleanly, and none runs now."""
        return self.stopped_cleanly is False

    @property
    def recovered_end(self) -> str:
        """What the last start found at the log's end; empty if it is not known."""
        end = self.recovery.end if self.recovery is not None else ""
        return ENDS.get(end, f"a record that is torn or damaged ({end})" if end else "")

    @property
    def damaged_index(self) -> list[IndexFacts]:
        """The index files that are not used."""
        return [file for file in self.index if file.problem is not None]


def store_facts(path: Path) -> StoreFacts:
    """Return what the files of a store directory show.

    Raises:
        StoreError: the directory is not a store, or cannot be read.
    """
    directory = LocalOwnedDirectory(path)
    if not directory.is_directory("") or not is_store(directory):
        raise StoreError(f"{path}: this directory is not a store: it has no commitlog/")
    log = open_log(directory)
    try:
        return _facts(directory, log)
    finally:
        log.close()


def _facts(directory: OwnedDirectory, log: CommitLog) -> StoreFacts:
    owner = _owner(directory)
    has_abort_file = directory.exists(ABORT_NAME)
    known, resume = _checkpoint(directory)
    files = IndexFiles.open(directory)
    usage = directory.usage()
    index_end = files.files[-1].covered_end if files.files else log.min_offset
    names = [name for name in directory.names(INDEX) if is_index_name(name)]
    return StoreFacts(
        path=directory.describe(),
        broker=named_broker(directory),
        owner=owner,
        stopped_cleanly=None if owner is not None else not has_abort_file,
        abort_process=_abort_process(directory) if has_abort_file else None,
        log_start=log.min_offset,
        log_end=log.limit,
        segment_count=len(log.segments),
        segments=list(_segments(directory, log)),
        index_count=len(names),
        index=list(_index(directory, files, _listed(names))),
        not_indexed=sum(
            stop - start
            for start, stop in files.gaps(log, log.min_offset, index_end)
            if _is_worth_telling(log, start, stop)
        ),
        checkpoint=known and CheckpointReport(*known),
        resume=resume and resume.position,
        cut_off=cut_off.report(directory),
        recovery=last_recovery(directory),
        disk_total=usage.total,
        disk_free=usage.free,
    )


def _owner(directory: OwnedDirectory) -> int | None:
    try:
        return directory.lock_holder(LOCK_NAME)
    except StoreError:
        return None


def _abort_process(directory: OwnedDirectory) -> int | None:
    data = read_file(directory, ABORT_NAME, SIZE)
    return None if data is None else abort_file.decode(data)


def _checkpoint(directory: OwnedDirectory) -> tuple[Checkpoint | None, ResumePoint | None]:
    data = read_file(directory, CHECKPOINT_NAME, SIZE)
    if data is None:
        return None, None
    try:
        return checkpoint.decode(data), checkpoint.decode_resume(data)
    except FormatError:
        return None, None


def _segments(directory: OwnedDirectory, log: CommitLog) -> Iterator[SegmentFacts]:
    for segment in _listed(log.segments):
        head = head_at(log, segment.base)
        yield SegmentFacts(
            segment.path,
            segment.base,
            segment.end - segment.base,
            directory.modified(segment.path),
            head.store_timestamp if head is not None else None,
        )


def _index(directory: OwnedDirectory, files: IndexFiles, names: list[str]) -> Iterator[IndexFacts]:
    usable = {file.name: file for file in files.files}
    problems = {found.file: found.reason for found in files.damage}
    for name in names:
        path = f"{INDEX}/{name}"
        size, modified = directory.size(path), directory.modified(path)
        if (file := usable.get(name)) is None:
            yield IndexFacts(path, size, modified, problem=problems.get(path))
            continue
        header = file.header
        yield IndexFacts(
            path,
            size,
            modified,
            entries=header.index_count - 1,
            most_entries=file.sizes.max_entries - 1,
            begin=header.begin_physical_offset,
            end=header.end_physical_offset,
            first_stored=header.begin_timestamp,
            last_stored=header.end_timestamp,
        )


def _is_worth_telling(log: CommitLog, start: int, stop: int) -> bool:
    """Return whether a stretch is more than the one record that two index files share."""
    head = head_at(log, start)
    return head is None or start + head.size < stop


def _listed(files: Sequence[T]) -> list[T]:
    """Return the files that a page lists."""
    if len(files) <= MOST_FILES:
        return list(files)
    half = MOST_FILES // 2
    return [*files[:half], *files[-half:]]
