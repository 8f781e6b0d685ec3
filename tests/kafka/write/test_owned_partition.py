from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.formats.kafka import control_record, record_batch
from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.control_record import ControlType, EndMarker
from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.errors import InvalidOffsetError
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.storage.local import LocalDirectory
from tests.golden_kafka import GoldenPartition

pytestmark = pytest.mark.usefixtures("kernel")

SMALL = LogSettings(segment_bytes=2000, index_interval_bytes=200)

# Written by one run of a broker, whole, and never compacted.
UNTOUCHED = [
    "c-broker-zstd-0", "c-gzip-0", "c-lz4-0", "c-mixed-0", "c-snappy-0", "c-zstd-0", "idempotent-0",
    "index-every-0", "index-none-0", "large-batch-0", "nulls-headers-0", "one-record-batches-0",
    "ooo-ts-0", "plain-none-0", "plain-none-1", "same-ts-0", "seg-none-0", "txn-0", "txn-open-0",
]  # fmt: skip


def records(first: int, count: int) -> list[NewRecord]:
    return [NewRecord(1000 + n, b"k%d" % n, b"value %d" % n) for n in range(first, first + count)]


def fill(partition: OwnedPartition, until: int = 200) -> None:
    while partition.log_end_offset < until:
        partition.append(records(partition.log_end_offset, 10))


def keys(path: Path) -> list[bytes | None]:
    with Partition(LocalDirectory(path)) as partition:
        return [record.key for record in partition.records()]


def names(path: Path, suffix: str) -> list[str]:
    return sorted(file.name for file in path.glob(f"*{suffix}"))


@pytest.mark.parametrize("name", UNTOUCHED)
def test_the_same_batches_give_the_same_files(name: str, tmp_path: Path) -> None:
    """Segments, both indexes, aborted transactions and leader epochs, byte for byte."""
    golden = GoldenPartition(name)
    partition = OwnedPartition(tmp_path, LogSettings.of_topic(golden.settings()))
    with Partition(LocalDirectory(golden.path)) as source:
        for _, _, data in source.batches():
            partition.append_batches(data)
    partition.close()
    for suffix in (".log", ".txnindex"):
        assert names(golden.path, suffix) == names(tmp_path, suffix)
        for file in names(golden.path, suffix):
            assert (golden.path / file).read_bytes() == (tmp_path / file).read_bytes(), file
    for suffix in (".index", ".timeindex"):
        for file in names(golden.recovered(), suffix):
            expected = (golden.recovered() / file).read_bytes()
            assert expected == (tmp_path / file).read_bytes(), file
    recovered = golden.recovered() / "leader-epoch-checkpoint"
    assert recovered.read_bytes() == (tmp_path / "leader-epoch-checkpoint").read_bytes()


def test_records_come_back(tmp_path: Path) -> None:
    partition = OwnedPartition(tmp_path / "t-0", SMALL)
    for codec in Compression:
        partition.append(records(partition.log_end_offset, 30), compression=codec, leader_epoch=2)
    partition.close()
    assert [b"k%d" % n for n in range(150)] == keys(tmp_path / "t-0")
    assert len(names(tmp_path / "t-0", ".log")) > 1


def test_an_append_goes_on_where_the_last_run_ended(tmp_path: Path) -> None:
    for until in (100, 200, 300):
        partition = OwnedPartition(tmp_path, SMALL)
        assert until - 100 == partition.log_end_offset
        fill(partition, until)
        partition.close()
    assert [b"k%d" % n for n in range(300)] == keys(tmp_path)


def test_a_crash_costs_the_torn_batch_only(tmp_path: Path) -> None:
    partition = OwnedPartition(tmp_path, SMALL)
    fill(partition)
    partition.abandon()
    last = tmp_path / names(tmp_path, ".log")[-1]
    size = last.stat().st_size
    last.write_bytes(last.read_bytes() + record_batch.encode(200, records(200, 10))[:-1])
    # An index as large as while it was written, with garbage in it.
    last.with_suffix(".index").write_bytes(b"\1" * 4096)

    partition = OwnedPartition(tmp_path, SMALL, is_clean=False)
    assert partition.cut > 0
    assert (200, size) == (partition.log_end_offset, partition.active.size)
    fill(partition, 210)
    partition.close()
    assert [b"k%d" % n for n in range(210)] == keys(tmp_path)


