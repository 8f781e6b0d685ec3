"""Find what of the index is on the disk for sure; the rest comes from the log.

RocketMQ deletes the files that may be incomplete (`IndexService.load`), and their keys of log files
before the start of recovery with them. Here the entries that are known to be whole stay, and those
behind them are inserted again from the log (docs/live-store.md, "Recovery").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqlake.formats import index_file
from mqlake.formats.checkpoint import Checkpoint, ResumePoint
from mqlake.formats.file_name import parse_index_name
from mqlake.formats.index_file import ENTRY_SIZE, IndexHeader
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.index.index_files import DIRECTORY, IndexFile, open_index_file
from mqlake.store.index.index_sizes import Sizes
from mqlake.store.index.owned_index import NOT_INDEXED, OwnedIndex
from mqlake.store.index.owned_index_file import OwnedIndexFile

_NONE = IndexHeader(0, 0, 0, 0, 0, 1)


class IndexStart(NamedTuple):
    """Where the index goes on.

    Attributes:
        first: physical offset of the first record whose keys are to be inserted.
        skip: so many of its keys are in the index.
    """

    first: int
    skip: int = 0


class IndexRecovery:
    """Bring an index into a state that is known to be true.

    Args:
        min_offset: physical offset of the first record that is still there.
    """

    def __init__(self, directory: OwnedDirectory, index: OwnedIndex, min_offset: int) -> None:
        self._directory, self._index, self._min_offset = directory, index, min_offset
        names = directory.names(DIRECTORY)
        self._names = [name for name in names if parse_index_name(name) is not None]
        self._lacks_files = False

    def resume(self, point: ResumePoint, full_until: int) -> IndexStart | None:
        """Let the index be as it was at mqlake's checkpoint; None where that is not to be had.

        Args:
            full_until: end timestamp of the last full file then, milliseconds.
        """
        if point.index_slots == NOT_INDEXED:
            return None
        name = f"{point.index_name:017d}" if point.index_name else ""
        header, last = point.index_header, None
        before = [other for other in self._names if other < name or not name]
        old = [file for other in before if (file := self._read(other))]
        self._lacks_files = self._are_gone(point, before, old)
        if self._lacks_files:
            return None
        if name in self._names:
            last = self._open(name, point.index_slots)
            if last is None or not last.restore(header):
                return None
        elif header.index_count > 1 and header.end_physical_offset >= self._min_offset:
            return None
        self._remove_behind(name)
        if not name:
            before, old = [], []
        self._index.adopt(before, old, last, header, full_until)
        return IndexStart(point.position)

    def _are_gone(self, point: ResumePoint, names: list[str], old: list[IndexFile]) -> bool:
        """Say whether files before the last one are gone that were there at the checkpoint.

        Retention may have removed the first ones since: those that end before the log starts.

        Args:
            names: of the files that are there.
            old: those of them that can be read.
        """
        if len(names) >= point.index_files - (point.index_name > 0):
            return False
        first = int(names[0]) if names else point.index_name
        begin = (old[0].header if old else point.index_header).begin_physical_offset
        # One that ends with the log's first record is still needed.
        return first == point.index_first or begin >= self._min_offset

    def start_anew(
        self, found: Checkpoint, distrust: Callable[[int, int], None], *, is_clean: bool
    ) -> IndexStart:
        """Keep the files that RocketMQ's checkpoint vouches for; after a clean stop, all of them.

        Those after them are made again: each of their keys is in the log, or of no record.

        Args:
            distrust: `CheckpointFile.distrust_index`, called before the first file goes. A power
                cut from then on may leave any of them, and new ones that are full, and end when
                others did that the checkpoint vouches for, but lack entries.

        Raises:
            DiskError: the disk failed.
        """
        kept = [] if self._lacks_files else self._believed(found, is_clean=is_clean)
        last = self._reopen(kept)
        files = [*kept, last.as_read()] if last else kept
        header = files[-1].header if files else _NONE
        start = IndexStart(self._min_offset)
        if files and header.end_physical_offset >= self._min_offset:
            start = IndexStart(header.end_physical_offset, _entries_of_last_record(files))
        until = kept[-1].header.end_timestamp if kept else 0
        distrust(until, start.first)
        self._remove_behind(files[-1].name if files else "")
        self._index.adopt([file.name for file in kept], kept, last, header, until)
        return start

    def _believed(self, found: Checkpoint, *, is_clean: bool) -> list[IndexFile]:
        """Return the files from the first on that can be read, and are whole."""
        believed: list[IndexFile] = []
        for name in self._names:
            file = self._read(name)
            if file is None or not (is_clean or file.is_vouched_for(found.index_msg_timestamp)):
                break
            believed.append(file)
        return believed

    def _reopen(self, kept: list[IndexFile]) -> OwnedIndexFile | None:
        """Take the last of the files that are kept, if there is room in it, to go on with it."""
        if not kept or kept[-1].header.index_count >= kept[-1].sizes.max_entries:
            return None
        newest = kept.pop()
        last = self._open(newest.name, newest.sizes.slots)
        return last if last is not None and last.restore(newest.header) else None

    def _read(self, name: str) -> IndexFile | None:
        path = f"{DIRECTORY}/{name}"
        if not self._directory.is_directory(path):
            # One that cannot be opened now is not damaged: this raises.
            self._directory.open(path).close()
        file = open_index_file(self._directory, name)
        return file if isinstance(file, IndexFile) else None

    def _open(self, name: str, slots: int) -> OwnedIndexFile | None:
        """Return a file to be written, None where its size is not that of an index file."""
        file = self._directory.open_writable(f"{DIRECTORY}/{name}")
        entries, odd = divmod(file.size - index_file.entry_at(slots, 0), ENTRY_SIZE)
        if slots < 1 or entries < 2 or odd:
            file.close()
            return None
        return OwnedIndexFile(name, file, Sizes(slots, entries, is_proven=True), _NONE)

    def _remove_behind(self, name: str) -> None:
        for other in self._names:
            if other > name:
                self._directory.remove(f"{DIRECTORY}/{other}")


def _entries_of_last_record(files: list[IndexFile]) -> int:
    """Return how many of the last record's keys are in the files, whose ends may part them."""
    offset, count = files[-1].header.end_physical_offset, 0
    for file in reversed(files):
        for number in range(file.header.index_count - 1, 0, -1):
            entry = index_file.decode_entry(file.view, file.sizes.slots, number)
            if entry.physical_offset != offset:
                return count
            count += 1
    return count
