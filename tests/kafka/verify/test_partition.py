from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from mqlake.formats.damage import Damage
from mqlake.formats.kafka.record_json import to_json
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.verify.partition import PartitionReport, verify_partition
from mqlake.storage.local import LocalDirectory
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition

pytestmark = pytest.mark.usefixtures("kernel")


def verified(path: Path, *, deep: bool = False, threads: int = 1) -> PartitionReport:
    with Partition(LocalDirectory(path)) as partition:
        return verify_partition(partition, deep=deep, threads=threads)


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_what_kafka_wrote_is_whole(name: str) -> None:
    golden = GoldenPartition(name)
    report = verified(golden.path, deep=True, threads=2)
    assert report.damage == []
    truth = golden.truth("batches.json")
    assert [
        (f"{segment['segment']}.log", segment["size"], len(segment["batches"])) for segment in truth
    ] == [(segment.file, segment.size, segment.batches) for segment in report.segments]
    assert sum(batch["count"] for segment in truth for batch in segment["batches"]) == sum(
        segment.records for segment in report.segments
    )
    entries = golden.truth("index.json")
    assert [
        (len(segment["indexEntries"]), len(segment["timeIndexEntries"])) for segment in entries
    ] == [(segment.index_entries, segment.time_index_entries) for segment in report.segments]


@pytest.mark.parametrize("name", golden_kafka.LEGACY)
def test_what_kafka_wrote_in_versions_0_and_1_is_whole(name: str) -> None:
    assert verified(golden_kafka.legacy(name), deep=True).damage == []


def test_json_names() -> None:
    report = verified(GoldenPartition("txn-open-0").path)
    segment = json.loads(msgspec.json.encode(report))["segments"][0]
    assert list(segment)[:6] == ["file", "baseOffset", "nextOffset", "size", "batches", "records"]
    assert list(segment)[6:] == ["indexEntries", "timeIndexEntries", "damage"]


class Changed:
    """A copy of a golden partition with bytes changed."""

    def __init__(self, tmp_path: Path, name: str = "txn-0") -> None:
        golden = GoldenPartition(name)
        self.path = golden.copy(tmp_path / name)
        self.base = golden.logs[0].stem
        self.batches = golden.truth("batches.json")[0]["batches"]

    def change(self, suffix: str, at: int, new: bytes) -> list[Damage]:
        file = self.path / f"{self.base}{suffix}"
        data = bytearray(file.read_bytes())
        data[at : at + len(new)] = new
        file.write_bytes(data)
        return verified(self.path).damage


