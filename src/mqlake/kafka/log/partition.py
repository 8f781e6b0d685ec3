"""Read one partition: its segments as one log.

Upstream: `UnifiedLog`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol, Self, TypeVar

from mqlake.errors import FormatError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import checkpoint_file, partition_metadata, producer_snapshot, versions
from mqlake.formats.kafka.batch import Batch, Record
from mqlake.formats.kafka.checkpoint_file import LeaderEpoch
from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.formats.kafka.partition_metadata import PartitionMetadata
from mqlake.formats.kafka.transaction_index import AbortedTransaction
from mqlake.kafka.batches.log_file import FoundRecord
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kafka.files.lazy_file import read_whole
from mqlake.kafka.isolation import AbortedBatches, Isolation
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.log.segment_files import sort_files
from mqlake.kafka.log.transactions import ProducerReplay
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.storage.protocol import Directory

OnDamage = Callable[[Damage], None]


class _DamageWalk(Protocol):
    @property
    def position(self) -> int: ...

    @property
    def fault(self) -> str | None: ...


Walk = TypeVar("Walk", bound=_DamageWalk)


class Partition:
    """The log of a partition, opened for reading; a context manager.

    Attributes:
        path: path of its directory, for messages.
        segments: ascending; may be empty.
        log_start_offset: records before this offset are not shown.
    """

    def __init__(
        self,
        directory: Directory,
        path: str = "",
        *,
        log_start_offset: int | None = None,
        recovery_point: int | None = None,
        only: int | None = None,
    ) -> None:
        """Open the partition in the directory `path`, or `only` its segment with that base offset.

        Args:
            log_start_offset: from the checkpoint, if it names the partition.
            recovery_point: if Kafka was not stopped cleanly, the offset from which on only the logs
                themselves are trusted; None trusts all transaction indexes.

        Raises:
            StoreError: the directory cannot be read.
        """
        self.path = directory.describe(path)
        self._directory = directory
        self._prefix = f"{path}/" if path else ""
        files = sort_files(directory.names(path), self._end_of_swap)
        self._snapshots, self._swapped = files.snapshots, frozenset(files.swapped)
        self.segments = [
            LogSegment.read(directory, path, base, swapped)
            for base, swapped in files.segments
            if only in (None, base)
        ]
        self._bases = [segment.base_offset for segment in self.segments]
        first = self._bases[0] if self._bases else 0
        self.log_start_offset = max(first, log_start_offset or 0)
        self._recovery_point = recovery_point

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the files."""
        for segment in self.segments:
            segment.close()

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last batch."""
        return self.segments[-1].next_offset() if self.segments else self.log_start_offset

    @cached_property
    def metadata(self) -> PartitionMetadata | None:
        """The content of `partition.metadata`, or None if the file does not exist.

        Raises:
            FormatError: it cannot be read.
        """
        data = self._read(partition_metadata.NAME)
        return None if data is None else partition_metadata.decode(data)

    @cached_property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """The content of `leader-epoch-checkpoint`, which is empty until Kafka knows an epoch.

        Raises:
            FormatError: it cannot be read.
        """
        data = self._read(checkpoint_file.LEADER_EPOCHS)
        return checkpoint_file.decode_leader_epochs(data or b"")

    def snapshot_faults(self) -> dict[str, str]:
        """Return what is wrong with producer snapshots, by file name."""
        faults: dict[str, str] = {}
        for offset in self._snapshots:
            try:
                producer_snapshot.decode(self._snapshot(offset))
            except FormatError as error:
                faults[file_name(offset, Kind.SNAPSHOT)] = str(error)
        return faults

    @cached_property
    def last_stable_offset(self) -> int:
        """The first offset that may still be undecided: all before it is committed or aborted.

        Raises:
            FormatError: the end of a transaction cannot be read.
        """
        undecided = self._replay.state.first_open_offset()
        return self.log_end_offset if undecided is None else undecided

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records from offset `start` to before `end`.

        Raises:
            FormatError: the end of a transaction cannot be read.
        """
        found = [
            entry
            for entry in self._replay.aborted
            if entry.last_offset >= max(start, self._trusted_end) and entry.first_offset < end
        ]
        for segment in self.segments[self._number(start) :]:
            if segment.base_offset >= self._trusted_end:
                break
            listed = segment.transaction_index.between(start, end)
            found += listed.transactions
            if listed.is_complete:
                break
        return found

    def batches(
        self, start: int | None = None, *, on_damage: OnDamage | None = None
    ) -> Iterator[tuple[LogSegment, Batch, bytes]]:
        """Yield segment, batch and the batch's bytes, from the batch that contains `start` on.

        Checksums are verified. After damage, it continues at the next whole batch that it can
        find, and passes what it left out to `on_damage`. A last batch that is cut off is not
        damage: Kafka may be writing it.

        Raises:
            FormatError: damage, if `on_damage` is None.
        """

        def begin(segment: LogSegment, position: int) -> BatchWalk:
            return segment.log.batches(position, check=True)

        for segment, walk in self.walks(start, begin, on_damage=on_damage):
            for batch in walk:
                yield segment, batch, walk.content(batch)

    def walks(
        self,
        start: int | None,
        begin: Callable[[LogSegment, int], Walk],
        *,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[LogSegment, Walk]]:
        """Yield walks created by `begin`, from the batch that contains `start` on.

        Iterate over each before the next. Damage is handled as in `batches`.

        Raises:
            FormatError: damage, if `on_damage` is None.
        """
        start = self.log_start_offset if start is None else max(start, self.log_start_offset)
        for number in range(self._number(start), len(self.segments)):
            segment = self.segments[number]
            position = segment.position_of(start)
            while position < segment.size:
                walk = begin(segment, position)
                yield segment, walk
                position = walk.position
                if position >= segment.size or self._is_tail(number, walk.fault, position):
                    break
                position = self._skip(segment, position, walk.fault, on_damage)
            segment.close()

    def visible(
        self, start: int | None = None, end: int | None = None, *, isolation: Isolation
    ) -> tuple[int, int]:
        """Return the first offset that a consumer would see, and the one after the last.

        Raises:
            FormatError: the end of a transaction cannot be read.
        """
        start = self.log_start_offset if start is None else max(start, self.log_start_offset)
        committed = isolation is Isolation.READ_COMMITTED
        limit = self.last_stable_offset if committed else self.log_end_offset
        return start, limit if end is None else min(end, limit)

    def records(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        control: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[Record]:
        """Yield the records from offset `start` to before `end`, as a consumer would see them.

        Control records are left out unless requested. READ_COMMITTED ends at the last stable
        offset, and leaves out aborted records. Damage is handled as in `batches`.

        Raises:
            FormatError: damage, if `on_damage` is None.
        """
        start, end = self.visible(start, end, isolation=isolation)
        if start >= end:
            return
        committed = isolation is Isolation.READ_COMMITTED
        aborted = AbortedBatches(self.aborted_transactions(start, end) if committed else ())
        for segment, batch, data in self.batches(start, on_damage=on_damage):
            # A batch of version 0 or 1 does not contain its first offset.
            if versions.knows_first_offset(batch) and batch.base_offset >= end:
                return
            if batch in aborted or (batch.is_control and not control) or batch.last_offset < start:
                continue
            try:
                records = versions.decode_records(batch, data, segment.log.limit)
            except FormatError as error:
                report_damage(on_damage, segment, batch.position, batch.size, str(error))
                continue
            for record in records:
                if start <= record.offset < end:
                    yield record

    def offset_for_time(
        self, timestamp: int, *, isolation: Isolation = Isolation.READ_UNCOMMITTED
    ) -> FoundRecord | None:
        """Return the first record at a time (milliseconds) or later, as a broker answers.

        Control records count. Also None if the record is not visible yet.

        Upstream: `UnifiedLog.fetchOffsetByTimestamp`.

        Raises:
            FormatError: a batch cannot be read.
        """
        committed = isolation is Isolation.READ_COMMITTED
        limit = self.last_stable_offset if committed else self.log_end_offset
        for segment in self.segments:
            if segment.largest_timestamp() >= timestamp:
                found = segment.find_offset_by_timestamp(timestamp, self.log_start_offset)
                return found if found is not None and found.offset < limit else None
            segment.close()
        return None

    @cached_property
    def _trusted_end(self) -> int:
        """The offset below which the transaction indexes of segments are trusted."""
        if self._recovery_point is None or not self.segments:
            return self.log_end_offset + 1
        return self._bases[self._number(self._recovery_point)]

    @cached_property
    def _replay(self) -> ProducerReplay:
        at_most = min(self._trusted_end, self.log_end_offset)
        replay = ProducerReplay(self._snapshots, self._snapshot, at_most, self.log_start_offset)
        number = self._number(replay.state.end_offset)
        replay.forward(self.segments[number:], self.log_end_offset)
        return replay

    def producers_at(self, offset: int) -> ProducerState:
        """Return the state of the producers at an offset, from a snapshot and the logs.

        Raises:
            FormatError: the end of a transaction cannot be read.
            TransactionStateError: the batches are in an order that no producer writes.
        """
        replay = ProducerReplay(self._snapshots, self._snapshot, offset, self.log_start_offset)
        if replay.state.end_offset < offset:  # Otherwise the log's end need not be read.
            number = self._number(replay.state.end_offset)
            replay.forward(self.segments[number:], min(offset, self.log_end_offset))
        return replay.state

    def _number(self, offset: int) -> int:
        """Return the number of the segment that contains an offset; 0 if it is before all."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def _is_tail(self, number: int, fault: str | None, position: int) -> bool:
        if number + 1 < len(self.segments):
            return False
        return fault is None or self.segments[number].is_unwritten(position)

    def _skip(
        self, segment: LogSegment, position: int, fault: str | None, on_damage: OnDamage | None
    ) -> int:
        following = segment.resume_after(position)
        reason = fault or "a batch extends beyond the end of the file"
        report_damage(on_damage, segment, position, following - position, reason)
        return following

    def _end_of_swap(self, base_offset: int) -> int:
        segment = LogSegment.read(
            self._directory, self._prefix.rstrip("/"), base_offset, frozenset(Kind)
        )
        try:
            return segment.next_offset()
        finally:
            segment.close()

    def _snapshot(self, offset: int) -> bytes:
        swap = file_name(offset, Kind.SNAPSHOT, State.SWAP)
        name = swap if swap in self._swapped else file_name(offset, Kind.SNAPSHOT)
        return self._read(name) or b""

    def _read(self, name: str) -> bytes | None:
        return read_whole(self._directory, f"{self._prefix}{name}")


def report_damage(
    on_damage: OnDamage | None, segment: LogSegment, position: int, length: int, reason: str
) -> None:
    """Report damage to `on_damage`.

    Raises:
        FormatError: the damage, if `on_damage` is None.
    """
    if on_damage is None:
        raise FormatError(f"{segment.log.name}, byte {position}: {reason}")
    on_damage(Damage(segment.log.name, position, length, reason))
