"""One partition that this process writes.

Upstream: `UnifiedLog`, `LocalLog`, `LogLoader`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from mqlake.errors import FormatError, MqlakeError, SyncError
from mqlake.formats.kafka import checkpoint_file, record_batch, versions
from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.file_name import Kind
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kafka.errors import CorruptIndexError, InvalidOffsetError
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.derived_state import DerivedState
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.kafka.write.partition_files import PartitionFiles
from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.fork_guard import ForkGuard
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.memory import MemoryFile
from mqlake.storage.protocol import OwnedDirectory


class OwnedPartition:
    """A log of segments that is appended to. Not safe for use by several threads.

    A failed sync is final: after it, every method except `abandon` raises its error.

    Attributes:
        name: name of its directory, for messages.
        segments: ascending; the last one is active.
        log_start_offset: records before this offset are not shown.
        log_end_offset: the offset of the next record.
        recovery_point: everything before it was durable at the last flush.
        cut: bytes that recovery cut off when the partition was opened.
        removed: base offsets of the segments that were removed because the log was cut before
            them.
    """

    def __init__(
        self,
        location: Path | OwnedDirectory,
        settings: LogSettings | None = None,
        *,
        path: str = "",
        clock: Clock | None = None,
        is_clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
    ) -> None:
        """Open the partition in a directory, or in `path` in it, as Kafka does at its start.

        The directory is created if it is missing. Unless the partition `is_clean`, segments from
        that of `recovery_point` on are recovered: the log is cut after its last valid batch, and
        segments after a cut are removed.

        Raises:
            DiskError: the system refused a write; what can be read stays unchanged.
            OffsetOverflowError: the offsets of a segment are too far from its base; Kafka would
                split it.
            StoreError: a file cannot be opened or written.
        """
        directory = LocalOwnedDirectory.make(location) if isinstance(location, Path) else location
        self._files = PartitionFiles(directory, path)
        self.name = self._files.name
        self._settings = settings or LogSettings()
        self._clock = clock or SystemClock()
        self.log_start_offset = log_start_offset
        self.cut = 0
        self.removed: list[int] = []
        self._unfinished: int | None = None
        """Base offset of a segment whose files could not all be created."""
        self._truncation: int | None = None
        """Offset of a truncation that has begun and is not complete."""
        self._fork_guard = ForkGuard(self.name)
        self._state = DerivedState(self._files)
        self.segments: list[OwnedSegment] = []
        try:
            self._load(is_clean, recovery_point)
        except BaseException:
            for segment in self.segments:
                segment.abandon()
            raise

    @property
    def active(self) -> OwnedSegment:
        """The segment that batches are appended to."""
        return self.segments[-1]

    @property
    def leader_epochs(self) -> list[checkpoint_file.LeaderEpoch]:
        """The leader epochs of the log, ascending."""
        return self._state.leader_epochs

    def append(
        self,
        records: Sequence[NewRecord],
        *,
        compression: Compression = Compression.NONE,
        leader_epoch: int = 0,
    ) -> int:
        """Append records as one batch; return the offset of the first.

        Raises:
            FormatError: there are no records, or the batch would be too large.
        """
        self._check()  # It may finish a truncation, which moves the log's end.
        first = self.log_end_offset
        self.append_batches(
            record_batch.encode(first, records, compression=compression, leader_epoch=leader_epoch)
        )
        return first

    def append_batches(self, data: bytes) -> None:
        """Append whole batches with valid checksums, at offsets from the log's end on.

        A new segment begins when Kafka would begin one.

        Raises:
            FormatError: the batches are incomplete or invalid; nothing was written.
            InvalidOffsetError: an offset exists already; nothing was written.
            TransactionStateError: a plain batch in the middle of its producer's transaction;
                nothing stays in the log.
            DiskError: the system refused the write; nothing stays in the log.
            StoreError: this process was forked after the partition was opened.
        """
        self._check()
        batches = self._checked(data)
        first, last = batches[0], batches[-1]
        newest = max(batch.max_timestamp for batch in batches)
        if self.active.should_roll(len(data), newest, last.last_offset):
            # A batch of version 0 or 1 does not contain its first offset.
            known = versions.knows_first_offset(first)
            self.roll(first.base_offset if known else self.log_end_offset)
        start = self.active.size
        try:
            self.active.add(data, batches)
            for batch in batches:
                self._state.take_in(batch._replace(position=start + batch.position), self.active)
        except MqlakeError as error:
            self._take_back(error)
            raise
        self.log_end_offset = last.next_offset

    def roll(self, base_offset: int | None = None) -> None:
        """Begin a new segment at the log's end or above, unless the active one is empty there.

        Returns once all of the log before it is durable.

        Raises:
            DiskError: the system refused it.
        """
        self._check()
        base = max(base_offset or 0, self.log_end_offset)
        if self.active.base_offset == base and not self.active.size:
            return
        self.active.deactivate()
        self._state.write_snapshot(self.log_end_offset)
        self.flush()
        self._unfinished = base
        segment = self._open(base)
        try:
            self._files.sync_names()
        except BaseException:
            segment.abandon()
            raise
        self.segments.append(segment)
        self._unfinished = None

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from an offset on, including the whole batch that contains it.

        Raises:
            DiskError: the system refused it. Part of the log may be cut off already; the next call
                of any method except `abandon` finishes the truncation first, or raises this again.
        """
        self._check()
        if offset >= self.log_end_offset:
            return
        self._truncation = offset
        self._truncate(offset)

    def flush(self) -> None:
        """Return once everything is durable.

        Raises:
            SyncError: the disk failed.
        """
        self._check()
        with self._files.syncing():
            for segment in self.segments:
                if not segment.is_flushed:
                    segment.flush()
        self.recovery_point = self.log_end_offset

    def close(self) -> None:
        """Close the segments, write a producer snapshot and release the files.

        Returns once everything is durable.

        Raises:
            DiskError: the system refused it; the files stay open.
        """
        self._check()
        self.active.deactivate()
        self.flush()
        self._state.write_snapshot(self.log_end_offset)
        self._state.write_epochs()
        for segment in self.segments:
            segment.abandon()

    def abandon(self) -> None:
        """Release the files as they are, as a crash would."""
        self._fork_guard.check()
        for segment in self.segments:
            segment.abandon()

    def _load(self, is_clean: bool, recovery_point: int) -> None:
        bases = self._files.put_in_place()
        for base in bases:
            has_index = self._files.has(base, Kind.OFFSET_INDEX)
            has_times = self._files.has(base, Kind.TIME_INDEX)
            segment = self._open(base)
            self.segments.append(segment)
            if not has_times:
                segment.time_index.trim()
            try:
                segment.transaction_index.sanity_check()
            except CorruptIndexError:
                has_index = False
            if not has_index:
                self._recover(segment)
        if not is_clean:
            self._recover_from(recovery_point)
        end = self.segments[-1].next_offset() if self.segments else self.log_start_offset
        if end < self.log_start_offset:
            while self.segments:
                self._remove_last()
            end = self.log_start_offset
            self._state.drop_epochs()
        if not self.segments:
            self.segments.append(self._open(self.log_start_offset))
        self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
        self.log_end_offset = max(end, self.active.base_offset)
        self.recovery_point = self.log_end_offset if is_clean else min(recovery_point, end)
        self._files.remove_snapshots_above(self.log_end_offset)
        self._files.sync_names()
        self._rewind()
        self.active.activate()
        if not is_clean:
            self._state.write_epochs()

    def _recover_from(self, recovery_point: int) -> None:
        number = max(
            (n for n, s in enumerate(self.segments) if s.base_offset <= recovery_point), default=0
        )
        while number < len(self.segments):
            segment = self.segments[number]
            number += 1
            try:
                self.cut += self._recover(segment, partial(self._remove_from, number))
            except InvalidOffsetError:
                self._remove_from(number)
                self.cut += segment.truncate_to(segment.base_offset)

    def _remove_from(self, number: int) -> None:
        # This comes before the log is cut before them: afterwards nothing would tell of the cut.
        while len(self.segments) > number:
            self.removed.insert(0, self._remove_last())

    def _recover(
        self, segment: OwnedSegment, before_cut: Callable[[], object] = lambda: None
    ) -> int:
        before = [other for other in self.segments if other.base_offset < segment.base_offset]
        return self._state.recover(segment, self.log_start_offset, before, before_cut)

    def _checked(self, data: bytes) -> list[Batch]:
        walk = BatchWalk(MemoryFile(data), check=True)
        batches = list(walk)
        if not batches or walk.position != len(data):
            raise FormatError(f"byte {walk.position}: {walk.fault or 'a batch is cut off'}")
        following = self.log_end_offset
        for batch in batches:
            if batch.base_offset < following or batch.last_offset < batch.base_offset:
                raise InvalidOffsetError(
                    f"{self.name}: a batch of offsets {batch.base_offset} to "
                    f"{batch.last_offset}, but the next offset is {following}"
                )
            following = batch.next_offset
        return batches

    def _take_back(self, error: MqlakeError) -> None:
        """Undo a failed append in the log and in the files beside it.

        If that fails, too, the content of the files is unknown: only a recovery can determine it.
        """
        try:
            self.active.truncate_to(self.log_end_offset)
            self._rewind()
            self._state.write_epochs()
        except MqlakeError:
            reason = f"an append failed and could not be undone ({error}); open it again"
            self._files.failure = SyncError(f"{self.name}: {reason}")

    def _truncate(self, offset: int) -> None:
        """Do or repeat a truncation. Every step may be repeated after it failed halfway."""
        while len(self.segments) > 1 and self.active.base_offset >= offset:
            self._end_at(self._remove_last())
        self.active.truncate_to(offset)
        self._end_at(max(self.active.next_offset(), self.active.base_offset))
        self._files.remove_snapshots_above(self.log_end_offset)
        self._rewind()
        self._state.write_epochs()
        self._truncation = None

    def _rewind(self) -> None:
        self._state.rewind(self.log_start_offset, self.log_end_offset, self.segments)

    def _end_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def _check(self) -> None:
        self._fork_guard.check()
        self._files.check()
        if self._unfinished is not None:
            # The zeros of its new indexes would be read as entries.
            self._files.remove_segment(self._unfinished)
            self._unfinished = None
        if self._truncation is not None:
            # Some files of the last segment may be removed: what is appended to it would be lost.
            self._truncate(self._truncation)

    def _open(self, base_offset: int) -> OwnedSegment:
        files = self._files
        return OwnedSegment(files.directory, files.path, base_offset, self._settings, self._clock)

    def _remove_last(self) -> int:
        """Remove the last segment durably; return its base offset.

        Segments are removed from the last one backwards, so that a crash leaves no hole in the log.
        """
        segment = self.segments[-1]
        # If this fails, the segment is still listed, and another try removes its remaining files.
        self._files.remove_segment(segment.base_offset)
        self.segments.pop()
        segment.abandon()
        return segment.base_offset
