"""A segment that this process writes. Upstream: `LogSegment`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqlake.errors import FormatError
from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.crc32c import crc32c
from mqlake.formats.kafka.file_name import Kind, file_name
from mqlake.kafka.batches.log_file import LogFile
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kafka.errors import OffsetOverflowError
from mqlake.kafka.files.owned_file import OwnedFile
from mqlake.kafka.index.builder import IndexBuilder
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex
from mqlake.kafka.index.transaction_index import TransactionIndex
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.kafka.write.recovery import Recovery
from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.memory import MemoryFile
from mqlake.storage.protocol import OwnedDirectory


class OwnedSegment(LogSegment):
    """A segment whose files grow and are cut. Not safe for use by several threads.

    Attributes:
        is_flushed: whether nothing was changed since the last flush, or since it was opened.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        path: str,
        base_offset: int,
        settings: LogSettings,
        clock: Clock | None = None,
    ) -> None:
        """Open the files in the directory `path`, and create those that are missing.

        Raises:
            DiskError: the system refused it.
            StoreError: the log has more than 2^31 - 1 bytes.
            FormatError: a transaction index of a later version.
        """
        self._settings = settings
        self._clock = clock or SystemClock()
        self.is_flushed = False
        paths = {kind: f"{path}/{file_name(base_offset, kind)}".lstrip("/") for kind in Kind}
        size = settings.segment_bytes if settings.preallocate else 0
        self._file = OwnedFile(directory, paths[Kind.LOG], preallocate=size)
        super().__init__(base_offset, LogFile(self._file, self._file.name), _not_read)
        limit = settings.segment_index_bytes
        self.offset_index = OffsetIndex.own(directory, paths[Kind.OFFSET_INDEX], base_offset, limit)
        self.time_index = TimeIndex.own(directory, paths[Kind.TIME_INDEX], base_offset, limit)
        self.transaction_index = TransactionIndex.own(
            directory, paths[Kind.TRANSACTION_INDEX], base_offset
        )
        self._index = self._new_index()
        self._created = self._clock.milliseconds()
        self._first_timestamp: int | None = None

    def append(self, data: bytes) -> None:
        """Add whole batches, whose offsets go up from batch to batch.

        Raises:
            FormatError: not whole batches; nothing was written.
            OffsetOverflowError: an offset is too far from the base; nothing was written.
            StoreError: the file would grow beyond 2^31 - 1 bytes; nothing was written.
            FullIndexError, InvalidOffsetError: the batches were written, but not all of them are
                in the indexes.
        """
        walk = BatchWalk(MemoryFile(data))
        batches = list(walk)
        if walk.position != len(data):
            raise FormatError(f"byte {walk.position}: {walk.fault or 'a batch is cut off'}")
        self.add(data, batches)

    def add(self, data: bytes, batches: Sequence[Batch]) -> None:
        """Add the batches that are in `data`, as `append` does.

        Raises:
            As `append`, but FormatError.
        """
        for batch in batches:
            self._check_offset(batch.last_offset)
        start = self.size
        self.is_flushed = False
        self._file.append(data)
        for batch in batches:
            self._index.add(batch._replace(position=start + batch.position))

    def should_roll(self, size: int, max_timestamp: int, last_offset: int) -> bool:
        """Return whether batches of this size (bytes), time and last offset belong elsewhere.

        Upstream: `shouldRoll`.
        """
        settings = self._settings
        waited = self._waited(max_timestamp)
        return (
            self.size > settings.segment_bytes - size
            or (self.size > 0 and waited > settings.segment_ms - settings.segment_jitter_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.offset_index.can_append(last_offset)
        )

    def deactivate(self) -> None:
        """Finish the indexes and cut the files: another segment follows, or nothing.

        Upstream: `onBecomeInactiveSegment`.
        """
        self.is_flushed = False
        self._index.finish()
        self.offset_index.trim()
        self.time_index.trim()
        self._file.truncate(self.size)

    def activate(self) -> None:
        """Give the indexes room: this is the last segment, and batches will come."""
        self.offset_index.grow()
        self.time_index.grow()

    def truncate_to(self, offset: int) -> int:
        """Cut off the batches from the one on that holds an offset; return the bytes cut off."""
        place = self.translate_offset(offset)
        self.is_flushed = False
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self.activate()
        cut = 0 if place is None else self.size - place.position
        if place is not None:
            self._file.truncate(place.position)
        if not self.size:
            self._created = self._clock.milliseconds()
            self._first_timestamp = None
        self._index = self._new_index()
        position = self.offset_index.lookup(self._index.largest.offset).position
        after = self.log.largest_timestamp_after(position)
        if after.timestamp > self._index.largest.timestamp:
            self._index.largest = after
        return cut

    def recover(
        self,
        producers: ProducerState,
        epochs: LeaderEpochs,
        before_cut: Callable[[], object] = lambda: None,
    ) -> int:
        """Make the indexes again, and cut the log at its first bad batch.

        `producers` and `epochs` are those as of the base offset, and are brought forward. Returns
        the bytes cut off; `before_cut` is called if there are any. Rules:
        docs/formats/kafka/log_file.md, "Recovery".

        Raises:
            OffsetOverflowError, InvalidOffsetError, FullIndexError, TransactionStateError: batches
                that are whole but cannot be in this segment; the indexes are half done.
        """
        crc32c(b"")  # Without its package, fail before anything is changed.
        self.is_flushed = False
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self._index = self._new_index()
        recovery = Recovery(
            self.log, self.base_offset, self._index, self.transaction_index, producers, epochs
        )
        recovery.run()
        cut = self.size - recovery.valid
        if cut:
            before_cut()
        self._file.truncate(recovery.valid)
        self.offset_index.trim()
        self._index.finish()
        self.time_index.trim()
        return cut

    def flush(self) -> None:
        """Return once everything is on the disk.

        Raises:
            SyncError: the disk failed.
        """
        self._file.flush()
        self.offset_index.flush()
        self.time_index.flush()
        self.transaction_index.flush()
        self.is_flushed = True

    def close(self) -> None:
        """Finish the indexes, cut the files to what is in them, and release them.

        What is to survive a power loss must be made inactive and flushed before.
        """
        self.deactivate()
        self.abandon()

    def abandon(self) -> None:
        """Release the files as they are."""
        self.offset_index.abandon()
        self.time_index.abandon()
        self.transaction_index.close()
        self._file.close()

    def _waited(self, max_timestamp: int) -> int:
        if self._first_timestamp is None:
            first = self.log.batch_at(0)
            self._first_timestamp = None if first is None else first.max_timestamp
        if self._first_timestamp is not None and self._first_timestamp >= 0:
            return max_timestamp - self._first_timestamp
        return self._clock.milliseconds() - self._created

    def _check_offset(self, offset: int) -> None:
        if not self.offset_index.can_append(offset):
            raise OffsetOverflowError(
                f"{self.log.name}: offset {offset} is not within 2^31 of the base"
                f" {self.base_offset}"
            )

    def _new_index(self) -> IndexBuilder:
        interval = self._settings.index_interval_bytes
        return IndexBuilder(self.offset_index, self.time_index, interval)


def _not_read(kind: Kind) -> tuple[bytes, str]:
    raise AssertionError(f"{kind} of a segment that is written")
