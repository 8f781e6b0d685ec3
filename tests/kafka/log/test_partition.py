from __future__ import annotations

import contextlib
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.file_name import PartitionName
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.verify.partition import verify_partition
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryDirectory
from tests import golden_kafka
from tests.formats.kafka.consumed import as_consumed
from tests.golden_kafka import GoldenPartition

CONSUMED = golden_kafka.partitions(consumed=True)


def opened(name: str) -> Partition:
    topic, number = name.rsplit("-", 1)
    return LogDirectory(LocalDirectory(golden_kafka.log_directory())).partition(topic, int(number))


def local(path: Path, **arguments: Any) -> Partition:
    return Partition(LocalDirectory(path), **arguments)


@pytest.mark.parametrize("name", CONSUMED)
def test_a_consumer_sees_the_same(name: str) -> None:
    golden = GoldenPartition(name)
    with opened(name) as partition:
        found = [as_consumed(record) for record in partition.records()]
        assert golden.records() == found


@pytest.mark.parametrize("recovery_point", [None, 0, 300])
@pytest.mark.parametrize("name", CONSUMED)
def test_a_consumer_of_committed_records_sees_the_same(
    name: str, recovery_point: int | None
) -> None:
    """With the transaction indexes, without any of them, and with the first ones only."""
    truth = GoldenPartition(name).truth("read_committed.json")
    path = golden_kafka.log_directory() / name
    start = truth["beginningOffset"]
    with local(path, recovery_point=recovery_point, log_start_offset=start) as partition:
        assert truth["beginningOffset"] == partition.log_start_offset
        assert truth["highWatermark"] == partition.log_end_offset
        assert truth["lastStableOffset"] == partition.last_stable_offset
        found = [record.offset for record in partition.records(isolation=Isolation.READ_COMMITTED)]
        assert truth["committedOffsets"] == found


def test_recovery_from_the_middle_of_the_transactions() -> None:
    truth = GoldenPartition("txn-0").truth("read_committed.json")
    listed = GoldenPartition("txn-0").truth("index.json")
    count = sum(len(segment["abortedTxns"]) for segment in listed)
    for point in (None, 0, 498, 499, 900):
        with local(golden_kafka.log_directory() / "txn-0", recovery_point=point) as partition:
            assert count == len(partition.aborted_transactions(0, partition.log_end_offset))
            found = partition.records(isolation=Isolation.READ_COMMITTED)
            assert truth["committedOffsets"] == [record.offset for record in found]


@pytest.mark.parametrize("name", CONSUMED)
def test_a_broker_finds_the_same_times(name: str) -> None:
    with opened(name) as partition:
        for case in GoldenPartition(name).truth("offsets_for_times.json"):
            for isolation in Isolation:
                found = partition.offset_for_time(case["timestamp"], isolation=isolation)
                answer = None if found is None else [found.offset, found.timestamp]
                assert (case, case[isolation]) == (case, answer)


def test_ranges_of_offsets() -> None:
    with opened("seg-none-0") as partition:
        everything = [record.offset for record in partition.records()]
        for start, end in ((0, 1), (7, 7), (430, 450), (429, 430), (2400, 9999), (9999, 0)):
            expected = [offset for offset in everything if start <= offset < end]
            assert expected == [record.offset for record in partition.records(start, end)]


def test_committed_ranges_begin_in_the_middle_of_transactions() -> None:
    with opened("txn-0") as partition:
        everything = [r.offset for r in partition.records(isolation=Isolation.READ_COMMITTED)]
        for start in range(0, partition.log_end_offset, 37):
            found = partition.records(start, start + 60, isolation=Isolation.READ_COMMITTED)
            expected = [offset for offset in everything if start <= offset < start + 60]
            assert expected == [record.offset for record in found]


def test_control_records_if_asked_for() -> None:
    with opened("txn-0") as partition:
        plain = {record.offset for record in partition.records()}
        records = list(partition.records(control=True))
        assert list(range(901)) == [record.offset for record in records]
        assert {r.offset for r in records if r.is_control} == {r.offset for r in records} - plain


