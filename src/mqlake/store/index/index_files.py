"""The index files of a store: which part of the log each covers, and its entries by key.

Upstream: `IndexService.queryOffset`, `IndexFile.selectPhyOffset`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqlake.errors import FormatError, StoreError, raise_passing
from mqlake.formats import index_file
from mqlake.formats.damage import Damage
from mqlake.formats.file_name import is_index_name
from mqlake.formats.index_file import IndexEntry, IndexHeader
from mqlake.storage.protocol import Directory
from mqlake.storage.remote.remote_file import Load, all_is_here, lasting_view
from mqlake.store.index.index_sizes import Sizes, find_sizes
from mqlake.store.log.scan import head_at
from mqlake.store.log.segments import CommitLog

DIRECTORY = "index"

# No entry is 20 zero bytes, so this many of them contain an entry that a power loss has lost.
_HOLE = bytes(2 * index_file.ENTRY_SIZE)
_CHUNK = 1 << 20


class IndexFile(NamedTuple):
    """One index file that can be queried for keys.

    Attributes:
        covered_end: physical offset; every record from the header's begin offset up to this one is
            in the file.
    """

    name: str
    header: IndexHeader
    sizes: Sizes
    view: memoryview
    covered_end: int
    load: Load = all_is_here
    """Called before bytes of `view` are accessed."""

    @property
    def path(self) -> str:
        return f"{DIRECTORY}/{self.name}"

    def slot(self, key_hash: int) -> Iterator[IndexEntry]:
        """Yield the entries of a key hash's slot, newest first; some have another hash."""
        sizes = self.sizes
        return index_file.walk_slot(self.view, sizes.slots, sizes.max_entries, key_hash, self.load)

    def entry(self, number: int) -> IndexEntry:
        """Return an entry by its number."""
        at = index_file.entry_at(self.sizes.slots, number)
        self.load(at, at + index_file.ENTRY_SIZE)
        return index_file.decode_entry(self.view, self.sizes.slots, number)

    def is_vouched_for(self, indexed_until: int) -> bool:
        """Return whether it is full, and was durable when its checkpoint was written.

        Args:
            indexed_until: the checkpoint's index timestamp, milliseconds.
        """
        header = self.header
        # A process may have died in the middle of writing the header.
        is_whole = 0 < header.begin_timestamp <= header.end_timestamp
        is_full = header.index_count == self.sizes.max_entries
        return is_full and is_whole and header.end_timestamp <= indexed_until

    def find_hole(self) -> int | None:
        """Return the position of entries that are counted but missing, or None without such."""
        start = index_file.entry_at(self.sizes.slots, 1)
        end = index_file.entry_at(self.sizes.slots, self.header.index_count)
        for base in range(start, end, _CHUNK):
            last = min(base + _CHUNK + len(_HOLE), end)
            self.load(base, last)
            chunk = bytes(self.view[base:last])
            if (at := chunk.find(_HOLE)) >= 0:
                return base + at
        return None

    def store_time(self, entry: IndexEntry) -> int:
        """Return the time (ms) of an entry as RocketMQ computes it: whole seconds."""
        return self.header.begin_timestamp + entry.seconds * 1000


class IndexFiles:
    """The index files of a store that can be queried, oldest first."""

    def __init__(self, files: list[IndexFile], damage: list[Damage]) -> None:
        self.files = sorted(files, key=lambda file: (file.header.begin_physical_offset, file.name))
        self.damage = damage

    @classmethod
    def open(cls, directory: Directory) -> IndexFiles:
        """Open the files of `index/` with names of index files; implausible ones are damage."""
        files: list[IndexFile] = []
        damage: list[Damage] = []
        for name in filter(is_index_name, directory.names(DIRECTORY)):
            found = open_index_file(directory, name)
            if isinstance(found, Damage):
                damage.append(found)
            elif found is not None:
                files.append(found)
        return cls(files, damage)

    def after_crash(self, indexed_until: int, recovered_from: int) -> IndexFiles:
        """Return the parts of the files that can be trusted after a crash.

        Files whose last entry is from after `indexed_until` (ms, the checkpoint's index time) may
        have lost entries, and RocketMQ deletes them. Here they are queried, but the log after
        `recovered_from` (a physical offset) is scanned, too. If a file has a hole, all of its part
        of the log is scanned.
        """
        files: list[IndexFile] = []
        damage = list(self.damage)
        for file in self.files:
            if file.header.end_timestamp <= indexed_until:
                files.append(file)
            elif (hole := file.find_hole()) is not None:
                reason = "entries are missing here: the log is scanned instead of the file"
                damage.append(Damage(file.path, hole, len(_HOLE), reason))
            else:
                files.append(file._replace(covered_end=min(file.covered_end, recovered_from)))
        return IndexFiles(files, damage)

    def gaps(self, log: CommitLog, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches of [start, end) that no file covers, ascending.

        A file's last record also counts as the first of the stretch after it: the end of the file
        may have cut off some of its keys. A file's first record also counts as the last of the
        stretch before it: its first keys may be in a file that is missing.

        Args:
            log: says where a file's first record ends.
        """
        for number, file in enumerate(self.files):
            begin = file.header.begin_physical_offset
            if begin > start or (number == 0 and begin == start > 0):
                head = head_at(log, begin) if begin < end else None
                stop = min(begin if head is None else begin + head.size, end)
                if start < stop:
                    yield start, stop
            start = max(start, file.covered_end)
        if start < end:
            yield start, end


def open_index_file(directory: Directory, name: str) -> IndexFile | Damage | None:
    """Return a file, what is wrong with it, or None if it is empty.

    Raises:
        DiskError: the process has no descriptor or memory for it now: it is not damaged.
    """
    path = f"{DIRECTORY}/{name}"
    try:
        view, load = lasting_view(directory.open(path))
        load(0, index_file.HEADER_SIZE)
        header = index_file.decode_header(view)
    except (StoreError, FormatError) as error:
        raise_passing(error)
        return Damage(path, 0, 0, str(error))
    sizes = find_sizes(view, header, load)
    if sizes is None:
        return Damage(
            path, 0, len(view), "the file's size does not match any number of slots and entries"
        )
    if reason := _impossible(header, sizes):
        return Damage(path, 0, index_file.HEADER_SIZE, reason)
    if header.index_count <= 1:
        return None
    return IndexFile(name, header, sizes, view, header.end_physical_offset, load)


def _impossible(header: IndexHeader, sizes: Sizes) -> str | None:
    if header.index_count > sizes.max_entries:
        return (
            f"the header counts {header.index_count} entries, but there is room for "
            f"{sizes.max_entries}"
        )
    if not 0 <= header.begin_physical_offset <= header.end_physical_offset:
        return "the header's physical offsets do not ascend"
    return None
