"""What partitions hold and how they were left, by their indexes: no log is read as a whole."""

from __future__ import annotations

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.partition_metadata import encode_topic_id
from mqlake.kafka.errors import CorruptIndexError
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.partition_path import PartitionPath, PartitionPaths
from mqlake.kafka.log.segment import LogSegment


class EpochSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A leader, and the first offset that it wrote."""

    epoch: int
    start_offset: int


class SegmentSummary(msgspec.Struct, frozen=True, rename="camel"):
    """One segment; bytes and milliseconds."""

    file: str
    base_offset: int
    next_offset: int
    size: int
    largest_timestamp: int
    index_entries: int
    time_index_entries: int
    aborted_transactions: int


class PartitionSummary(msgspec.Struct, frozen=True, rename="camel"):
    """One partition.

    Attributes:
        high_watermark: as the checkpoint of the log directory has it, None if it has not.
        damage: files that contradict themselves.
    """

    path: str
    topic: str | None
    partition: int | None
    topic_id: str | None
    log_start_offset: int
    last_stable_offset: int | None
    log_end_offset: int
    high_watermark: int | None
    size: int
    leader_epochs: list[EpochSummary]
    segments: list[SegmentSummary]
    damage: list[Damage]


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """All that a path names.

    Attributes:
        last_stop_was_clean: None for a partition by itself, and while a broker runs.
        owner: process id of a broker that runs on the log directory.
    """

    path: str
    last_stop_was_clean: bool | None
    owner: int | None
    partitions: list[PartitionSummary]
    damage: list[Damage]


def inspect(path: str, paths: PartitionPaths) -> Summary:
    """Return what there is; what cannot be read is damage."""
    logs = paths.logs
    owner = logs.owner() if logs is not None else None
    damage: list[Damage] = []
    partitions: list[PartitionSummary] = []
    for partition_path in paths.partitions:
        try:
            with partition_path.open() as partition:
                partitions.append(_partition(partition_path, partition))
        except (FormatError, StoreError) as error:
            damage.append(Damage(partition_path.name, 0, 0, str(error)))
    clean = logs.is_clean if logs is not None and owner is None else None
    return Summary(path, clean, owner, partitions, damage)


def _partition(partition_path: PartitionPath, partition: Partition) -> PartitionSummary:
    damage: list[Damage] = []

    def tell(file: str, error: FormatError | StoreError) -> None:
        damage.append(Damage(file, 0, 0, str(error)))

    epochs: list[EpochSummary] = []
    topic_id = stable = None
    try:
        epochs = [EpochSummary(*entry) for entry in partition.leader_epochs]
    except (FormatError, StoreError) as error:
        tell(checkpoint_file.LEADER_EPOCHS, error)
    try:
        if partition.metadata is not None:
            topic_id = encode_topic_id(partition.metadata.topic_id)
    except (FormatError, StoreError) as error:
        tell("partition.metadata", error)
    try:
        stable = partition.last_stable_offset
    except (FormatError, StoreError) as error:
        tell(partition_path.name, error)
    marks: dict[tuple[str, int], int] = {}
    if partition_path.logs is not None:
        marks = partition_path.logs.checkpoint(checkpoint_file.HIGH_WATERMARKS)
    segments: list[SegmentSummary] = []
    for segment in partition.segments:
        try:
            segment.sanity_check()
        except CorruptIndexError as error:
            tell(segment.log.name, error)
        segments.append(_segment(segment))
        segment.close()
    return PartitionSummary(
        path=str(partition_path.path),
        topic=partition_path.topic,
        partition=None if partition_path.topic is None else partition_path.partition,
        topic_id=topic_id,
        log_start_offset=partition.log_start_offset,
        last_stable_offset=stable,
        log_end_offset=partition.log_end_offset,
        high_watermark=marks.get((partition_path.topic or "", partition_path.partition)),
        size=sum(segment.size for segment in segments),
        leader_epochs=epochs,
        segments=segments,
        damage=damage,
    )


def _segment(segment: LogSegment) -> SegmentSummary:
    return SegmentSummary(
        file=segment.log.name,
        base_offset=segment.base_offset,
        next_offset=segment.next_offset(),
        size=segment.size,
        largest_timestamp=segment.largest_timestamp(),
        index_entries=segment.offset_index.entries,
        time_index_entries=segment.time_index.entries,
        aborted_transactions=len(segment.transaction_index.entries),
    )