def test_side_files() -> None:
    with opened("txn-0") as partition:
        assert partition.metadata is not None
        assert [entry.epoch for entry in partition.leader_epochs] == [0, 4]


def test_a_log_directory() -> None:
    directory = LogDirectory(LocalDirectory(golden_kafka.log_directory()))
    found = directory.partitions()
    assert {*golden_kafka.partitions(), "__cluster_metadata-0"} == {
        f"{name.topic}-{name.partition}" for name in found
    }
    assert PartitionName("plain-none", 1, found[0].state) in found
    assert directory.is_clean
    assert directory.owner() is None
    assert directory.partition("delete-records", 0).log_start_offset == 333
    marks = directory.checkpoint(checkpoint_file.HIGH_WATERMARKS)
    for name in found:
        if (name.topic, name.partition) in marks:
            with directory.partition(name.topic, name.partition) as partition:
                assert marks[name.topic, name.partition] == partition.log_end_offset


@pytest.mark.parametrize(
    ("topic", "number"), [("nope", 0), ("../logs/txn", 0), ("txn", 7), ("", 0)]
)
def test_a_missing_partition_is_an_error(topic: str, number: int) -> None:
    with pytest.raises(StoreError, match="no partition"):
        LogDirectory(LocalDirectory(golden_kafka.log_directory())).partition(topic, number)


def test_a_partition_in_memory() -> None:
    golden = GoldenPartition("c-mixed-0")
    files = {f"logs/{path.name}": path.read_bytes() for path in golden.path.iterdir()}
    partition = Partition(MemoryDirectory(files), "logs")
    assert len(golden.records()) == len(list(partition.records()))


def test_an_empty_directory(tmp_path: Path) -> None:
    with local(tmp_path) as partition:
        assert (partition.log_start_offset, partition.log_end_offset) == (0, 0)
        assert list(partition.records(isolation=Isolation.READ_COMMITTED)) == []
        assert partition.offset_for_time(0) is None
        assert partition.metadata is None


@dataclasses.dataclass
class Broken:
    path: Path
    log: Path
    batches: list[dict[str, Any]]

    def change(self, at: int, data: bytes) -> None:
        with self.log.open("r+b") as file:
            file.seek(at)
            file.write(data)

    def read(self) -> tuple[list[int], list[Damage]]:
        damage: list[Damage] = []
        with local(self.path) as partition:
            found = [record.offset for record in partition.records(on_damage=damage.append)]
        return found, damage


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    golden = GoldenPartition("seg-none-0")
    path = golden.copy(tmp_path / golden.name)
    truth = golden.truth("batches.json")[1]
    return Broken(path, path / f"{truth['segment']}.log", truth["batches"])


def offsets_of(batch: dict[str, Any]) -> set[int]:
    return set(range(batch["baseOffset"], batch["lastOffset"] + 1))


def test_a_wrong_check_sum_costs_one_batch(broken: Broken) -> None:
    batch = broken.batches[5]
    broken.change(batch["position"] + 70, b"\xff\xff\xff")
    found, damage = broken.read()
    assert set(range(2500)) - offsets_of(batch) == set(found)
    [one] = damage
    assert (broken.log.name, batch["position"], batch["sizeInBytes"]) == (
        one.file,
        one.offset,
        one.length,
    )
    assert one.reason.startswith("checksum")


def test_a_wrong_length_costs_what_comes_before_the_next_index_entry(broken: Broken) -> None:
    batch = broken.batches[5]
    broken.change(batch["position"] + 8, b"\0\0\0\5")
    found, [damage] = broken.read()
    lost = set(range(2500)) - set(found)
    assert offsets_of(batch) <= lost
    assert len(lost) < 60
    assert damage.offset == batch["position"]
    assert damage.reason.startswith("a batch says that 5 bytes follow")


def test_a_log_that_is_cut_in_the_middle_of_the_partition(broken: Broken) -> None:
    batch = broken.batches[-1]
    size = broken.log.stat().st_size
    with broken.log.open("r+b") as file:
        file.truncate(size - 3)
    found, [damage] = broken.read()
    assert set(range(2500)) - offsets_of(batch) == set(found)
    assert damage.offset + damage.length == size - 3


