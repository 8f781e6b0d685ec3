"""The consume queue files of one queue (docs/formats/consume_queue.md).

Entry `n` of a queue is at byte 20 n of its files, which adjoin each other as the log's do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from mqlake.errors import FormatError, StoreError, raise_passing
from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import ENTRY_SIZE, QueueEntry
from mqlake.formats.damage import Damage
from mqlake.formats.file_name import check_topic_name, parse_segment_name
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.storage.remote.remote_file import Load, all_is_here, lasting_view
from mqlake.store.log.file_end import end_of_data
from mqlake.store.queues.queue_kind import SIMPLE, QueueKind

DIRECTORY = SIMPLE.directory

_MOST_MAPPED = 8
_MOST_QUEUE_ID = 0x7FFFFFFF


class QueueFile(NamedTuple):
    """One file: its name, the queue offset of its first entry, and its size in bytes."""

    name: str
    first: int
    size: int

    @property
    def end(self) -> int:
        """Queue offset just past the last entry that fits in the file."""
        return self.first + self.size // ENTRY_SIZE


def topic_names(directory: Directory, kind: QueueKind = SIMPLE) -> list[str]:
    """Return the topics that have a directory; names that no topic can have are skipped."""
    return [
        name
        for name in directory.names(kind.directory)
        if _is_topic(name) and directory.is_directory(f"{kind.directory}/{name}")
    ]


def queue_ids(directory: Directory, topic: str, kind: QueueKind = SIMPLE) -> list[int]:
    """Return the queues of a topic that have a directory, ascending."""
    names = directory.names(f"{kind.directory}/{check_topic_name(topic)}")
    return sorted(
        int(name)
        for name in names
        if name.isascii() and name.isdigit() and len(name) <= 10 and str(int(name)) == name
        if int(name) <= _MOST_QUEUE_ID
    )


def _is_topic(name: str) -> bool:
    try:
        check_topic_name(name)
    except FormatError:
        return False
    return True


class QueueFiles:
    """The entries in the files of one queue.

    Entries [first, end) are between the first file's start and the last written entry; some of them
    may be missing (a hole after a power loss, a missing file).

    Args:
        whole_size: the size of a whole file in bytes, if known.
        dead_before: physical offset before which the topic's records belong to deleted
            incarnations: files that begin with such an entry are left out.
    """

    def __init__(
        self,
        directory: Directory,
        topic: str,
        queue_id: int,
        *,
        whole_size: int | None = None,
        dead_before: int = 0,
    ) -> None:
        self._directory = directory
        self._path = f"{DIRECTORY}/{check_topic_name(topic)}/{queue_id}"
        self._views: OrderedDict[str, tuple[memoryview, Load]] = OrderedDict()
        self.files = list(_queue_files(directory, self._path))
        self._firsts = [file.first for file in self.files]
        if dead_before:
            self._leave_out(dead_before)
        self.first = self.files[0].first if self.files else 0
        self.end = self._find_end()
        self.whole_size = whole_size or _distance(self.files)

    def _leave_out(self, dead_before: int) -> None:
        """Leave out dead files, and those that were created in advance after them."""
        begins = [self._read(first) for first in self._firsts]
        if not any(_is_dead(begin, dead_before) for begin in begins):
            return
        self.files = [
            file
            for file, begin in zip(self.files, begins, strict=True)
            if begin is not None and begin.size > 0 and not _is_dead(begin, dead_before)
        ]
        self._firsts = [file.first for file in self.files]

    @property
    def has_room(self) -> bool:
        """Return whether the last file is whole and has room: nothing is lost after its end.

        If it has no room, a next file may have been lost, or the rest of this one.
        """
        if not self.files:
            return False
        last = self.files[-1]
        return last.size == (self.whole_size or last.size) and self.end < last.end

    def entry(self, queue_offset: int) -> QueueEntry | None:
        """Return the entry of a queue offset, or None if it was not written."""
        entry = self._read(queue_offset)
        if entry is None or consume_queue.is_blank(entry) or not consume_queue.is_written(entry):
            return None
        return entry

    def is_hole(self, queue_offset: int) -> bool:
        """Return whether a file has the position of an entry that was never written."""
        entry = self._read(queue_offset)
        return entry is not None and not consume_queue.is_written(entry)

    def _read(self, queue_offset: int) -> QueueEntry | None:
        number = bisect_right(self._firsts, queue_offset) - 1
        if number < 0 or queue_offset >= self.files[number].end:
            return None
        file = self.files[number]
        (view, load), at = self._view(file), (queue_offset - file.first) * ENTRY_SIZE
        if at + ENTRY_SIZE > len(view):
            return None
        load(at, at + ENTRY_SIZE)
        return QueueEntry(*consume_queue.ENTRY.unpack_from(view, at))

    def run(self, queue_offset: int, most: int) -> memoryview:
        """Return the bytes of consecutive entries of one file, written or not.

        Args:
            queue_offset: of the first one; the result is empty if no file has its position.
            most: maximum number of entries.
        """
        number = bisect_right(self._firsts, queue_offset) - 1
        if number < 0 or queue_offset >= self.files[number].end:
            return memoryview(b"")
        file = self.files[number]
        view, load = self._view(file)
        at = (queue_offset - file.first) * ENTRY_SIZE
        end = min(at + most * ENTRY_SIZE, len(view) // ENTRY_SIZE * ENTRY_SIZE)
        load(at, end)
        return view[at:end]

    def written_from(self, queue_offset: int) -> Iterator[tuple[int, QueueEntry]]:
        """Yield queue offset and entry of the written entries from an offset on, ascending."""
        for file in self.files[max(0, bisect_right(self._firsts, queue_offset) - 1) :]:
            for offset in range(max(queue_offset, file.first), min(file.end, self.end)):
                entry = self.entry(offset)
                if entry is not None:
                    yield offset, entry

    def written_before(self, queue_offset: int) -> Iterator[tuple[int, QueueEntry]]:
        """Yield queue offset and entry of the written entries before an offset, descending."""
        for file in reversed(self.files[: bisect_right(self._firsts, queue_offset)]):
            for offset in range(min(queue_offset, file.end, self.end) - 1, file.first - 1, -1):
                entry = self.entry(offset)
                if entry is not None:
                    yield offset, entry

    def first_at_or_after(self, physical_offset: int) -> int:
        """Return the least queue offset whose entry points at or after a physical offset.

        Physical offsets of entries ascend, so this is a binary search; `end` if no entry does.
        """
        low, high = self.first, self.end
        while low < high:
            middle = (low + high) // 2
            if self._read(middle) == consume_queue.BLANK_ENTRY:
                low = middle + 1
                continue
            offset, entry = next(self.written_from(middle), (high, None))
            if entry is None or offset >= high or entry.physical_offset >= physical_offset:
                high = middle
            else:
                low = offset + 1
        return next(self.written_from(low), (self.end, None))[0]

    def damage(self) -> Iterator[Damage]:
        """Yield what is wrong with names and sizes."""
        for file in self.files:
            path = f"{self._path}/{file.name}"
            if file.size % ENTRY_SIZE:
                reason = f"{file.size} bytes are not a multiple of an entry's {ENTRY_SIZE}"
                yield Damage(
                    path, file.size // ENTRY_SIZE * ENTRY_SIZE, file.size % ENTRY_SIZE, reason
                )
            elif self.whole_size and file.size != self.whole_size:
                reason = f"this file has {file.size} bytes, but the others have {self.whole_size}"
                yield Damage(path, min(file.size, self.whole_size), 0, reason)
        for file, following in pairwise(self.files):
            if following.first > file.end:
                missing = following.first - file.end
                reason = f"{missing} entries are missing before this file"
                yield Damage(f"{self._path}/{following.name}", 0, 0, reason)

    def _view(self, file: QueueFile) -> tuple[memoryview, Load]:
        view = self._views.get(file.name)
        if view is None:
            opened = self._open(file)
            if opened is None:
                return memoryview(b""), all_is_here
            view = self._views[file.name] = lasting_view(opened)
            if len(self._views) > _MOST_MAPPED:
                self._views.popitem(last=False)
        return view

    def _open(self, file: QueueFile) -> ReadableFile | None:
        try:
            return self._directory.open(f"{self._path}/{file.name}")
        except StoreError as error:
            raise_passing(error)
            return None  # The file was deleted since it was listed.

    def _find_end(self) -> int:
        """Return the queue offset after the last entry that is not all zero."""
        for file in reversed(self.files):
            opened = self._open(file)
            if opened is not None:
                written = end_of_data(opened, 0, file.size // ENTRY_SIZE * ENTRY_SIZE)
                opened.close()
                if written:
                    return file.first + -(-written // ENTRY_SIZE)
        return self.first


def _is_dead(entry: QueueEntry | None, dead_before: int) -> bool:
    if entry is None or entry.size <= 0 or entry == consume_queue.BLANK_ENTRY:
        return False
    return entry.physical_offset < dead_before


def _queue_files(directory: Directory, path: str) -> Iterator[QueueFile]:
    for name in directory.names(path):
        base = parse_segment_name(name)
        if base is not None and base % ENTRY_SIZE == 0:
            try:
                size = directory.size(f"{path}/{name}")
            except StoreError as error:
                raise_passing(error)
                continue  # The file was deleted since it was listed.
            yield QueueFile(name, base // ENTRY_SIZE, size)


def _distance(files: list[QueueFile]) -> int | None:
    """Return the bytes from one file's start to the next one's; None without two files."""
    distances = [(after.first - file.first) * ENTRY_SIZE for file, after in pairwise(files)]
    return min(distances, default=None)
