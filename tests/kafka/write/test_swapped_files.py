"""Readers and recovery agree about `.swap` files, at whichever change recovery ends."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.partition_path import find_partitions
from mqlake.kafka.repair.rebuild_index import rebuild_index
from mqlake.kafka.repair.recover import recover
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.verify.partition import verify_partition
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.kafka.write.partition_files import PartitionFiles
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests.golden_kafka import GoldenPartition

pytestmark = pytest.mark.usefixtures("kernel")

SEGMENT = (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX)
INDEXES = SEGMENT[1:]
EVENTS = ("live", "swap", "swap and live", "empty swap", "index swaps", "worthless")

CASES = [
    (first, second)
    for first in EVENTS
    for second in EVENTS
    # Nothing is put in place, and nothing is removed, before all `.cleaned` files are renamed.
    if first != "worthless" or second not in ("swap", "index swaps")
]


class KilledError(Exception):
    """The process has ended."""


class InterruptedDirectory(LocalOwnedDirectory):
    """A directory whose process ends at one of its changes."""

    left = 0

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def replace(self, source: str, target: str) -> None:
        self._step()
        super().replace(source, target)

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KilledError


def place(path: Path, base: int, event: str) -> None:
    """Leave the files of a segment as an interrupted compaction or split does."""
    for kind in SEGMENT:
        live, swap = (path / file_name(base, kind, state) for state in (State.LIVE, State.SWAP))
        if event == "swap" or (event == "index swaps" and kind in INDEXES):
            live.rename(swap)
        elif event == "swap and live":
            shutil.copy(live, swap)
        elif event == "empty swap":
            swap.touch()
        elif event == "worthless":
            shutil.copy(live, swap)
            (path / file_name(base, kind, State.CLEANED)).write_bytes(b"half")


def seen(path: Path) -> tuple[list[int], ...]:
    with Partition(LocalDirectory(path)) as partition:
        assert verify_partition(partition).damage == []
        return (
            [segment.base_offset for segment in partition.segments],
            *([record.offset for record in partition.records(isolation=i)] for i in Isolation),
        )


@pytest.mark.parametrize(("first", "second"), CASES)
def test_readers_and_recovery_see_the_same(first: str, second: str, tmp_path: Path) -> None:
    golden = GoldenPartition("txn-0")
    whole = seen(golden.path)
    left = golden.copy(tmp_path / "left")
    bases = [int(log.stem) for log in golden.logs]
    for base, event in zip(bases, (first, second), strict=True):
        place(left, base, event)
    before = seen(left)
    assert before == whole
    chance = random.Random(f"{first} {second}")
    for steps in sorted(chance.sample(range(12), 4)):
        path = shutil.copytree(left, tmp_path / "torn", dirs_exist_ok=False)
        directory = InterruptedDirectory(path)
        directory.left = steps
        try:
            PartitionFiles(directory, "").put_in_place()
        except KilledError:
            assert seen(path) == before
        OwnedPartition(path).close()
        assert seen(path) == before
        suffixes = tuple(state for state in State if state)
        assert not [file for file in path.iterdir() if file.name.endswith(suffixes)]
        shutil.rmtree(path)


@pytest.mark.parametrize("event", ["swap and live", "index swaps"])
def test_one_segment_is_not_repaired_before_its_files_are_in_place(
    event: str, tmp_path: Path
) -> None:
    golden = GoldenPartition("txn-0")
    path = golden.copy(tmp_path / golden.name)
    place(path, 0, event)
    segment = path / file_name(0, Kind.LOG)
    paths = find_partitions(segment)
    with pytest.raises(StoreError, match="are about to replace"):
        recover(segment, paths, LogSettings())
    with pytest.raises(StoreError, match="are about to replace"):
        rebuild_index(paths.partitions[0], LogSettings())
    recover(path, find_partitions(path), LogSettings())
    assert recover(segment, find_partitions(segment), LogSettings())[0].cut == 0
