from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.kafka import record_batch
from mqlake.formats.kafka.checkpoint_file import LeaderEpoch
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.derived_state import DerivedState
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.kafka.write.partition_files import PartitionFiles
from mqlake.storage.clock import SystemClock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.memory import MemoryFile

EPOCHS = [LeaderEpoch(1, 0), LeaderEpoch(3, 1)]


@pytest.fixture
def files(tmp_path: Path) -> PartitionFiles:
    return PartitionFiles(LocalOwnedDirectory.make(tmp_path), "")


def appended(files: PartitionFiles) -> tuple[DerivedState, OwnedSegment]:
    """Return the state after two batches of one record, of the leader epochs 1 and 3."""
    segment = OwnedSegment(files.directory, files.path, 0, LogSettings(), SystemClock())
    segment.activate()
    state = DerivedState(files)
    for offset, epoch in enumerate((1, 3)):
        data = record_batch.encode(offset, [NewRecord(1000, b"k", b"v")], leader_epoch=epoch)
        batches = list(BatchWalk(MemoryFile(data), check=True))
        segment.add(data, batches)
        state.take_in(batches[0], segment)
    return state, segment


def test_a_new_leader_epoch_is_durable_with_its_first_batch(files: PartitionFiles) -> None:
    state, segment = appended(files)
    assert state.leader_epochs == files.read_epochs() == EPOCHS
    segment.abandon()


def test_a_rewind_drops_later_epochs_and_leaves_their_file(files: PartitionFiles) -> None:
    state, segment = appended(files)
    state.rewind(0, 1, [segment])
    assert state.leader_epochs == EPOCHS[:1]
    assert files.read_epochs() == EPOCHS
    state.write_epochs()
    assert files.read_epochs() == EPOCHS[:1]
    segment.abandon()


def test_the_snapshot_of_the_producers_is_that_of_the_end(files: PartitionFiles) -> None:
    state, segment = appended(files)
    state.write_snapshot(2)
    assert files.snapshots() == [2]
    segment.abandon()
