"""Recovery and verification, compiled and in plain Python: not a byte, not a word apart."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import MqlakeError
from mqlake.kafka.log import segment
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.verify.partition import verify_partition
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryDirectory
from tests.kafka import mutations

Monkey = pytest.MonkeyPatch

SETTINGS = (
    LogSettings(segment_index_bytes=1 << 16, index_interval_bytes=0),
    LogSettings(segment_index_bytes=1 << 16, index_interval_bytes=300),
    LogSettings(segment_index_bytes=64, index_interval_bytes=100),
)


def recovered(path: Path, settings: LogSettings) -> tuple[Any, dict[str, bytes]]:
    try:
        partition = OwnedPartition(path, settings, is_clean=False)
    except MqlakeError as error:
        # What is left half done may differ.
        return (type(error), str(error).replace(str(path), "")), {}
    outcome = partition.cut, partition.log_end_offset, partition.leader_epochs
    partition.close()
    return outcome, {file.name: file.read_bytes() for file in path.iterdir()}


def verified(path: Path) -> Any:
    with Partition(LocalDirectory(path)) as partition:
        try:
            return verify_partition(partition).segments
        except MqlakeError as error:
            return str(error)


def both(monkeypatch: Monkey, files: dict[str, bytes], scratch: Path, settings: LogSettings) -> Any:
    answers: list[Any] = []
    for name in ("compiled", "reference"):
        monkeypatch.setenv("MQLAKE_KERNEL", name)
        path = scratch / "p"
        path.mkdir()
        for file, data in files.items():
            (path / file).write_bytes(data)
        answers.append((verified(path), recovered(path, settings), verified(path)))
        shutil.rmtree(path)
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize("settings", SETTINGS)
def test_golden_partitions(settings: LogSettings, tmp_path: Path, monkeypatch: Monkey) -> None:
    for files in mutations.samples(1 << 17):
        both(monkeypatch, files, tmp_path, settings)


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.nightly)])
def test_changed_partitions(count: int, tmp_path: Path, monkeypatch: Monkey) -> None:
    source = random.Random(20261121)
    partitions = mutations.samples()
    damaged = 0
    for _ in range(count):
        files = mutations.change(source.choice(partitions), source)
        before, _, _ = both(monkeypatch, files, tmp_path, source.choice(SETTINGS))
        damaged += isinstance(before, str) or any(segment.damage for segment in before)
    assert damaged > count // 3


def test_epochs_of_rows() -> None:
    import numpy as np

    from mqlake.kafka.batches.columns import BATCH

    source = random.Random(1)
    for _ in range(200):
        rows = np.zeros(source.randint(1, 12), BATCH)
        rows["leader_epoch"] = [source.randint(-1, 3) for _ in rows]
        rows["base_offset"] = sorted(source.randrange(50) for _ in rows)
        many, single = LeaderEpochs(), LeaderEpochs()
        many.take_in_rows(rows)
        for row in rows:
            single.take_in_rows(row.reshape(1))
        assert many.entries == single.entries


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.nightly)])
def test_where_logs_without_an_index_end(count: int, monkeypatch: Monkey) -> None:
    monkeypatch.setattr(segment, "_LONG_TAIL", -1)
    source = random.Random(5)
    ends: set[int] = set()
    for number in range(count):
        files = source.choice(mutations.samples())
        files = mutations.change(files, source) if number else files
        logs = {f"p/{name}": data for name, data in files.items() if name.endswith(".log")}
        found: list[list[int]] = []
        for kernel in ("compiled", "reference"):
            monkeypatch.setenv("MQLAKE_KERNEL", kernel)
            with Partition(MemoryDirectory(logs), "p") as partition:
                found.append([one.next_offset() for one in partition.segments])
        assert found[0] == found[1]
        ends.update(found[0])
    assert len(ends) > count // 4
