"""One segment of a partition: a log and its indexes.

Upstream: `LogSegment`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.formats.kafka.offset_index import OffsetPosition
from mqlake.kafka.batches.kernel import is_compiled
from mqlake.kafka.batches.log_file import BatchPlace, FoundRecord, LogFile
from mqlake.kafka.batches.walk import SCAN_WINDOW, BatchWalk
from mqlake.kafka.files.lazy_file import LazyFile, read_whole
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex
from mqlake.kafka.index.transaction_index import TransactionIndex
from mqlake.storage.protocol import Directory

ReadIndex = Callable[[Kind], tuple[bytes, str]]

# Maximum number of index entries to try after damage; each costs a read.
_TRIES = 100
# If more bytes than this follow the last index entry, the log lacks its index.
_LONG_TAIL = 1 << 20


class Fetched(NamedTuple):
    """Bytes of a segment, and the first batch in them."""

    place: BatchPlace
    data: bytes


class LogSegment:
    """A segment that is read. Lookups use the indexes, but work without them, too.

    Attributes:
        base_offset: at or below every offset in it.
        log: its batches.
        swapped: which of its files have the suffix `.swap`.
    """

    swapped: frozenset[Kind] = frozenset()

    def __init__(self, base_offset: int, log: LogFile, read: ReadIndex) -> None:
        """Create a segment from a log; `read` returns an index file's bytes and name."""
        self.base_offset = base_offset
        self.log = log
        self._read = read

    @classmethod
    def read(
        cls,
        directory: Directory,
        path: str,
        base_offset: int,
        swapped: frozenset[Kind] = frozenset(),
    ) -> LogSegment:
        """Return the segment whose files are in the directory `path`; they are read when needed.

        Args:
            swapped: the files that are read under their names with the suffix `.swap`.

        Raises:
            StoreError: the `.log` file does not exist.
        """

        def place(kind: Kind) -> str:
            state = State.SWAP if kind in swapped else State.LIVE
            return f"{path}/{file_name(base_offset, kind, state)}".lstrip("/")

        def read(kind: Kind) -> tuple[bytes, str]:
            return read_whole(directory, place(kind)) or b"", place(kind)

        name = place(Kind.LOG)
        segment = cls(base_offset, LogFile(LazyFile(directory, name), name), read)
        segment.swapped = swapped
        return segment

    @cached_property
    def offset_index(self) -> OffsetIndex:
        """The offset index; empty if its file does not exist."""
        data, name = self._read(Kind.OFFSET_INDEX)
        return OffsetIndex(data, self.base_offset, name)

    @cached_property
    def time_index(self) -> TimeIndex:
        """The time index; empty if its file does not exist."""
        data, name = self._read(Kind.TIME_INDEX)
        return TimeIndex(data, self.base_offset, name)

    @cached_property
    def transaction_index(self) -> TransactionIndex:
        """The aborted transactions; empty if the file does not exist.

        Raises:
            FormatError: an entry has an unknown, later version.
        """
        data, _ = self._read(Kind.TRANSACTION_INDEX)
        return TransactionIndex(data, self.base_offset)

    @property
    def size(self) -> int:
        """The size of the log in bytes."""
        return self.log.size

    def translate_offset(self, offset: int) -> BatchPlace | None:
        """Return the batch that contains an offset, or the first one after it; None at the end.

        Upstream: `translateOffset`.
        """
        return self.log.search_offset(offset, self._position_before(offset))

    def position_of(self, offset: int) -> int:
        """Return where the batch of `translate_offset` starts, or where the valid batches end."""
        walk = self.log.batches(self._position_before(offset))
        for batch in walk:
            if batch.last_offset >= offset:
                return batch.position
        return walk.position

    def find_offset_by_timestamp(self, timestamp: int, first_offset: int) -> FoundRecord | None:
        """Return the first record at a time (milliseconds) or later, from an offset on.

        Control records count.

        Upstream: `findOffsetByTimestamp`.

        Raises:
            FormatError: a batch cannot be read.
        """
        entry = self.time_index.lookup(timestamp)
        position = self._position_before(max(entry.offset, first_offset))
        return self.log.search_timestamp(timestamp, position, first_offset)

    def fetch(
        self, offset: int, max_bytes: int, *, end: int | None = None, at_least_one: bool = False
    ) -> Fetched | None:
        """Return up to `max_bytes` from the batch that contains an offset on; None at the end.

        The last batch may be cut off. Reading stops at position `end`. `at_least_one` reads the
        first batch whole, however large it is.

        Upstream: `read`.
        """
        place = self.translate_offset(offset)
        if place is None:
            return None
        length = max(max_bytes, place.size) if at_least_one else max_bytes
        stop = self.size if end is None else min(end, self.size)
        length = max(0, min(length, stop - place.position))
        return Fetched(place, self.log.file.read(place.position, length))

    def next_offset(self) -> int:
        """Return the offset after the last batch.

        Upstream: `readNextOffset`.
        """
        following, file = self.base_offset, self.log.file
        start = self._position_before(self.offset_index.last_offset)
        if self.size - start > _LONG_TAIL and is_compiled(file, start):
            from mqlake.kafka.batches.scan import BatchScan

            for batches in BatchScan(file, start, check=False):
                following = int(batches.rows["last_offset"][-1]) + 1
            return following
        for batch in self.log.batches(start):
            following = batch.next_offset
        return following

    def largest_timestamp(self) -> int:
        """Return the largest timestamp in milliseconds, or -1 without a timestamp.

        It is taken from the time index, whose last entry has it in all closed segments, and from
        the batches after that entry.
        """
        last = self.time_index.last_entry
        after = self.log.largest_timestamp_after(self._position_before(last.offset))
        return max(last.timestamp, after.timestamp)

    def sanity_check(self) -> None:
        """Check the indexes as Kafka does.

        Raises:
            CorruptIndexError: an index contradicts itself.
        """
        self.offset_index.sanity_check()
        self.time_index.sanity_check()
        self.transaction_index.sanity_check()

    def close(self) -> None:
        """Release the files."""
        self.log.file.close()

    def _position_before(self, offset: int) -> int:
        """Return where to start looking for an offset; 0 if the index entry is wrong."""
        entry = self.offset_index.lookup(offset)
        return entry.position if self.is_batch(entry) else 0

    def is_batch(self, entry: OffsetPosition) -> bool:
        """Return whether an index entry points to a batch with the entry's offset."""
        if entry.position == 0:
            return True
        batch = self.log.batch_at(entry.position)
        return batch is not None and batch.base_offset <= entry.offset <= batch.last_offset

    def resume_after(self, position: int) -> int:
        """Return where the log continues after damage at a position, or the log's size if unknown.

        Candidates are the end of the damaged batch by its own length, and the offset index's
        entries. A candidate counts if the checksum of its batch is right.
        """
        damaged = self.log.batch_at(position)
        places = [] if damaged is None else [damaged.end]
        places += self.offset_index.positions_after(position, _TRIES)
        for place in sorted(places):
            # The index may be damaged, too, and point backwards.
            if not position < place < self.size:
                continue
            if next(BatchWalk(self.log.file, place, check=True), None):
                return place
        return self.size

    def is_unwritten(self, position: int) -> bool:
        """Return whether all bytes from a position on are zero, as in a preallocated file."""
        for start in range(position, self.size, SCAN_WINDOW):
            if any(self.log.file.read(start, SCAN_WINDOW)):
                return False
        return True
