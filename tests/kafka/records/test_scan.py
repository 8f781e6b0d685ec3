"""Records as columns beside the same records as values."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.damage import Damage
from mqlake.formats.java_string import decode as decode_text
from mqlake.formats.kafka import record_batch
from mqlake.formats.kafka.batch import Record
from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.crc32c import crc32c
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.formats.kafka.varint import decode_varint
from mqlake.kafka.batches.scan import each
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.records import scan as record_scan
from mqlake.kafka.records.scan import Records, RecordScan
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryDirectory
from tests import golden_kafka
from tests.formats.kafka.mutations import mutate, with_good_check_sum
from tests.golden_kafka import GoldenPartition
from tests.kafka import mutations


def values(records: Records) -> Iterator[Record]:
    batches = each(records.batches)
    for row in records.rows:
        batch = batches[row["batch"]]

        def part(name: str, row: object = row) -> bytes | None:
            at, length = int(row[f"{name}_at"]), int(row[f"{name}_length"])
            return None if length < 0 else records.buffer[at : at + length].tobytes()

        headers = []
        data, at = part("headers") or b"", 0
        for _ in range(row["header_count"]):
            length, at = decode_varint(data, at)
            name = decode_text(data[at : at + length])
            length, at = decode_varint(data, at + length)
            headers.append((name, None if length < 0 else data[at : at + length]))
            at += max(0, length)
        assert at == len(data)
        yield Record(
            int(row["offset"]),
            int(row["timestamp"]),
            batch.timestamp_type,
            batch.leader_epoch,
            part("key"),
            part("value"),
            tuple(headers),
            batch.is_control,
        )


def outcome(read: Iterator[Record], damage: list[Damage]) -> object:
    found: list[Record] = []
    try:
        found.extend(read)
    except MqlakeError as error:
        return str(error), damage
    return found, damage


def same(partition: Partition, *span: int, isolation: Isolation, control: bool = False) -> int:
    lists: tuple[list[Damage], list[Damage]] = [], []
    as_values = partition.records(
        *span, isolation=isolation, control=control, on_damage=lists[0].append
    )
    scan = RecordScan(
        partition, *span, isolation=isolation, control=control, on_damage=lists[1].append
    )
    expected = outcome(as_values, lists[0])
    assert expected == outcome((value for records in scan for value in values(records)), lists[1])
    return len(expected[0])


def places() -> list[Path]:
    golden = [GoldenPartition(name).path for name in golden_kafka.partitions()]
    return golden + [golden_kafka.legacy(name) for name in golden_kafka.LEGACY]


@pytest.mark.parametrize("path", places(), ids=lambda path: path.name)
def test_golden_partitions(path: Path) -> None:
    with Partition(LocalDirectory(path)) as partition:
        for isolation in Isolation:
            same(partition, isolation=isolation)
        same(partition, isolation=Isolation.READ_UNCOMMITTED, control=True)
        end = partition.log_end_offset
        for start, stop in ((7, 8), (end // 3, 2 * end // 3), (end - 1, end + 5), (5, 5)):
            same(partition, start, stop, isolation=Isolation.READ_COMMITTED)


def test_changed_partitions() -> None:
    source = random.Random(20261121)
    partitions = mutations.samples()
    seen = 0
    for _ in range(300):
        files = mutations.change(source.choice(partitions), source)
        directory = MemoryDirectory({f"p/{name}": data for name, data in files.items()})
        try:
            partition = Partition(directory, "p")
            for isolation in Isolation:
                seen += same(partition, isolation=isolation)
        except MqlakeError:
            continue
    assert seen > 10_000


def changed_batches(count: int) -> Iterator[bytes]:
    """Yield batches whose records are changed, with good check sums."""
    source = random.Random(1)
    records = [
        NewRecord(source.choice((0, 5, 1 << 40, -(1 << 62))), key, bytes(length), headers)
        for key in (None, b"", b"key")
        for length in (0, 1, 70, 9000)
        for headers in ((), (("h", None),), (("name", b"value" * 30), ("", b"")))
    ]
    whole = [record_batch.encode(9, source.sample(records, 3)) for _ in range(20)]
    for _ in range(count):
        batch = source.choice(whole)
        yield with_good_check_sum(batch[:61] + mutate(batch[61:], source))


def test_changed_records() -> None:
    """Where the one finds fault, the other does."""
    seen = 0
    for data in changed_batches(3000):
        partition = Partition(MemoryDirectory({f"p/{0:020d}.log": data}), "p")
        seen += same(partition, isolation=Isolation.READ_UNCOMMITTED)
    assert seen > 1000


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_more_records_than_rows(codec: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_scan, "_MOST_ROWS", 100)
    data = record_batch.encode(0, [NewRecord(1, b"k", b"v")] * 1050, compression=codec)
    partition = Partition(MemoryDirectory({f"p/{0:020d}.log": data}), "p")
    assert same(partition, isolation=Isolation.READ_UNCOMMITTED) == 1050
    sizes = [len(records.rows) for records in RecordScan(partition)]
    assert sizes == [100] * 10 + [50]


@pytest.mark.parametrize("codec", Compression)
def test_a_batch_without_records_may_hold_anything(codec: Compression) -> None:
    data = bytearray(record_batch.encode(0, [NewRecord(1, b"k", b"v")], compression=codec))
    data[57:61], data[61:65] = bytes(4), b"\xff" * 4
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    partition = Partition(MemoryDirectory({f"p/{0:020d}.log": bytes(data)}), "p")
    assert same(partition, isolation=Isolation.READ_UNCOMMITTED) == 0


def test_damage_is_an_error_without_a_listener() -> None:
    data = bytearray(record_batch.encode(0, [NewRecord(1, b"k", b"v")] * 3))
    data[61] = 0x7F
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    partition = Partition(MemoryDirectory({f"p/{0:020d}.log": bytes(data)}), "p")
    with pytest.raises(FormatError, match="byte 0: a record of -64 bytes"):
        list(RecordScan(partition))