def test_damage_is_raised_if_nobody_asks_for_it(broken: Broken) -> None:
    broken.change(broken.batches[5]["position"] + 70, b"\xff\xff\xff")
    with local(broken.path) as partition, pytest.raises(FormatError, match=r"log, byte \d+: check"):
        list(partition.records())


def test_damage_at_the_very_beginning(broken: Broken) -> None:
    broken.change(0, bytes(30))
    found, [damage] = broken.read()
    assert (0, broken.log.name) == (damage.offset, damage.file)
    lost = set(range(2500)) - set(found)
    assert offsets_of(broken.batches[0]) <= lost
    assert len(lost) < 100


@pytest.mark.parametrize("tail", [bytes(100), bytes(5000), b"\0\0\1"])
def test_the_tail_of_the_last_log_is_not_damage(tmp_path: Path, tail: bytes) -> None:
    golden = GoldenPartition("seg-none-0")
    path = golden.copy(tmp_path / golden.name)
    last = path / golden.logs[-1].name
    last.write_bytes(last.read_bytes() + tail)
    with local(path) as partition:
        assert partition.log_end_offset == 2500
        assert len(list(partition.records())) == 2500


def test_an_interrupted_swap_is_read_as_if_it_were_done(tmp_path: Path) -> None:
    golden = GoldenPartition("compacted-0")
    path = golden.copy(tmp_path / golden.name)
    first = golden.logs[0].stem
    for suffix in (".log", ".index", ".timeindex"):
        (path / f"{first}{suffix}").rename(path / f"{first}{suffix}.swap")
    # What the swap replaces is still there: the same offsets, before they were compacted.
    shutil.copy(path / f"{first}.log.swap", path / f"{first}.log")
    with local(path) as partition:
        assert [record["offset"] for record in golden.records()] == [
            record.offset for record in partition.records()
        ]


@pytest.mark.parametrize("keep", [0, 10, 147])
def test_snapshots_that_cannot_be_read(tmp_path: Path, keep: int) -> None:
    golden = GoldenPartition("txn-open-0")
    path = golden.copy(tmp_path / golden.name)
    [snapshot] = path.glob("*.snapshot")
    snapshot.write_bytes(snapshot.read_bytes()[:keep])
    with local(path) as partition:
        truth = golden.truth("read_committed.json")
        assert truth["lastStableOffset"] == partition.last_stable_offset


def open_files(path: Path) -> int:
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += str(path) in str(descriptor.readlink())
    return found


def test_no_more_files_are_open_than_needed() -> None:
    path = golden_kafka.log_directory() / "c-lz4-0"
    with local(path) as partition:
        assert len(partition.segments) > 5
        assert open_files(path) == 0
        # The last one is open, too: the end of the log was asked for.
        assert max(open_files(path) for _ in partition.batches()) <= 2
        partition.offset_for_time(1_700_000_005_000)
        verify_partition(partition, threads=1)
        assert open_files(path) <= 2
    assert open_files(path) == 0


def test_a_segment_that_is_removed_while_it_is_read(tmp_path: Path) -> None:
    golden = GoldenPartition("c-lz4-0")
    path = golden.copy(tmp_path / golden.name)
    with local(path) as partition:
        golden_offsets = [record["offset"] for record in golden.records()]
        for log in golden.logs[:2]:
            (path / log.name).unlink()
        with pytest.raises(StoreError, match="No such file"):
            list(partition.records())
        start = int(golden.logs[2].stem)
        found = [record.offset for record in partition.records(start)]
        assert [offset for offset in golden_offsets if offset >= start] == found


def test_an_index_that_is_all_hole_takes_no_memory(tmp_path: Path) -> None:
    golden = GoldenPartition("txn-0")
    path = golden.copy(tmp_path / golden.name)
    with (path / f"{golden.logs[0].stem}.index").open("r+b") as file:
        file.truncate(1 << 40)
    with local(path) as partition, pytest.raises(StoreError, match="the maximum is 268435456"):
        list(partition.records())
