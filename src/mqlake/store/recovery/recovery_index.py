"""Derive which part of the index is certainly durable; the rest comes from the log.

RocketMQ deletes the files that may be incomplete (`IndexService.load`), and with them their keys of
log files before the start of recovery. Here the entries that are known to be whole stay, and later
ones are inserted again from the log (docs/live-store.md, "Recovery").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqlake.formats import index_file
from mqlake.formats.checkpoint import Checkpoint, ResumePoint
from mqlake.formats.index_file import ENTRY_SIZE, IndexHeader
from mqlake.storage.protocol import Directory
from mqlake.store.index.index_files import DIRECTORY, IndexFile, open_index_file
from mqlake.store.index.index_sizes import Sizes
from mqlake.store.index.owned_index import NOT_INDEXED
from mqlake.store.index.owned_index_file import IndexTail, find_heads

_NONE = IndexHeader(0, 0, 0, 0, 0, 1)
_NEVER = (1 << 63) - 1


class IndexStart(NamedTuple):
    """Where the index continues.

    Attributes:
        first: physical offset of the first record whose keys are to be inserted.
        skip: the number of its keys that are already in the index.
    """

    first: int
    skip: int = 0


class Distrust(NamedTuple):
    """What a checkpoint must no longer vouch for: see `CheckpointFile.distrust_index`."""

    until: int
    first: int


class KeptIndex(NamedTuple):
    """The valid part of the index before keys are inserted again.

    Attributes:
        start: where the index continues.
        names: names of the unchanged files, ascending.
        full: those of them that can be read.
        last: the file that gets more entries, None if a new one does.
        before: the header of the last of all, including `last`.
        full_until: end timestamp of the last full file, milliseconds.
        removed: names of the files that are written again.
        distrust: what the checkpoint must say before the first of them is removed. A power loss
            from then on may leave any of them, and new full files that end at the same time as
            files that the checkpoint vouches for, but lack entries. None if the checkpoint may stay
            as it is.
    """

    start: IndexStart
    names: tuple[str, ...]
    full: tuple[IndexFile, ...]
    last: IndexTail | None
    before: IndexHeader
    full_until: int
    removed: tuple[str, ...]
    distrust: Distrust | None = None


UNUSED = KeptIndex(
    start=IndexStart(_NEVER), names=(), full=(), last=None, before=_NONE, full_until=0, removed=()
)
"""The part of an index that stays if it is switched off (`messageIndexEnable`)."""


class IndexRecovery:
    """Checks the files of an index.

    Args:
        names: of the files, ascending.
        min_offset: physical offset of the first existing record.
    """

    def __init__(self, directory: Directory, names: Sequence[str], min_offset: int) -> None:
        self._directory, self._names, self._min_offset = directory, names, min_offset

    def kept(self, point: ResumePoint | None, found: Checkpoint, *, is_clean: bool) -> KeptIndex:
        """Return the valid part of the index: its state at mqlake's checkpoint, if it is complete.

        Raises:
            StoreError: a file cannot be read.
        """
        if point is None:
            return self._kept_by_rocketmq(found, is_clean=is_clean)
        if point.index_slots == NOT_INDEXED:
            return self._kept_by_rocketmq(found, is_clean=False)
        name = f"{point.index_name:017d}" if point.index_name else ""
        before = [other for other in self._names if other < name or not name]
        old = [file for other in before if (file := self._read(other))]
        if self._are_gone(point, before, old):
            return self._kept_with([])
        kept = self._kept_at(point, name, before, old, found.index_msg_timestamp)
        return kept or self._kept_by_rocketmq(found, is_clean=False)

    def _kept_at(
        self, point: ResumePoint, name: str, before: list[str], old: list[IndexFile], until: int
    ) -> KeptIndex | None:
        """Return the state in the checkpoint, None if the last file lacks some of its entries.

        Args:
            name: the last file's.
            before: names of the files before it.
            old: those of them that can be read.
            until: end timestamp of the last full file then, milliseconds.
        """
        header, last = point.index_header, None
        if name in self._names:
            last = self._tail(name, point.index_slots, header)
            if last is None:
                return None
        elif header.index_count > 1 and header.end_physical_offset >= self._min_offset:
            return None
        if not name:
            before, old = [], []
        start, removed = IndexStart(point.position), self._after(name)
        return KeptIndex(
            start=start,
            names=tuple(before),
            full=tuple(old),
            last=last,
            before=header,
            full_until=until,
            removed=removed,
        )

    def _are_gone(self, point: ResumePoint, names: list[str], old: list[IndexFile]) -> bool:
        """Return whether files before the last one are missing that existed at the checkpoint.

        Retention may have removed the first ones since: those that end before the log starts.

        Args:
            names: of the existing files.
            old: those of them that can be read.
        """
        if len(names) >= point.index_files - (point.index_name > 0):
            return False
        first = int(names[0]) if names else point.index_name
        begin = (old[0].header if old else point.index_header).begin_physical_offset
        # A file that ends with the log's first record is still needed.
        return first == point.index_first or begin >= self._min_offset

    def _kept_by_rocketmq(self, found: Checkpoint, *, is_clean: bool) -> KeptIndex:
        """Keep the files from the first on that can be read, and are whole.

        RocketMQ's checkpoint vouches for them; after a clean stop all files are whole.
        """
        believed: list[IndexFile] = []
        for name in self._names:
            file = self._read(name)
            if file is None or not (is_clean or file.is_vouched_for(found.index_msg_timestamp)):
                break
            believed.append(file)
        return self._kept_with(believed)

    def _kept_with(self, files: list[IndexFile]) -> KeptIndex:
        """Continue the index after these files.

        Later files are written again: each of their keys is in the log, or belongs to no record.
        """
        kept, last = list(files), None
        if kept and kept[-1].header.index_count < kept[-1].sizes.max_entries:
            newest = kept.pop()
            # If it has room, it is continued.
            last = self._tail(newest.name, newest.sizes.slots, newest.header)
            files = files if last else kept
        header = files[-1].header if files else _NONE
        start = IndexStart(self._min_offset)
        if files and header.end_physical_offset >= self._min_offset:
            start = IndexStart(header.end_physical_offset, _entries_of_last_record(files))
        until = kept[-1].header.end_timestamp if kept else 0
        return KeptIndex(
            start=start,
            names=tuple(file.name for file in kept),
            full=tuple(kept),
            last=last,
            before=header,
            full_until=until,
            removed=self._after(files[-1].name if files else ""),
            distrust=Distrust(until, start.first),
        )

    def _read(self, name: str) -> IndexFile | None:
        path = f"{DIRECTORY}/{name}"
        if not self._directory.is_directory(path):
            # A file that cannot be opened now is not damaged: this raises.
            self._directory.open(path).close()
        file = open_index_file(self._directory, name)
        return file if isinstance(file, IndexFile) else None

    def _tail(self, name: str, slots: int, header: IndexHeader) -> IndexTail | None:
        """Return the file that gets more entries, None if it lacks some of those that it had."""
        file = self._directory.open(f"{DIRECTORY}/{name}")
        try:
            entries, odd = divmod(file.size - index_file.entry_at(slots, 0), ENTRY_SIZE)
            if slots < 1 or entries < 2 or odd:
                return None
            sizes = Sizes(slots, entries, is_proven=True)
            heads = find_heads(file.view(), sizes, header)
        finally:
            file.close()
        return None if heads is None else IndexTail(name, sizes, header, heads)

    def _after(self, name: str) -> tuple[str, ...]:
        return tuple(other for other in self._names if other > name)


def _entries_of_last_record(files: list[IndexFile]) -> int:
    """Return how many of the last record's keys are in the files, whose ends may divide them."""
    offset, count = files[-1].header.end_physical_offset, 0
    for file in reversed(files):
        for number in range(file.header.index_count - 1, 0, -1):
            entry = index_file.decode_entry(file.view, file.sizes.slots, number)
            if entry.physical_offset != offset:
                return count
            count += 1
    return count
