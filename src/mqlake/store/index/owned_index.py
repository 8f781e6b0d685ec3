"""The index files of a store that this process writes (docs/live-store.md).

Upstream: `IndexService`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mqlake.dispatch.batch import Ints, Longs
from mqlake.dispatch.derived.index_entries import check_sizes
from mqlake.errors import DiskError
from mqlake.formats import index_file
from mqlake.formats.file_name import index_name, parse_index_name
from mqlake.formats.index_file import IndexHeader
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.index.index_files import DIRECTORY, IndexFile, IndexFiles
from mqlake.store.index.index_sizes import Sizes
from mqlake.store.index.owned_index_file import IndexTail, OwnedIndexFile
from mqlake.store.log.pending_sync import PendingSync

_EMPTY = IndexHeader(0, 0, 0, 0, 0, 1)

NOT_INDEXED = -1


class IndexState(NamedTuple):
    """The state of the index at one moment.

    Attributes:
        name: of the last file; "" without a file.
        slots: hash slots of the last file; NOT_INDEXED if records are not indexed at all.
        header: of the last file; without a file that takes entries, of the last full one.
        is_full: whether that file is full.
        full_until: end timestamp of the last full file, milliseconds; 0 without one.
        names: the names of all files, ascending.
    """

    name: str
    slots: int
    header: IndexHeader
    is_full: bool
    full_until: int
    names: tuple[str, ...] = ()


class OwnedIndex:
    """All index files of a store. For one thread.

    Args:
        slots: hash slots of a new file.
        max_entries: the capacity of a new file in entries.

    Attributes:
        is_used: whether records are indexed (`messageIndexEnable`).

    Raises:
        FormatError: a file cannot have these sizes.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        clock: Clock,
        slots: int,
        max_entries: int,
        *,
        is_used: bool = True,
    ) -> None:
        check_sizes(slots, max_entries)
        self.is_used = is_used
        self._directory, self._clock = directory, clock
        self._sizes = Sizes(slots, max_entries, is_proven=True)
        self._old: list[IndexFile] = []
        # The number of these, and of those that cannot be read.
        self._old_names: list[str] = []
        self._last: OwnedIndexFile | None = None
        # Created because the last file has no room for all entries to insert.
        self._next: list[OwnedIndexFile] = []
        # A prepared file for whose slots the disk has had no room yet.
        self._unready: OwnedIndexFile | None = None
        # Files to sync, with the number of the last sync that had begun when they were last
        # changed. They stay here until a sync that covers them has succeeded.
        self._dirty: dict[OwnedIndexFile, int] = {}
        self._syncs = 0
        self._names_changed = self._names_synced = 0
        self._full_until = 0
        self._before = _EMPTY

    def adopt(
        self,
        names: Iterable[str],
        old: Iterable[IndexFile],
        last: IndexTail | None,
        before: IndexHeader,
        full_until: int,
    ) -> None:
        """Start with the files that recovery found; everything that this changes must be synced.

        Args:
            names: of the files that get no more entries, ascending.
            old: those of them that can be read.
            last: the file that gets entries, if it exists. Its slots are written if they are wrong.
            before: the header of the last of all files, including this one.
            full_until: end timestamp of the last full one, milliseconds.

        Raises:
            DiskError: the disk refused the last file.
        """
        self._old_names, self._old = list(names), list(old)
        self._before, self._full_until = before, full_until
        self._names_changed += self._directory.is_directory(DIRECTORY)
        if last is not None:
            file = self._directory.open_writable(f"{DIRECTORY}/{last.name}")
            self._last = OwnedIndexFile(last.name, file, last.sizes, last.header)
            self._last.restore(last.heads)
            self._mark(self._last)

    def remove(self, name: str) -> None:
        """Remove a file that is to be written again.

        Raises:
            DiskError: the system refused it.
        """
        self._directory.remove(f"{DIRECTORY}/{name}")

    # Insert

    def take_record(self) -> None:
        """Create the file that a record without keys also creates, if no file has room.

        Raises:
            DiskError: the disk refused it.
        """
        if self._last is None or self._last.room <= 0:
            if not self._next:
                self._make_next()
            self._roll()

    def insert(
        self, hashes: Ints, offsets: Longs, timestamps: Longs, *, is_last: bool = True
    ) -> None:
        """Insert the keys of records, in the log's order.

        Args:
            hashes: i4[n], not negative.
            offsets: i8[n], physical offsets of the records.
            timestamps: i8[n], store timestamps of the records, in milliseconds.
            is_last: if not, a record without keys follows, as for `take_record`.

        Raises:
            DiskError: there is no room on the disk; nothing was inserted.
        """
        self._make_room(len(hashes), spare=not is_last)
        while True:
            assert self._last is not None
            count = self._last.insert(hashes, offsets, timestamps)
            self._mark(self._last)
            if count == len(hashes):
                break
            self._roll()
            hashes, offsets, timestamps = hashes[count:], offsets[count:], timestamps[count:]
        if not is_last:
            self.take_record()

    def _make_room(self, count: int, *, spare: bool) -> None:
        """Create files and reserve disk space for entries, before the first is inserted.

        Args:
            count: the number of entries.
            spare: whether the last file must have room for one more.
        """
        if self._last is None:
            self._make_next()
            self._roll()
        assert self._last is not None
        for file in (self._last, *self._next):
            file.reserve(max(0, count))
            count -= file.room
        while count > 0 or (spare and count == 0):
            self._make_next().reserve(count)
            count -= self._next[-1].room

    def _make_next(self) -> OwnedIndexFile:
        """Create a file in advance; its header is completed when it becomes the last."""
        file = self._unready = self._unready or self._create()
        file.reserve(0)
        self._unready = None
        self._next.append(file)
        return file

    def _create(self) -> OwnedIndexFile:
        if not self._directory.is_directory(DIRECTORY):
            self._directory.make_directory(DIRECTORY)
            self._names_changed += 1
        name = self._new_name()
        size = index_file.file_size(self._sizes.slots, self._sizes.max_entries)
        self._names_changed += 1
        file = self._directory.create(f"{DIRECTORY}/{name}", size)
        try:
            return OwnedIndexFile(name, file, self._sizes, _EMPTY)
        except DiskError:
            file.close()
            with suppress(DiskError):
                self._directory.remove(f"{DIRECTORY}/{name}")
            raise

    def _new_name(self) -> str:
        """Return the local time, as RocketMQ does; later than all existing names."""
        now = self._clock.milliseconds()
        offset = datetime.fromtimestamp(now / 1000, UTC).astimezone().utcoffset() or timedelta()
        local = now + offset // timedelta(milliseconds=1)
        names = [file.name for file in (*self._next, *self._old)]
        names += [self._last.name] if self._last else []
        latest = max((parse_index_name(name) or 0 for name in names), default=-1)
        return index_name(max(local, latest + 1))

    def _roll(self) -> None:
        """Continue with the next file, whose header begins with the end of the one before."""
        if (full := self._last) is not None:
            self._before = full.header
            self._full_until = full.header.end_timestamp
            self._old.append(full.as_read())
            self._old_names.append(full.name)
            if full not in self._dirty:
                full.close()
        time = max(0, self._before.end_timestamp)
        offset = max(0, self._before.end_physical_offset)
        header = IndexHeader(time, time, offset, offset, 0, 1)
        self._last = self._next.pop(0)
        self._last.begin(header)
        self._mark(self._last)

    def _mark(self, file: OwnedIndexFile) -> None:
        self._dirty[file] = self._syncs

    # Read, trim

    def files(self) -> IndexFiles:
        """Return the files for queries, oldest first; without empty ones."""
        files = list(self._old)
        if self._last is not None and self._last.header.index_count > 1:
            files.append(self._last.as_read())
        return IndexFiles(files, [])

    def state(self) -> IndexState:
        """Return the state of the index."""
        if not self.is_used:
            return IndexState("", NOT_INDEXED, _EMPTY, is_full=True, full_until=0)
        names = tuple(self._old_names)
        if self._last is None:
            return IndexState("", 0, self._before, True, self._full_until, names)
        name, header = self._last.name, self._last.header
        is_full, slots = self._last.room <= 0, self._last.sizes.slots
        full_until = header.end_timestamp if is_full else self._full_until
        return IndexState(name, slots, header, is_full, full_until, (*names, name))

    def trim(self, min_physical_offset: int) -> int:
        """Remove files whose records are all before a physical offset; return how many.

        The last file is never removed. Upstream: `IndexService.deleteExpiredFile`.

        Raises:
            DiskError: the system refused it.
        """
        count = 0
        while self._old and self._old[0].header.end_physical_offset < min_physical_offset:
            self._directory.remove(self._old[0].path)
            self._names_changed += 1
            self._old_names.remove(self._old.pop(0).name)
            count += 1
        return count

    # Recover, sync

    def clear_behind(self) -> None:
        """Zero everything after the last entry."""
        if self._last is not None:
            self._last.clear_behind()

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all current entries durable, and the names of their files."""
        dirty, names_changed = list(self._dirty), self._names_changed
        self._syncs = number = self._syncs + 1
        names = [DIRECTORY, ""] if names_changed != self._names_synced else []

        def done() -> None:
            self._names_synced = max(self._names_synced, names_changed)
            for file in dirty:
                if self._dirty.get(file, number) < number:
                    del self._dirty[file]
                    # A full file is not closed: another sync may be running. The last user closes
                    # it.

        return PendingSync(self._directory, [file.file for file in dirty], names, done)

    def check_linked(self) -> None:
        """Check that no file of the index was removed.

        Raises:
            SyncError: a file was removed.
        """
        if self._last is not None:
            self._last.file.check_linked()

    def sync(self) -> None:
        """Return once all entries, and the names of their files, are durable.

        Raises:
            DiskError: the disk failed; nothing since the last sync may be considered durable.
        """
        self.pending_sync().complete()

    def close(self) -> None:
        """Close all files, and remove those created in advance, as the next start would do."""
        for file in (*self._next, *([self._unready] if self._unready else [])):
            file.close()
            with suppress(DiskError):
                self._directory.remove(f"{DIRECTORY}/{file.name}")
        self._next.clear()
        self._unready = None
        if self._last is not None:
            self._last.close()
            self._last = None