def test_damage_cuts_all_that_comes_after_it(tmp_path: Path) -> None:
    partition = OwnedPartition(tmp_path, SMALL)
    fill(partition)
    partition.close()
    second = tmp_path / names(tmp_path, ".log")[1]
    data = bytearray(second.read_bytes())
    data[100] ^= 1
    second.write_bytes(data)

    partition = OwnedPartition(tmp_path, SMALL, is_clean=False)
    base = int(second.stem)
    assert (base, 0) == (partition.log_end_offset, partition.active.size)
    assert len(data) == partition.cut
    assert [0, base] == [segment.base_offset for segment in partition.segments]
    fill(partition, 200)
    partition.close()
    assert [b"k%d" % n for n in range(200)] == keys(tmp_path)


def test_nothing_before_the_recovery_point_is_looked_at(tmp_path: Path) -> None:
    partition = OwnedPartition(tmp_path, SMALL)
    fill(partition)
    bases = [segment.base_offset for segment in partition.segments]
    partition.close()
    first = tmp_path / names(tmp_path, ".log")[0]
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    partition = OwnedPartition(tmp_path, SMALL, is_clean=False, recovery_point=bases[1])
    assert (partition.cut, partition.log_end_offset) == (0, 200)
    partition.close()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_missing_indexes_are_made(tmp_path: Path, suffix: str) -> None:
    partition = OwnedPartition(tmp_path, SMALL)
    fill(partition)
    partition.close()
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*index")}
    for path in tmp_path.glob(f"*{suffix}"):
        path.unlink()
    OwnedPartition(tmp_path, SMALL).close()
    if suffix == ".index":
        assert before == {path: path.read_bytes() for path in tmp_path.glob("*.*index")}
    # Kafka leaves a missing time index empty as long as there is an offset index.
    assert [b"k%d" % n for n in range(200)] == keys(tmp_path)


@pytest.mark.parametrize("offset", [0, 5, 10, 105, 110, 199])
def test_truncation(tmp_path: Path, offset: int) -> None:
    partition = OwnedPartition(tmp_path, SMALL)
    fill(partition)
    partition.truncate_to(offset)
    kept = offset // 10 * 10
    assert kept == partition.log_end_offset
    fill(partition, kept + 20)
    partition.close()
    assert [b"k%d" % n for n in range(kept + 20)] == keys(tmp_path)
    snapshots = [int(name[:20]) for name in names(tmp_path, ".snapshot")]
    assert max(snapshots) == kept + 20


def test_transactions(tmp_path: Path) -> None:
    def data(offset: int, producer: int) -> bytes:
        return record_batch.encode(
            offset, records(offset, 2), producer_id=producer, producer_epoch=0, base_sequence=0,
            is_transactional=True,
        )  # fmt: skip

    def marker(offset: int, producer: int, kind: ControlType) -> bytes:
        return control_record.encode_end_marker(
            offset, 5000, EndMarker(kind, 0), producer_id=producer, producer_epoch=0, leader_epoch=0
        )

    partition = OwnedPartition(tmp_path)
    partition.append_batches(data(0, 7) + data(2, 8) + marker(4, 7, ControlType.ABORT))
    partition.append_batches(marker(5, 8, ControlType.COMMIT) + data(6, 9))
    partition.close()
    for recovery_point in (None, 0):
        with Partition(LocalDirectory(tmp_path), recovery_point=recovery_point) as reader:
            assert [tuple(t) for t in reader.aborted_transactions(0, 8)] == [(7, 0, 4, 2)]
            assert (reader.last_stable_offset, reader.log_end_offset) == (6, 8)
            found = reader.records(isolation=Isolation.READ_COMMITTED)
            assert [record.offset for record in found] == [2, 3]

    # The open transaction is known after a restart.
    partition = OwnedPartition(tmp_path)
    partition.append_batches(marker(8, 9, ControlType.COMMIT))
    partition.close()
    with Partition(LocalDirectory(tmp_path)) as reader:
        assert reader.last_stable_offset == 9


