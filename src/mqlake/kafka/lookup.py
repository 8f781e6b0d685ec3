"""Find a record by offset or by time."""

from __future__ import annotations

import msgspec

from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.partition_path import PartitionPath


class LookupResult(msgspec.Struct, frozen=True, rename="camel"):
    """A record (time in milliseconds; leader epoch -1 if unknown), and its batch (bytes)."""

    path: str
    topic: str | None
    partition: int | None
    offset: int
    timestamp: int
    leader_epoch: int
    file: str
    position: int
    size: int
    base_offset: int
    last_offset: int


def by_offset(
    partition_path: PartitionPath, offset: int, isolation: Isolation
) -> LookupResult | None:
    """Return the first record at an offset or later, or None if no record follows.

    Control records count.

    Raises:
        FormatError: a batch cannot be read.
        StoreError: a file cannot be read.
    """
    with partition_path.open() as partition:
        records = partition.records(offset, isolation=isolation, control=True)
        record = next(records, None)
        if record is None:
            return None
        return _found(
            partition_path, partition, record.offset, record.timestamp, record.leader_epoch
        )


def by_time(
    partition_path: PartitionPath, timestamp: int, isolation: Isolation
) -> LookupResult | None:
    """Return the first record at a time (milliseconds) or later, or None if no record follows.

    Raises:
        FormatError: a batch cannot be read.
        StoreError: a file cannot be read.
    """
    with partition_path.open() as partition:
        found = partition.offset_for_time(timestamp, isolation=isolation)
        if found is None:
            return None
        return _found(partition_path, partition, found.offset, found.timestamp, found.leader_epoch)


def _found(
    partition_path: PartitionPath, partition: Partition, offset: int, timestamp: int, epoch: int
) -> LookupResult:
    segment, batch, _ = next(partition.batches(offset))
    return LookupResult(
        path=str(partition_path.path),
        topic=partition_path.topic,
        partition=None if partition_path.topic is None else partition_path.partition,
        offset=offset,
        timestamp=timestamp,
        leader_epoch=epoch,
        file=segment.log.name,
        position=batch.position,
        size=batch.size,
        base_offset=segment.log.first_offset(batch),
        last_offset=batch.last_offset,
    )