def test_a_check_sum(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    # No batch of an index entry, so that nothing else is wrong.
    batch = changed.batches[1]
    [damage] = changed.change(".log", batch["position"] + 65, b"\xff")
    expected = (f"{changed.base}.log", batch["position"], batch["sizeInBytes"])
    assert expected == (damage.file, damage.offset, damage.length)


def test_a_base_offset_which_no_check_sum_covers(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    batch = changed.batches[5]
    damage = changed.change(".log", batch["position"] + 7, bytes([batch["baseOffset"] - 4]))
    assert damage[-1].file.endswith(".log")
    assert damage[-1].reason == (
        f"begins at offset {batch['baseOffset'] - 4}, but the next offset is {batch['baseOffset']}"
    )


@pytest.mark.parametrize(
    ("suffix", "at", "new", "reason"),
    [
        (".index", 3, b"\1", "no batch that ends at offset 1 at 2441"),
        (".index", 7, b"\0", "no batch that ends at offset 15 at"),
        (".timeindex", 7, b"\0", "is not the largest timestamp up to offset 15"),
        (".timeindex", 11, b"\1", "is not the largest timestamp up to offset 1,"),
        (".txnindex", 9, b"\x77", "there is no transaction of producer 119 that ends at 16"),
        (".txnindex", 25, b"\2", "there is no transaction of producer 5 that ends at 2"),
    ],
)
def test_index_entries(tmp_path: Path, suffix: str, at: int, new: bytes, reason: str) -> None:
    changed = Changed(tmp_path)
    found = changed.change(suffix, at, new)
    assert found
    assert found[0].file == f"{changed.base}{suffix}"
    assert found[0].offset == 0
    assert reason in found[0].reason


@pytest.mark.parametrize(("suffix", "size"), [(".index", 8), (".timeindex", 12), (".txnindex", 34)])
def test_entries_beyond_the_end(tmp_path: Path, suffix: str, size: int) -> None:
    changed = Changed(tmp_path)
    file = changed.path / f"{changed.base}{suffix}"
    at = file.stat().st_size
    found = changed.change(suffix, at, b"\0" * (size - 9) + b"\x7f" * min(size, 9))
    assert (at, size) == (found[-1].offset, found[-1].length)


def test_an_index_that_goes_back(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    first = (changed.path / f"{changed.base}.index").read_bytes()[:8]
    found = changed.change(".index", 8, first)
    assert any("cannot follow" in damage.reason for damage in found)


def test_a_segment_that_begins_too_early(tmp_path: Path) -> None:
    golden = GoldenPartition("seg-none-0")
    path = golden.copy(tmp_path / golden.name)
    second = golden.logs[1].stem
    for suffix in (".log", ".index", ".timeindex"):
        new = f"{int(second) - 5:020d}{suffix}"
        (path / f"{second}{suffix}").rename(path / new)
    reasons = [damage.reason for damage in verified(path).damage]
    assert any(reason.startswith("begins at offset") for reason in reasons)


def test_damage_that_only_a_deep_look_sees(tmp_path: Path) -> None:
    from mqlake.formats.kafka import record_batch
    from mqlake.formats.kafka.crc32c import crc32c

    data = bytearray(record_batch.encode(0, [record_batch.NewRecord(1, b"k", b"v")] * 3))
    data[61] = 0x7F
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    (tmp_path / f"{0:020d}.log").write_bytes(data)
    assert verified(tmp_path).damage == []
    [damage] = verified(tmp_path, deep=True).damage
    assert "a record of" in damage.reason


def test_a_torn_end_is_no_damage_of_the_active_segment(tmp_path: Path) -> None:
    golden = GoldenPartition("seg-none-0")
    path = golden.copy(tmp_path / golden.name)
    last = path / golden.logs[-1].name
    data = last.read_bytes()
    for tail in (bytes(1000), data[:100]):
        last.write_bytes(data + tail)
        assert verified(path).damage == []
    last.write_bytes(data + b"\0" * 50 + b"x" * 50)
    [damage] = verified(path).damage
    assert (len(data), 100) == (damage.offset, damage.length)


def test_an_index_and_a_log_that_both_lead_astray_end(tmp_path: Path) -> None:
    """Entries that point back must not make reading go round."""
    golden = GoldenPartition("seg-none-0")
    path = golden.copy(tmp_path / golden.name)
    log = golden.logs[0].name
    data = bytearray((path / log).read_bytes())
    batches = golden.truth("batches.json")[0]["batches"]
    at = batches[len(batches) // 2]["position"]
    data[at + 8 : at + 12] = b"\0\0\0\1"
    (path / log).write_bytes(data)
    index = (path / log).with_suffix(".index")
    entries = index.read_bytes()
    back = b"".join(entries[n : n + 8] for n in range(len(entries) - 8, -1, -8))
    index.write_bytes(back)
    assert verified(path).damage
    with Partition(LocalDirectory(path)) as partition:
        damage: list[Damage] = []
        found = list(partition.records(on_damage=damage.append))
        assert damage
        assert len(found) > 2000


@pytest.mark.parametrize("name", golden_kafka.partitions(consumed=True))
def test_records_as_json(name: str) -> None:
    with Partition(LocalDirectory(golden_kafka.log_directory() / name)) as partition:
        start = GoldenPartition(name).truth("read_committed.json")["beginningOffset"]
        found = [golden_kafka.short(to_json(record)) for record in partition.records(start)]
    assert GoldenPartition(name).records() == found
