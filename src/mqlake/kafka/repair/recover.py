"""Recover what an unclean stop left, as Kafka does when it starts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.file_name import METADATA_TOPIC
from mqlake.kafka.log.partition_path import PartitionPath, PartitionPaths
from mqlake.kafka.repair.rebuild_index import not_in_place, owned
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.storage.local_owned import LocalOwnedDirectory


class RecoveredPartition(msgspec.Struct, frozen=True, rename="camel"):
    """What a recovery left of a partition.

    Attributes:
        segments: that there are now.
        log_end_offset: what the next record gets.
        cut: bytes that were cut off the log, without those of removed segments.
        removed: base offsets of the removed segments after a cut.
    """

    path: str
    segments: int
    log_end_offset: int
    cut: int
    removed: list[int]


def recover(
    path: Path, paths: PartitionPaths, settings: LogSettings, *, everything: bool = False
) -> list[RecoveredPartition]:
    """Recover a log directory from its recovery points, or all of a partition or a segment.

    A log directory that was stopped cleanly needs nothing, and only gets indexes that are missing;
    `everything` recovers all of it even so. It is left as by a clean stop. KRaft's own log is left
    to Kafka, which always recovers it.

    Raises:
        OffsetOverflowError: a segment whose offsets are too far from its base; Kafka would split
            it.
        StoreError: a broker runs, a file cannot be read or written, or the one segment that was
            given is about to be replaced by `.swap` files.
        FormatError: a checkpoint that cannot be read.
    """
    if paths.logs is not None:
        with OwnedLogDirectory(path, recover_all=everything) as logs:
            return [
                _report(logs.partition(partition_path.topic, partition_path.partition, settings))
                for partition_path in paths.partitions
                if partition_path.topic is not None and partition_path.topic != METADATA_TOPIC
            ]
    [partition_path] = paths.partitions
    with owned(partition_path.path):
        if partition_path.only is not None:
            return [_recover_segment(partition_path, settings)]
        partition = OwnedPartition(
            partition_path.path,
            settings,
            is_clean=False,
            log_start_offset=_log_start(partition_path),
        )
        report = _report(partition)
        partition.close()
        return [report]


def _log_start(partition_path: PartitionPath) -> int:
    if partition_path.logs is None or partition_path.topic is None:
        return 0
    starts = partition_path.logs.checkpoint(checkpoint_file.LOG_START_OFFSETS)
    return starts.get((partition_path.topic, partition_path.partition), 0)


def _report(partition: OwnedPartition) -> RecoveredPartition:
    return RecoveredPartition(
        partition.name,
        len(partition.segments),
        partition.log_end_offset,
        partition.cut,
        partition.removed,
    )


def _recover_segment(partition_path: PartitionPath, settings: LogSettings) -> RecoveredPartition:
    """Recover one segment; what comes after it stays."""
    base = partition_path.only or 0
    with partition_path._replace(only=None).open() as partition:
        if not partition.segments or partition.segments[0].swapped:
            raise not_in_place(partition.path, base)
        producers = partition.producers_at(base)
        epochs = LeaderEpochs(partition.leader_epochs)
    directory = LocalOwnedDirectory(partition_path.path)
    segment = OwnedSegment(directory, "", base, settings)
    try:
        cut = segment.recover(producers, epochs)
        following = segment.next_offset()
        segment.deactivate()
        segment.flush()
        directory.sync_directory("")
    except BaseException:
        segment.abandon()
        raise
    segment.abandon()
    return RecoveredPartition(segment.log.name, 1, following, cut, [])
