"""Check a partition: its segments, and the files beside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import checkpoint_file, partition_metadata
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.verify.segment import SegmentReport, verify_segment


class PartitionReport(msgspec.Struct, frozen=True, rename="camel"):
    """The segments of a partition, ascending, and what is wrong with its other files."""

    path: str
    segments: list[SegmentReport]
    other_damage: list[Damage]

    @property
    def damage(self) -> list[Damage]:
        """Everything that is wrong."""
        found = [damage for segment in self.segments for damage in segment.damage]
        return found + self.other_damage


def verify_partition(
    partition: Partition, *, deep: bool = False, threads: int = 1
) -> PartitionReport:
    """Check the checksum and the fields of every batch, and every index entry against the log.

    Offsets must increase, and the other files must be readable.

    Args:
        deep: also read every record.
        threads: how many segments are checked at the same time.
    """
    last = len(partition.segments) - 1

    def check(number: int) -> SegmentReport:
        segment = partition.segments[number]
        try:
            return verify_segment(segment, deep=deep, is_active=number == last)
        finally:
            segment.close()

    with ThreadPoolExecutor(threads) as pool:
        reports = list(pool.map(check, range(last + 1)))
    for before, after in pairwise(reports):
        if before.next_offset > after.base_offset:
            after.damage.insert(
                0,
                Damage(
                    after.file,
                    0,
                    after.size,
                    f"begins at offset {after.base_offset}, but the segment before it ends at"
                    f" {before.next_offset}",
                ),
            )
    return PartitionReport(partition.path, reports, _other_damage(partition))


def _other_damage(partition: Partition) -> list[Damage]:
    found = [Damage(name, 0, 0, fault) for name, fault in partition.snapshot_faults().items()]
    for name, read in (
        (checkpoint_file.LEADER_EPOCHS, lambda: partition.leader_epochs),
        (partition_metadata.NAME, lambda: partition.metadata),
    ):
        try:
            read()
        except (FormatError, StoreError) as error:
            found.append(Damage(name, 0, 0, str(error)))
    return found
