"""Rebuild a segment's index files from its log, which stays unchanged.

The new files are written beside the old ones with the suffix `.cleaned`, and then replace them.
Kafka removes such files if a crash leaves them there.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import offset_index, time_index
from mqlake.formats.kafka.batch import LOG_OVERHEAD, MIN_LENGTH
from mqlake.formats.kafka.file_name import LOCK, Kind, State, file_name
from mqlake.kafka.index.builder import IndexBuilder
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex
from mqlake.kafka.index.transaction_index import TransactionIndex
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.partition_path import PartitionPath
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.kafka.write.recovery import Recovery
from mqlake.storage.durable import parent
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.owner_lock import OwnerLock
from mqlake.storage.protocol import OwnedDirectory

_INDEXES = (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX)


class RebuiltSegment(msgspec.Struct, frozen=True, rename="camel"):
    """What was rebuilt for one segment.

    Attributes:
        size: bytes of log.
        indexed: bytes of log before the first damage; the indexes end there, too.
        damage: everything after that; empty if the log is undamaged.
    """

    file: str
    base_offset: int
    size: int
    indexed: int
    index_entries: int
    time_index_entries: int
    aborted_transactions: int
    damage: list[Damage]


@contextmanager
def owned(path: Path) -> Generator[None]:
    """Keep brokers away from a partition's directory while the block runs.

    Raises:
        StoreError: a broker runs on the log directory.
    """
    has_lock = (path.absolute().parent / LOCK).exists()
    with OwnerLock(path.absolute().parent, LOCK) if has_lock else nullcontext():
        yield


def rebuild_index(partition_path: PartitionPath, settings: LogSettings) -> list[RebuiltSegment]:
    """Rebuild the index files of a partition's segments.

    Raises:
        OffsetOverflowError, InvalidOffsetError, TransactionStateError: a batch is whole but
            cannot be in its segment; the files of that segment stay unchanged.
        StoreError: a broker runs, or a file cannot be read or written.
    """
    with owned(partition_path.path), partition_path.open() as partition:
        directory = LocalOwnedDirectory(partition_path.path)
        return rebuild_segments(
            directory, "", partition, settings, has_active=partition_path.only is None
        )


def rebuild_segments(
    directory: OwnedDirectory,
    path: str,
    partition: Partition,
    settings: LogSettings,
    *,
    has_active: bool = True,
) -> list[RebuiltSegment]:
    """Rebuild the index files of all segments of a partition in the directory `path`.

    Args:
        has_active: whether its last segment is the one that is appended to.

    Raises:
        The errors of `rebuild_index`.
    """
    segments = partition.segments
    producers = partition.producers_at(segments[0].base_offset) if segments else None
    done: list[RebuiltSegment] = []
    for segment in segments:
        assert producers is not None
        if segment.swapped:
            raise not_in_place(directory.describe(path), segment.base_offset)
        is_active = segment is segments[-1] and has_active
        done.append(_rebuild(directory, path, segment, settings, producers, is_active=is_active))
        segment.close()
    return done


def not_in_place(where: str, base_offset: int) -> StoreError:
    """Return the error for a segment whose `.swap` files have not replaced the older files yet."""
    name = file_name(base_offset, Kind.LOG)
    return StoreError(
        f"{where}: files with the suffix {State.SWAP} are about to replace those of the segment"
        f" {name}; run mqlake kafka recover on the whole partition first"
    )


def _rebuild(
    directory: OwnedDirectory,
    path: str,
    segment: LogSegment,
    settings: LogSettings,
    producers: ProducerState,
    *,
    is_active: bool,
) -> RebuiltSegment:
    base = segment.base_offset
    prefix = f"{path}/" if path else ""
    scratch = {kind: prefix + file_name(base, kind, State.CLEANED) for kind in _INDEXES}
    _remove(directory, scratch)
    try:
        most = _most_entries(segment, settings)
        offsets = OffsetIndex.own(
            directory, scratch[Kind.OFFSET_INDEX], base, most * offset_index.ENTRY_SIZE
        )
        times = TimeIndex.own(
            directory, scratch[Kind.TIME_INDEX], base, most * time_index.ENTRY_SIZE
        )
        transactions = TransactionIndex.own(directory, scratch[Kind.TRANSACTION_INDEX], base)
        index = IndexBuilder(offsets, times, settings.index_interval_bytes)
        recovery = Recovery(segment.log, base, index, transactions, producers, LeaderEpochs())
        try:
            recovery.run()
            index.finish()
            for file in (offsets, times):
                file.trim()
                file.flush()
            transactions.flush()
        finally:
            offsets.abandon()
            times.abandon()
            transactions.close()
        if not directory.exists(scratch[Kind.TRANSACTION_INDEX]):
            directory.create(scratch[Kind.TRANSACTION_INDEX], 0).close()
        for kind in _INDEXES:
            _put_in_place(directory, scratch[kind], prefix + file_name(base, kind))
    finally:
        _remove(directory, scratch)
    return RebuiltSegment(
        file=segment.log.name,
        base_offset=base,
        size=segment.size,
        indexed=recovery.valid,
        index_entries=offsets.entries,
        time_index_entries=times.entries,
        aborted_transactions=len(transactions.entries),
        damage=_damage(segment, recovery, is_active=is_active),
    )


def _most_entries(segment: LogSegment, settings: LogSettings) -> int:
    """Return more entries than a log can have; unused ones take no space on the disk."""
    least_between = max(settings.index_interval_bytes, LOG_OVERHEAD + MIN_LENGTH)
    return segment.size // least_between + 2


def _put_in_place(directory: OwnedDirectory, scratch: str, target: str) -> None:
    # Without an aborted transaction, the transaction index need not exist.
    is_optional = target.endswith(Kind.TRANSACTION_INDEX) and not directory.size(scratch)
    if is_optional and not directory.exists(target):
        return
    directory.replace(scratch, target)
    directory.sync_directory(parent(target))


def _remove(directory: OwnedDirectory, scratch: dict[Kind, str]) -> None:
    for path in scratch.values():
        directory.remove(path)


def _damage(segment: LogSegment, recovery: Recovery, *, is_active: bool) -> list[Damage]:
    left = segment.size - recovery.valid
    # The last segment may end in the middle of a batch, or in unwritten space.
    is_tail = is_active and (recovery.fault is None or segment.is_unwritten(recovery.valid))
    if not left or is_tail:
        return []
    reason = recovery.fault or "a batch extends beyond the end of the file"
    return [Damage(segment.log.name, recovery.valid, left, reason)]
