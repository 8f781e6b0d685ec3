"""Verify the files of light queues: they are derived from the log again, and compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.damage import Damage
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import (
    ENTRY,
    ENTRY_SIZE,
    HEADER_SIZE,
    LightEntry,
    LightHeader,
)
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.incarnations.table import Incarnations, find_incarnations
from mqlake.store.light.light_directory import found_seed, light_files, light_path
from mqlake.store.light.light_file import LightFile
from mqlake.store.light.light_queues import LOOKED_AT, LightQueues
from mqlake.store.light.owned_light_files import COMPLETE
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.log.steps import LogSteps
from mqlake.store.recovery.checkpoint_file import find_checkpoint
from mqlake.store.recovery.log_walk import LogWalk

_MOST_EXAMPLES = 100
_NOT_COMPARED = "the files of light queues were not compared: "


class LightFilesJob(msgspec.Struct, frozen=True):
    """The input of the task.

    Attributes:
        store: path of the store directory.
        end: physical offset of the end of what is verified.
        is_stopped: whether the store was stopped cleanly.
    """

    store: str
    end: int
    delay_levels: tuple[int, ...]
    is_stopped: bool


class LightFilesCheck(msgspec.Struct, frozen=True):
    """The result.

    Attributes:
        files, entries: how many were compared.
        note: why the files were not compared; "" if they were.
    """

    files: int = 0
    entries: int = 0
    damage: list[Damage] = []
    note: str = ""


DAMAGED_LOG = LightFilesCheck(note=_NOT_COMPARED + "the log is damaged")


@reports_disk_faults
def check_light_files(job: LightFilesJob) -> LightFilesCheck:
    """Compare the files of light queues with what the log says.

    Entries past the checkpoint are not compared: a broker is writing them, or derives them again.
    """
    directory = LocalDirectory(job.store)
    resume, is_complete = find_checkpoint(directory).resume, directory.exists(COMPLETE)
    incarnations = find_incarnations(directory)
    seed = found_seed(directory)
    if resume is None or not is_complete or not incarnations.is_whole or seed is None:
        return LightFilesCheck(note=_NOT_COMPARED + "a broker derives them again when it starts")
    log = open_log(directory)
    try:
        with tempfile.TemporaryDirectory(prefix="mqlake-verify-") as scratch:
            return _LightFilesComparison(
                directory, log, incarnations.table, job, min(job.end, resume.position), seed
            ).run(Path(scratch))
    finally:
        log.close()


class _LightFilesComparison:
    """Compares the files of light queues with derived ones.

    Args:
        end: physical offset before which records have their entries.
        seed: of the hashes of names.
    """

    def __init__(
        self,
        directory: LocalDirectory,
        log: CommitLog,
        incarnations: Incarnations,
        job: LightFilesJob,
        end: int,
        seed: int,
    ) -> None:
        self._directory, self._log, self._incarnations = directory, log, incarnations
        self._job, self._end, self._seed = job, end, seed
        self._damage: list[Damage] = []
        self._files = self._entries = 0

    def run(self, scratch: Path) -> LightFilesCheck:
        log, size = self._log, self._log.segment_size
        assert size is not None
        derived = LightQueues(
            LocalOwnedDirectory(scratch), size, self._incarnations, lambda: self._seed
        )
        derived.trim(log.min_offset)
        steps = LogSteps(log, self._job.delay_levels, index_tags=False, across_gaps=True)
        walk = LogWalk(log, steps, self._incarnations)
        existing = set(light_files(self._directory))
        for segment in log.segments:
            start, stop = max(segment.base, log.min_offset), min(segment.end, self._end)
            for batch in walk.batches_across_faults(start, stop):
                derived.take(batch)
            files = {topic: derived.file(topic, segment.base) for topic in derived.topics()}
            for topic in sorted(topic for topic, base in existing if base == segment.base):
                self._compare(topic, segment.base, files.pop(topic, None))
            for topic, file in files.items():
                if file is not None:
                    self._add(light_path(topic, segment.base), 0, 0, "the file is missing")
            derived.keep_newest(LOOKED_AT)
        derived.close()
        return LightFilesCheck(self._files, self._entries, self._damage)

    def _compare(self, topic: str, base: int, derived: LightFile | None) -> None:
        path = light_path(topic, base)
        file = self._directory.open(path)
        try:
            data = file.view()
            try:
                header = light_queue_file.decode_header(data)
            except FormatError as error:
                self._add(path, 0, HEADER_SIZE, str(error))
                return
            count = 0 if derived is None else derived.count
            first = light_queue_file.entry_at(header.slots, 1)
            if self._has_dead(topic, data, first):
                return  # Recovery removes it, or its dead entries count for nobody.
            self._files += 1
            self._entries += count
            if derived is None:
                self._check_rest(path, data, first)
            elif (header.base, header.seed, header.slots) != derived.header[:3] or len(data) != (
                derived.file.size
            ):
                self._add(path, 0, HEADER_SIZE, "another base, seed, size or number of slots")
            else:
                self._check_entries(path, data, derived, first)
                self._check_slots(path, data, header, derived)
        finally:
            file.close()

    def _has_dead(self, topic: str, data: memoryview, first: int) -> bool:
        """Return whether a file begins with entries of a deleted topic."""
        before = self._incarnations.before(topic)
        return 0 <= _physical_offset(data, first) < before

    def _check_entries(self, path: str, data: memoryview, derived: LightFile, first: int) -> None:
        wanted = derived.file.view()
        end = first + derived.count * ENTRY_SIZE
        if data[first:end] != wanted[first:end]:
            for at in range(first, end, ENTRY_SIZE):
                if data[at : at + ENTRY_SIZE] != wanted[at : at + ENTRY_SIZE]:
                    number = 1 + (at - first) // ENTRY_SIZE
                    reason = f"entry {number} is not that of its record"
                    self._add(path, at, ENTRY_SIZE, reason)
        self._check_rest(path, data, end)

    def _check_rest(self, path: str, data: memoryview, at: int) -> None:
        """Check that no entry follows, or only those of records that are not compared."""
        offset = _physical_offset(data, at)
        if 0 <= offset < self._end or (offset >= 0 and self._job.is_stopped):
            self._add(path, at, ENTRY_SIZE, f"an entry without a record, at {offset}")

    def _check_slots(
        self, path: str, data: memoryview, header: LightHeader, derived: LightFile
    ) -> None:
        """Compare header and slots, unless they may be of later entries or are computed again."""
        assert self._log.segment_size is not None
        is_over = header.base + self._log.segment_size <= self._end
        if not (is_over or self._job.is_stopped):
            return
        end = light_queue_file.entry_at(header.slots, 0)
        wanted = derived.file.view()
        if data[:HEADER_SIZE] != wanted[:HEADER_SIZE]:
            self._add(path, 0, HEADER_SIZE, "the header counts other entries")
        if data[HEADER_SIZE:end] != wanted[HEADER_SIZE:end]:
            self._add(path, HEADER_SIZE, end - HEADER_SIZE, "the slots lead to other entries")

    def _add(self, path: str, offset: int, length: int, reason: str) -> None:
        if len(self._damage) < _MOST_EXAMPLES:
            self._damage.append(Damage(path, offset, length, reason))


def has_light_files(directory: LocalDirectory) -> bool:
    """Return whether a store has files of light queues."""
    return next(light_files(directory), None) is not None


def _physical_offset(data: memoryview, at: int) -> int:
    """Return the physical offset of an entry; -1 if its space is empty or missing."""
    if at + ENTRY_SIZE > len(data):
        return -1
    entry = LightEntry(*ENTRY.unpack_from(data, at))
    return entry.physical_offset if entry.size else -1
