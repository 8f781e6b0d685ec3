"""One partition that this process writes. Kafka: `UnifiedLog`, `LocalLog`, `LogLoader`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqlake.errors import FormatError
from mqlake.formats.kafka import checkpoint_file, producer_snapshot, record_batch, versions
from mqlake.formats.kafka.batch import MAGIC_V2, Batch
from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.batch_walk import BatchWalk
from mqlake.kafka.errors import CorruptIndexError, InvalidOffsetError
from mqlake.kafka.leader_epochs import LeaderEpochs
from mqlake.kafka.owned_segment import OwnedSegment
from mqlake.kafka.producer_state import ProducerState
from mqlake.kafka.segment import LogSegment
from mqlake.kafka.segment_files import sort_files
from mqlake.kafka.settings import Clock, LogSettings, system_clock
from mqlake.kafka.transactions import Replay
from mqlake.storage.fork_guard import ForkGuard
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_write import fsync_directory, fsync_file, rename_durably
from mqlake.storage.memory import MemoryFile


class OwnedPartition:
    """A log that grows at its end, in segments. Not safe for use by several threads.

    Attributes:
        path: of its directory.
        segments: ascending; the last one is active.
        log_start_offset: nothing before it is shown.
        log_end_offset: what the next record gets.
        recovery_point: everything before it was on the disk when last flushed.
        cut: bytes that recovery cut off when the partition was opened.
        removed: base offsets of the segments that went because the log was cut before them.
    """

    def __init__(
        self,
        path: Path,
        settings: LogSettings | None = None,
        *,
        clock: Clock = system_clock,
        is_clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
    ) -> None:
        """Open a partition as Kafka does when it starts; a directory that is not there is made.

        Segments from the one of `recovery_point` on are recovered unless the partition `is_clean`:
        the log is cut after its last good batch, and segments after a cut go.

        Raises:
            OffsetOverflowError: a segment whose offsets are too far from its base; Kafka would
                split it.
            StoreError: a file that cannot be opened or written.
        """
        self.path = path
        self._settings = settings or LogSettings()
        self._clock = clock
        self.log_start_offset = log_start_offset
        self.cut = 0
        self.removed: list[int] = []
        self._fork_guard = ForkGuard(path)
        path.mkdir(parents=True, exist_ok=True)
        self._epochs = LeaderEpochs(self._read_epochs())
        self.segments: list[OwnedSegment] = []
        try:
            self._load(is_clean, recovery_point)
        except BaseException:
            for segment in self.segments:
                segment.abandon()
            raise

    @property
    def active(self) -> OwnedSegment:
        """The segment that batches are added to."""
        return self.segments[-1]

    @property
    def leader_epochs(self) -> list[checkpoint_file.LeaderEpoch]:
        """The leaders that wrote, ascending."""
        return self._epochs.entries

    def append(
        self,
        records: Sequence[NewRecord],
        *,
        compression: Compression = Compression.NONE,
        leader_epoch: int = 0,
    ) -> int:
        """Add records as one batch; return the offset of the first.

        Raises:
            FormatError: no records, or a batch that would be too large.
        """
        first = self.log_end_offset
        self.append_batches(
            record_batch.encode(first, records, compression=compression, leader_epoch=leader_epoch)
        )
        return first

    def append_batches(self, data: bytes) -> None:
        """Add whole batches with good check sums, whose offsets go on from the log's end or above.

        A new segment is begun where Kafka would begin one.

        Raises:
            FormatError: no whole and good batches; nothing was written.
            InvalidOffsetError: an offset that is there already; nothing was written.
            TransactionStateError: a plain batch in the middle of its producer's transaction.
            StoreError: this process is a child, forked since the partition was opened.
        """
        self._fork_guard.check()
        batches = self._checked(data)
        first, last = batches[0], batches[-1]
        newest = max(batch.max_timestamp for batch in batches)
        if self.active.should_roll(len(data), newest, last.last_offset):
            # A version 0 or 1 batch does not say where it begins.
            known = versions.knows_first_offset(first)
            self.roll(first.base_offset if known else self.log_end_offset)
        start = self.active.size
        self.active.append(data)
        for batch in batches:
            self._take_in(batch._replace(position=start + batch.position))
        self.log_end_offset = last.next_offset

    def roll(self, base_offset: int | None = None) -> None:
        """Begin a new segment at the log's end or above, unless the active one is empty there."""
        self._fork_guard.check()
        base = max(base_offset or 0, self.log_end_offset)
        if self.active.base_offset == base and not self.active.size:
            return
        self.active.deactivate()
        self._snapshot()
        self.flush()
        self.segments.append(self._open(base))
        fsync_directory(self.path)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from an offset on; the batch that holds it goes as a whole."""
        self._fork_guard.check()
        if offset >= self.log_end_offset:
            return
        while len(self.segments) > 1 and self.active.base_offset >= offset:
            self._remove(self.segments.pop())
        self.active.truncate_to(offset)
        self.log_end_offset = max(self.active.next_offset(), self.active.base_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self._epochs.truncate_to(self.log_end_offset)
        self._remove_snapshots_above(self.log_end_offset)
        self._producers = self._producers_at(self.log_end_offset, self.segments)
        self._write_epochs()

    def flush(self) -> None:
        """Return once everything is on the disk."""
        self._fork_guard.check()
        for segment in self.segments:
            if segment.base_offset >= self.recovery_point or segment is self.active:
                segment.flush()
        self.recovery_point = self.log_end_offset

    def close(self) -> None:
        """Finish the segments, write a producer snapshot and let go of the files."""
        self.flush()
        self._snapshot()
        self._write_epochs()
        for segment in self.segments:
            segment.close()

    def abandon(self) -> None:
        """Let go of the files as they are, as a crash would."""
        self._fork_guard.check()
        for segment in self.segments:
            segment.abandon()

    def _load(self, is_clean: bool, recovery_point: int) -> None:
        bases = self._put_in_place()
        for base in bases:
            has_index = self._place(base, Kind.OFFSET_INDEX).exists()
            has_times = self._place(base, Kind.TIME_INDEX).exists()
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
                self._remove(self.segments.pop())
            end = self.log_start_offset
            self._epochs = LeaderEpochs()
        if not self.segments:
            self.segments.append(self._open(self.log_start_offset))
        self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
        self.log_end_offset = max(end, self.active.base_offset)
        self.recovery_point = self.log_end_offset if is_clean else min(recovery_point, end)
        self._epochs.truncate_to(self.log_end_offset)
        self._remove_snapshots_above(self.log_end_offset)
        self._producers = self._producers_at(self.log_end_offset, self.segments)
        self.active.activate()
        if not is_clean:
            self._write_epochs()

    def _put_in_place(self) -> list[int]:
        directory = LocalDirectory(self.path)

        def end_of_swap(base: int) -> int:
            segment = LogSegment.read(directory, "", base, State.SWAP)
            try:
                return segment.next_offset()
            finally:
                segment.close()

        files = sort_files(directory.names(""), end_of_swap)
        for name in files.removable:
            (self.path / name).unlink(missing_ok=True)
        for name in files.swapped:
            rename_durably(self.path / name, self.path / name.removesuffix(State.SWAP))
        return [base for base, _ in files.segments]

    def _recover_from(self, recovery_point: int) -> None:
        number = max(
            (n for n, s in enumerate(self.segments) if s.base_offset <= recovery_point), default=0
        )
        while number < len(self.segments):
            segment = self.segments[number]
            try:
                cut = self._recover(segment)
            except (InvalidOffsetError, OSError):
                cut = segment.truncate_to(segment.base_offset)
            number += 1
            if cut:
                self.cut += cut
                for later in self.segments[number:]:
                    self._remove(later)
                    self.removed.append(later.base_offset)
                del self.segments[number:]

    def _recover(self, segment: OwnedSegment) -> int:
        before = [other for other in self.segments if other.base_offset < segment.base_offset]
        producers = self._producers_at(segment.base_offset, before)
        cut = segment.recover(producers, self._epochs)
        self._write_snapshot(producers)
        return cut

    def _producers_at(self, offset: int, segments: Sequence[LogSegment]) -> ProducerState:
        replay = Replay(
            self._snapshots(), self._read_snapshot, at_most=offset, start=self.log_start_offset
        )
        replay.forward(segments, offset)
        return replay.state

    def _checked(self, data: bytes) -> list[Batch]:
        walk = BatchWalk(MemoryFile(data), check=True)
        batches = list(walk)
        if not batches or walk.position != len(data):
            raise FormatError(f"byte {walk.position}: {walk.fault or 'a batch is cut off'}")
        following = self.log_end_offset
        for batch in batches:
            if batch.base_offset < following or batch.last_offset < batch.base_offset:
                raise InvalidOffsetError(
                    f"{self.path}: a batch of offsets {batch.base_offset} to {batch.last_offset}"
                    f" where {following} is next"
                )
            following = batch.next_offset
        return batches

    def _take_in(self, batch: Batch) -> None:
        if batch.magic < MAGIC_V2:
            return
        known = len(self._epochs.entries)
        self._epochs.take_in(batch)
        if len(self._epochs.entries) != known:
            self._write_epochs()
        aborted = self._producers.update(batch, self.active.log.records)
        if aborted is not None:
            self.active.transaction_index.append(aborted)

    def _open(self, base_offset: int) -> OwnedSegment:
        return OwnedSegment(self.path, base_offset, self._settings, self._clock)

    def _remove(self, segment: OwnedSegment) -> None:
        segment.abandon()
        for kind in Kind:
            self._place(segment.base_offset, kind).unlink(missing_ok=True)

    def _place(self, offset: int, kind: Kind) -> Path:
        return self.path / file_name(offset, kind)

    def _snapshots(self) -> list[int]:
        names = (path.name for path in self.path.glob(f"*{Kind.SNAPSHOT}"))
        return sort_files(names, lambda base: base).snapshots

    def _read_snapshot(self, offset: int) -> bytes:
        return self._place(offset, Kind.SNAPSHOT).read_bytes()

    def _snapshot(self) -> None:
        self._producers.end_offset = self.log_end_offset
        self._write_snapshot(self._producers)

    def _write_snapshot(self, producers: ProducerState) -> None:
        path = self._place(producers.end_offset, Kind.SNAPSHOT)
        path.write_bytes(producer_snapshot.encode(list(producers.producers.values())))
        fsync_file(path)

    def _remove_snapshots_above(self, offset: int) -> None:
        for snapshot in self._snapshots():
            if snapshot > offset:
                self._place(snapshot, Kind.SNAPSHOT).unlink()

    def _read_epochs(self) -> list[checkpoint_file.LeaderEpoch]:
        path = self.path / checkpoint_file.LEADER_EPOCHS
        data = path.read_bytes() if path.exists() else b""
        return checkpoint_file.decode_leader_epochs(data)

    def _write_epochs(self) -> None:
        path = self.path / checkpoint_file.LEADER_EPOCHS
        scratch = path.with_name(f"{path.name}.tmp")
        scratch.write_bytes(checkpoint_file.encode_leader_epochs(self._epochs.entries))
        fsync_file(scratch)
        rename_durably(scratch, path)
