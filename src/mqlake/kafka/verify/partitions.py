"""Check several partitions, on as many threads as there are processors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats.damage import Damage
from mqlake.kafka.log.partition_path import PartitionPath
from mqlake.kafka.verify.partition import PartitionReport, verify_partition


class PartitionsReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was seen: bytes of log, batches and records that are whole, and what is wrong."""

    path: str
    ok: bool
    size: int
    batches: int
    records: int
    partitions: list[PartitionReport]


def verify_partitions(
    path: str, paths: Sequence[PartitionPath], *, deep: bool = False
) -> PartitionsReport:
    """Check partitions; what cannot be opened is damage. `deep` reads every record, too."""
    threads = os.cpu_count() or 1
    # One after the other, a partition's segments side by side; or many partitions side by side.
    inner = threads if len(paths) < threads else 1

    def check(partition_path: PartitionPath) -> PartitionReport:
        try:
            with partition_path.open() as partition:
                return verify_partition(partition, deep=deep, threads=inner)
        except (FormatError, StoreError) as error:
            return PartitionReport(
                str(partition_path.path), [], [Damage(partition_path.name, 0, 0, str(error))]
            )

    with ThreadPoolExecutor(1 if inner > 1 else threads) as pool:
        partitions = list(pool.map(check, paths))
    segments = [segment for partition in partitions for segment in partition.segments]
    return PartitionsReport(
        path,
        not any(partition.damage for partition in partitions),
        sum(segment.size for segment in segments),
        sum(segment.batches for segment in segments),
        sum(segment.records for segment in segments),
        partitions,
    )
