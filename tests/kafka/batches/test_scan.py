"""The compiled walk beside its twin: the same batches, the same end, the same fault."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mqlake.errors import MqlakeError
from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.record_batch import NewRecord, encode
from mqlake.kafka.batches import kernel as kernels
from mqlake.kafka.batches.scan import BatchScan, each
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.storage.memory import MemoryFile
from tests import golden_kafka
from tests.formats.kafka.mutations import mutate
from tests.golden_kafka import GoldenPartition

Walked = tuple[list[Batch], int, str | None]


def logs() -> list[Path]:
    paths = [log for name in golden_kafka.partitions() for log in GoldenPartition(name).logs]
    return paths + [
        log for name in golden_kafka.LEGACY for log in golden_kafka.legacy(name).glob("*.log")
    ]


def plain(data: bytes, start: int, end: int | None, *, check: bool) -> Walked:
    walk = BatchWalk(MemoryFile(data), start, end, check=check)
    return list(walk), walk.position, walk.fault


def compiled(data: bytes, start: int, end: int | None, *, check: bool, window: int) -> Walked:
    scan = BatchScan(MemoryFile(data), start, end, check=check, window=window)
    found: list[Batch] = []
    for batches in scan:
        rows = each(batches.rows)
        for batch in rows:
            at = batch.position - batches.base
            whole = bytes(batches.buffer[at : at + batch.size])
            assert not check or not len(batches.buffer) or whole == data[batch.position : batch.end]
        found += rows
    return found, scan.position, scan.fault


def same(data: bytes, start: int = 0, end: int | None = None, *, window: int = 1 << 16) -> int:
    for check in (True, False):
        expected = plain(data, start, end, check=check)
        assert expected == compiled(data, start, end, check=check, window=window)
    return len(expected[0])


@pytest.mark.parametrize("window", [100, 5000, 1 << 20])
def test_golden_logs(window: int) -> None:
    found = sum(same(log.read_bytes(), window=window) for log in logs())
    assert found > 3000


def test_a_scan_of_any_range() -> None:
    data = GoldenPartition("seg-none-0").logs[0].read_bytes()[:20_000]
    for at in (*range(200), *range(0, len(data), 997)):
        same(data, at)
        same(data, 0, at)
        same(data[:at])


def test_changed_logs() -> None:
    source = random.Random(20261121)
    paths = logs()
    for number in range(1500):
        whole = source.choice(paths).read_bytes()
        data = mutate(whole[: source.choice((500, 5000, 20_000))], source)
        same(data, window=source.choice((64, 700, 1 << 15)))
        if number % 5 == 0:
            same(bytes(source.choice((3, 70, 200))) + data)


def test_offsets_beyond_63_bits_are_javas() -> None:
    data = bytearray(encode((1 << 63) - 2, [NewRecord(1)] * 5))
    [batch], _, _ = compiled(bytes(data), 0, None, check=True, window=1 << 10)
    assert batch.last_offset == -(1 << 63) + 2
    same(bytes(data))


def test_a_log_that_another_process_cuts() -> None:
    class Cut(MemoryFile):
        size = 1000  # type: ignore[assignment]  # what it had when it was opened

    data = encode(0, [NewRecord(1, b"k", b"v")])
    scan = BatchScan(Cut(data))
    assert [len(batches.rows) for batches in scan] == [1]
    assert (len(data), None) == (scan.position, scan.fault)


def test_small_logs_are_not_worth_loading_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQLAKE_KERNEL", raising=False)
    monkeypatch.setattr(kernels, "_KERNELS", "not loaded")
    monkeypatch.setattr(kernels._Spent, "seconds", 0.0)
    data = encode(0, [NewRecord(1)])
    small, large = MemoryFile(data * 10_000), MemoryFile(data * 40_000)
    answers = [kernels.is_compiled(small) for _ in range(9)]
    assert answers == [False] * 7 + [True] * 2
    assert not kernels.is_compiled(MemoryFile(b"no batch"))
    monkeypatch.setattr(kernels._Spent, "seconds", 0.0)
    assert not kernels.is_compiled(large, 30_000 * len(data))
    assert kernels.is_compiled(MemoryFile(data * 80_000))


def test_kernels_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    file = MemoryFile(encode(0, [NewRecord(1)]))
    for name, expected in (("compiled", True), ("reference", False)):
        monkeypatch.setenv("MQLAKE_KERNEL", name)
        assert kernels.is_compiled(file) == expected
    monkeypatch.setenv("MQLAKE_KERNEL", "fast")
    with pytest.raises(MqlakeError, match="no kernels named 'fast'"):
        kernels.is_compiled(file)
