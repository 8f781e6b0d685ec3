"""A fault that passes while a partition begins or removes segments costs nothing but the try."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqlake.errors import DiskError, SyncError
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.verify.partition import verify_partition
from mqlake.kafka.write.owned_partition import OwnedPartition
from tests.crash.faulty import Fault, FaultyDisk

PATH = "orders-0"
SMALL = LogSettings(segment_bytes=700, index_interval_bytes=100, segment_index_bytes=240)
PREALLOCATED = LogSettings(
    segment_bytes=700, index_interval_bytes=100, segment_index_bytes=240, preallocate=True
)

MOST_OPERATIONS = 60
END = 40
"""Offset at which three segments are full."""


def append(partition: OwnedPartition) -> None:
    first = partition.log_end_offset
    records = [NewRecord(1000 + n, b"k%d" % n, b"v" * 20) for n in range(first, first + 4)]
    partition.append(records)


def fill(partition: OwnedPartition, end: int) -> int:
    """Append until the log ends at an offset; try again after an error, and count the errors."""
    refused = 0
    while partition.log_end_offset < end:
        try:
            append(partition)
        except DiskError:
            refused += 1
        assert refused < 3, "a fault that passed stays"
    return refused


def check(disk: FaultyDisk) -> None:
    with Partition(disk, PATH) as reader:
        assert [record.offset for record in reader.records()] == list(range(END))
        assert not verify_partition(reader, deep=True).damage


@pytest.mark.parametrize("settings", [SMALL, PREALLOCATED])
@pytest.mark.parametrize("fault", [Fault.NO_DESCRIPTOR, Fault.NO_MEMORY, Fault.FULL])
def test_a_roll_that_failed_may_be_tried_again(fault: Fault, settings: LogSettings) -> None:
    failures = 0
    for at in range(1, MOST_OPERATIONS):
        disk = FaultyDisk(fault, 0)
        partition = OwnedPartition(disk, settings, path=PATH)
        append(partition)
        disk._at = disk.operations + at
        failures += fill(partition, END)
        disk.mend()
        for offset in range(0, END, 3):
            assert partition.segments[0].base_offset == 0
            segment = next(s for s in reversed(partition.segments) if s.base_offset <= offset)
            assert segment.translate_offset(offset) is not None
        partition.close()
        check(disk)
    assert failures > 3


@pytest.mark.parametrize("fault", [Fault.NO_DESCRIPTOR, Fault.NO_MEMORY, Fault.FULL])
def test_a_partition_is_closed_in_good_order_after_a_roll_that_failed(fault: Fault) -> None:
    failures = 0
    for at in range(1, MOST_OPERATIONS):
        disk = FaultyDisk(fault, 0)
        partition = OwnedPartition(disk, SMALL, path=PATH)
        fill(partition, 20)
        disk._at = disk.operations + at
        try:
            partition.roll()
        except DiskError:
            failures += 1
        disk.mend()
        partition.close()
        again = OwnedPartition(disk, SMALL, path=PATH)
        fill(again, END)
        again.close()
        check(disk)
    assert failures


def test_a_log_that_was_cut_is_open_although_no_file_can_be_opened() -> None:
    disk = FaultyDisk(Fault.NO_DESCRIPTOR_FOR_EVER, 0)
    partition = OwnedPartition(disk, PREALLOCATED, path=PATH)
    fill(partition, 12)
    disk._at = 1
    for _ in range(3):
        with pytest.raises(DiskError, match="Too many open files"):
            partition.roll()
        assert partition.active.translate_offset(8) is not None
    disk.mend()
    fill(partition, END)
    partition.close()
    check(disk)


def again(partition: OwnedPartition) -> None:
    partition.truncate_to(CUT)


NEXT_CALLS = [again, append, OwnedPartition.roll, OwnedPartition.flush, OwnedPartition.close]
"""Calls that may follow a truncation that failed."""
CUT = 5
"""Offset in the first of three segments; its batch begins at 4."""


def left(disk: FaultyDisk) -> list[int]:
    with Partition(disk, PATH) as reader:
        assert not verify_partition(reader, deep=True).damage
        return [record.offset for record in reader.records()]


@pytest.mark.parametrize("call", NEXT_CALLS)
@pytest.mark.parametrize("fault", [Fault.INPUT_OUTPUT, Fault.FULL, Fault.READ, Fault.NO_MEMORY])
def test_the_next_call_finishes_a_truncation_that_failed(
    fault: Fault, call: Callable[[OwnedPartition], object]
) -> None:
    failures = 0
    for at in range(1, MOST_OPERATIONS):
        disk = FaultyDisk(fault, 0)
        partition = OwnedPartition(disk, SMALL, path=PATH)
        fill(partition, END)
        partition.flush()
        assert len(partition.segments) > 2
        disk._at = disk.operations + at
        try:
            partition.truncate_to(CUT)
        except SyncError:
            disk.mend()
            with pytest.raises(SyncError):
                call(partition)
            continue
        except DiskError:
            failures += 1
        disk.mend()
        call(partition)
        end = 8 if call is append else 4
        assert partition.log_end_offset == end
        assert partition.recovery_point <= end
        if call is not OwnedPartition.close:
            partition.close()
        assert left(disk) == list(range(end))
        reopened = OwnedPartition(disk, SMALL, path=PATH)
        assert reopened.log_end_offset == end
        reopened.abandon()
    assert failures


def test_nothing_is_appended_while_a_truncation_cannot_be_finished() -> None:
    disk = FaultyDisk(Fault.INPUT_OUTPUT_FOR_EVER, 0)
    partition = OwnedPartition(disk, SMALL, path=PATH)
    fill(partition, END)
    # The .log file of the last segment is removed, its index is not.
    disk._at = disk.operations + 2
    for call in NEXT_CALLS:  # The first one begins the truncation.
        with pytest.raises(DiskError, match="Input/output error"):
            call(partition)
    disk.mend()
    append(partition)
    assert partition.log_end_offset == 8
    fill(partition, END)
    partition.close()
    check(disk)
