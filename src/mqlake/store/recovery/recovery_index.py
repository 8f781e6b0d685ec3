"""Find what of the index is on the disk for sure; the rest comes from the log.

RocketMQ deletes the files that may be incomplete (`IndexService.load`), and their keys of log files
before the start of recovery with them. Here the entries that are known to be whole stay, and those
behind them are inserted again from the log (docs/live-store.md, "Recovery").
"""

from __future__ import annotations

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

    Attributes:
        kept_until: once it starts anew, the end timestamp of the last file that gets no more
            entries, milliseconds; 0 for none.
    """

    def __init__(self, directory: OwnedDirectory, index: OwnedIndex, min_offset: int) -> None:
        self._directory, self._index, self._min_offset = directory, index, min_offset
        names = directory.names(DIRECTORY)
        self._names = [name for name in names if parse_index_name(name) is not None]
        self.kept_until = 0

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
        if self._lacks_files(point, before, old):
            self._remove_from("", and_itself=True)
            return None
        if name in self._names:
            last = self._open(name, point.index_slots)
            if last is None or not last.restore(header):
                return None
        elif header.index_count > 1 and header.end_physical_offset >= self._min_offset:
            return None
        self._remove_from(name, and_itself=False)
        if not name:
            before, old = [], []
        self._index.adopt(before, old, last, header, full_until)
        return IndexStart(point.position)

    def _lacks_files(self, point: ResumePoint, names: list[str], old: list[IndexFile]) -> bool:
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
        return first == point.index_first or begin > self._min_offset

    def start_anew(self, found: Checkpoint, *, is_clean: bool) -> IndexStart:
        """Keep the files that RocketMQ's checkpoint vouches for; after a clean stop, all of them.

        Those after them are made again: each of their keys is in the log, or of no record.
        """
        kept: list[IndexFile] = []
        for name in self._names:
            file = self._read(name)
            if file is None or not (is_clean or file.is_vouched_for(found.index_msg_timestamp)):
                self._remove_from(name, and_itself=True)
                break
            kept.append(file)
        last = self._reopen(kept)
        self.kept_until = kept[-1].header.end_timestamp if kept else 0
        newest = last.as_read() if last else kept[-1] if kept else None
        header = newest.header if newest else _NONE
        names = [file.name for file in kept]
        self._index.adopt(names, kept, last, header, found.index_msg_timestamp)
        if newest is None or header.end_physical_offset < self._min_offset:
            return IndexStart(self._min_offset)
        return IndexStart(header.end_physical_offset, _entries_of_last_record(newest))

    def _reopen(self, kept: list[IndexFile]) -> OwnedIndexFile | None:
        """Take the last of the files that are kept, if there is room in it, to go on with it."""
        if not kept or kept[-1].header.index_count >= kept[-1].sizes.max_entries:
            return None
        newest = kept.pop()
        last = self._open(newest.name, newest.sizes.slots)
        if last is not None and last.restore(newest.header):
            return last
        self._remove_from(newest.name, and_itself=True)
        return None

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

    def _remove_from(self, name: str, *, and_itself: bool) -> None:
        for other in self._names:
            if other > name or (and_itself and other == name):
                self._directory.remove(f"{DIRECTORY}/{other}")
        self._names = [other for other in self._names if other < name]


def _entries_of_last_record(file: IndexFile) -> int:
    number = file.header.index_count
    while number > 1:
        entry = index_file.decode_entry(file.view, file.sizes.slots, number - 1)
        if entry.physical_offset != file.header.end_physical_offset:
            break
        number -= 1
    return file.header.index_count - number