@pytest.mark.parametrize("first", [0, 19])
def test_offsets_that_are_there_already(tmp_path: Path, first: int) -> None:
    partition = OwnedPartition(tmp_path)
    fill(partition, 20)
    with pytest.raises(InvalidOffsetError, match="the next offset is 20"):
        partition.append_batches(record_batch.encode(first, records(first, 5)))
    partition.append_batches(record_batch.encode(25, records(25, 5)))
    assert partition.log_end_offset == 30
    partition.close()


@pytest.mark.parametrize("data", [b"", b"x" * 100])
def test_invalid_batches_are_refused(tmp_path: Path, data: bytes) -> None:
    partition = OwnedPartition(tmp_path)
    with pytest.raises(FormatError):
        partition.append_batches(data)
    damaged = bytearray(record_batch.encode(0, records(0, 1)))
    damaged[-1] ^= 1
    with pytest.raises(FormatError, match="checksum"):
        partition.append_batches(bytes(damaged))
    assert partition.active.size == 0
    partition.close()


@pytest.mark.parametrize("step", range(4))
def test_every_step_of_an_interrupted_compaction(tmp_path: Path, step: int) -> None:
    """Files written as `.cleaned`, renamed to `.swap`, the old ones deleted, and put in place."""
    partition = OwnedPartition(tmp_path, SMALL)
    fill(partition)
    bases = [segment.base_offset for segment in partition.segments]
    partition.close()
    compacted = tmp_path / "compacted"
    replacement = OwnedPartition(compacted, LogSettings())
    replacement.append_batches(record_batch.encode(3, [NewRecord(1, b"k3")]))
    replacement.append_batches(record_batch.encode(bases[2] - 1, [NewRecord(1, b"last")]))
    replacement.close()
    state = State.CLEANED if step == 0 else State.SWAP
    for kind in (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX):
        (compacted / file_name(0, kind)).rename(tmp_path / file_name(0, kind, state))
    removed = bases[: {0: 0, 1: 0, 2: 1, 3: 2}[step]]
    for base in removed:
        for kind in (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX):
            (tmp_path / file_name(base, kind)).rename(
                tmp_path / file_name(base, kind, State.DELETED)
            )
    after = [b"k%d" % n for n in range(bases[2], 200)]
    expected = [b"k%d" % n for n in range(200)] if step == 0 else [b"k3", b"last", *after]
    assert expected == keys(tmp_path)
    OwnedPartition(tmp_path, SMALL, is_clean=False).close()
    assert expected == keys(tmp_path)
    suffixes = tuple(str(state) for state in State if state)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(suffixes)]


def test_a_log_directory(tmp_path: Path) -> None:
    for run in range(3):
        with OwnedLogDirectory(tmp_path) as owned:
            assert owned.is_clean
            for number in range(2):
                partition = owned.partition("topic", number)
                assert 10 * run == partition.log_end_offset
                partition.append(records(10 * run, 10))
            assert owned.partition("topic", 1) is partition
            with pytest.raises(StoreError, match="owns this store"), OwnedLogDirectory(tmp_path):
                pass
        directory = LogDirectory(LocalDirectory(tmp_path))
        assert directory.is_clean
        with directory.partition("topic", 1) as reader:
            assert 10 * run + 10 == len(list(reader.records()))


def append_and_fail(root: Path) -> None:
    with OwnedLogDirectory(root) as owned:
        owned.partition("topic", 0).append(records(0, 10))
        raise ZeroDivisionError


def test_a_log_directory_after_a_failure_is_recovered(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        append_and_fail(tmp_path)
    assert not LogDirectory(LocalDirectory(tmp_path)).is_clean
    log = tmp_path / "topic-0" / file_name(0, Kind.LOG)
    log.write_bytes(log.read_bytes() + b"torn")
    with OwnedLogDirectory(tmp_path) as owned:
        assert not owned.is_clean
        assert owned.partition("topic", 0).cut == 4
    assert LogDirectory(LocalDirectory(tmp_path)).is_clean


@pytest.mark.parametrize(("topic", "number"), [("a/b", 0), ("", 0), ("a", -1), ("a", 1 << 31)])
def test_names_that_are_no_partitions(tmp_path: Path, topic: str, number: int) -> None:
    with OwnedLogDirectory(tmp_path) as owned, pytest.raises(StoreError, match="no partition"):
        owned.partition(topic, number)
