"""Queues that are written: places, files, holes, trimming, syncing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqlake.errors import DiskError, FormatError, SyncError
from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import BLANK_ENTRY, QueueEntry
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.queues.owned_queue import MOST_BLANKS
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.queue_kind import SIMPLE
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.trace import Sync, SyncNames

PER_FILE = 5


def entry(number: int) -> QueueEntry:
    return QueueEntry(1000 * number, 100, number)


def entries(start: int, end: int) -> bytes:
    return b"".join(consume_queue.encode(entry(number)) for number in range(start, end))


def make(path: Path) -> OwnedQueues:
    return OwnedQueues(LocalOwnedDirectory(path), PER_FILE * 20)


def names(path: Path) -> list[int]:
    return sorted(int(file.name) // 20 for file in path.iterdir())


def test_entries_are_at_their_queue_offsets(tmp_path: Path) -> None:
    queues = make(tmp_path)

    queues.append("T", 2, 0, entries(0, 3))
    queues.append("T", 2, 3, entries(3, 12))

    assert (queues.min_offset("T", 2), queues.max_offset("T", 2)) == (0, 12)
    assert names(tmp_path / "consumequeue/T/2") == [0, 5, 10]
    data = b"".join(file.read_bytes() for file in sorted((tmp_path / "consumequeue/T/2").iterdir()))
    assert entries(0, 12).ljust(300, b"\0") == data
    assert queues.queues() == [("T", 2)]


@pytest.mark.parametrize(("start", "count"), [(0, 12), (4, 2), (3, 100), (11, 1), (12, 5), (90, 1)])
def test_reading_crosses_files_and_ends_at_the_end(start: int, count: int, tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 12))

    assert entries(min(start, 12), min(start + count, 12)) == bytes(
        queues.entries("T", 0, start, count)
    )
    assert queues.entries("Other", 0, start, count) == b""


def test_a_queue_that_begins_above_zero_begins_with_blanks(tmp_path: Path) -> None:
    queues = make(tmp_path)

    queues.append("T", 0, 8, entries(8, 9))

    queue = queues.queue("T", 0)
    assert names(tmp_path / "consumequeue/T/0") == [5]
    assert [BLANK_ENTRY] * 3 + [entry(8)] == [queue.entry(number) for number in range(5, 9)]
    assert (queues.min_offset("T", 0), queues.max_offset("T", 0)) == (8, 9)


def test_places_of_missing_records_are_blank_and_the_first_record_keeps_its_own(
    tmp_path: Path,
) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 2))

    assert queues.append("T", 0, 4, entries(4, 5)) == 1
    assert queues.append("T", 0, 1, entries(7, 8)) == 0
    assert queues.append("T", 0, 3, entries(3, 6)) == 1

    queue = queues.queue("T", 0)
    assert [entry(0), entry(1), BLANK_ENTRY, BLANK_ENTRY, entry(4), entry(5)] == [
        queue.entry(number) for number in range(6)
    ]


def test_a_queue_offset_far_from_all_others_is_ignored(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 2))

    assert queues.append("T", 0, MOST_BLANKS + 3, entries(4, 5)) == 0
    assert queues.append("New", 0, 1 << 62, entries(4, 5)) == 0
    assert queues.max_offset("T", 0) == 2
    assert queues.max_offset("New", 0) == 0


def test_trimming_removes_whole_files_but_the_last(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 12))
    queues.append("Old", 0, 0, entries(0, 7))

    assert queues.trim(entry(4).physical_offset) == 0
    assert queues.min_offset("T", 0) == 4
    assert queues.trim(entry(4).physical_offset + 1) == 2
    assert names(tmp_path / "consumequeue/T/0") == [5, 10]
    assert (queues.min_offset("T", 0), queues.max_offset("T", 0)) == (5, 12)
    assert queues.trim(1 << 40) == 1
    assert (queues.min_offset("T", 0), queues.max_offset("T", 0)) == (12, 12)
    assert (queues.min_offset("Old", 0), queues.max_offset("Old", 0)) == (7, 7)


def remove(queues: OwnedQueues, topic: str) -> None:
    queues.end(topic)
    for _ in queues.burial(topic):
        pass


def test_a_removed_topic_starts_again_at_zero(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 7))
    queues.append("T", 1, 0, entries(0, 1))

    assert queues.end("T") == [0, 1]
    assert queues.queues() == queues.ids("T") == []
    assert queues.sums() == (8, 0)  # as the files on the disk
    assert len(list(queues.burial())) == 3

    assert not (tmp_path / "consumequeue/T").exists()
    assert queues.sums() == (0, 0)
    assert not queues.has_dead
    queues.append("T", 0, 0, entries(0, 1))
    queues.files.sync()
    assert queues.max_offset("T", 0) == 1


def test_a_topic_goes_a_file_at_a_time_and_its_successor_has_none_of_them(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 17))
    queues.append("T", 1, 0, entries(0, 1))
    queues.end("T")
    burial = queues.burial("T")
    next(burial)
    assert names(tmp_path / "consumequeue/T/0") == [5, 10, 15]
    queues.append("T", 0, 0, entries(20, 21))
    assert names(tmp_path / "consumequeue/T/0") == [0]
    assert len(list(burial)) == 1
    queues.files.sync()
    assert queues.queues() == [("T", 0)]
    assert not (tmp_path / "consumequeue/T/1").exists()
    assert queues.entries("T", 0, 0, 9) == entries(20, 21)


def test_a_burial_that_the_disk_refuses_is_completed_by_the_next() -> None:
    counted = FaultyDisk(Fault.INPUT_OUTPUT, at=-1)
    queues = OwnedQueues(counted, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))
    before = counted.operations
    remove(queues, "T")
    for at in range(before + 1, counted.operations + 1):
        disk = FaultyDisk(Fault.INPUT_OUTPUT, at)
        queues = OwnedQueues(disk, PER_FILE * 20)
        queues.append("T", 0, 0, entries(0, 7))
        queues.end("T")
        with pytest.raises(DiskError):
            list(queues.burial())
        assert queues.queues() == []
        list(queues.burial())
        assert not queues.has_dead
        assert not disk.exists("consumequeue/T")


def test_a_queue_with_later_messages_stays(tmp_path: Path) -> None:
    queues, before = make(tmp_path), entry(7).physical_offset
    queues.append("T", 0, 0, entries(0, 7))
    queues.append("T", 1, 0, entries(0, 8))
    assert queues.end("T", before) == [0]
    list(queues.burial())
    assert queues.queues() == [("T", 1)]
    assert (queues.min_offset("T", 1), queues.max_offset("T", 1)) == (0, 8)
    assert not (tmp_path / "consumequeue/T/0").exists()


def test_files_of_several_dead_queues_of_one_name_go_together(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 12))
    queues.files.sync()
    queues = make(tmp_path)
    queues.adopt("T", 1, (), 0)
    for base in (0, 100, 200):
        queues.adopt_dead("T", 0, (base,), SIMPLE)
    list(queues.burial())
    # The topic still has a queue, even without files.
    assert [path.name for path in (tmp_path / "consumequeue/T").iterdir()] == []
    assert not queues.has_dead


def test_a_topic_may_go_while_it_is_synced(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 7))

    pending = queues.files.pending_sync()
    remove(queues, "T")
    pending.complete()

    assert queues.queues() == []


def test_the_next_sync_covers_the_names_of_removed_topics() -> None:
    disk = RecordedDisk()
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))
    queues.files.sync()
    remove(queues, "T")
    assert queues.files.pending_sync().directories == ["consumequeue"]


def test_a_sync_covers_files_and_the_names_that_lead_to_them() -> None:
    disk = RecordedDisk()
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))

    pending = queues.files.pending_sync()
    queues.append("T", 0, 7, entries(7, 8))
    pending.complete()

    synced = [step for step in disk.trace if isinstance(step, Sync | SyncNames)]
    assert [Sync, Sync, SyncNames, SyncNames, SyncNames, SyncNames] == [
        type(step) for step in synced
    ]
    queues.files.sync()
    assert len([step for step in disk.trace if isinstance(step, Sync)]) - 2 == 1
    queues.files.sync()
    assert len(synced) + 1 == len(
        [step for step in disk.trace if isinstance(step, Sync | SyncNames)]
    )


def test_more_queues_than_files_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.store.queues.owned_queue_files._MOST_OPEN", 16)
    queues = make(tmp_path)

    for _ in range(2):
        for queue_id in range(50):
            end = queues.max_offset("T", queue_id)
            queues.append("T", queue_id, end, entries(end, end + 3))
    pending = queues.files.pending_sync()
    queues.trim(entry(6).physical_offset)
    pending.complete()

    for queue_id in range(50):
        assert entries(0, 6)[-20:] == bytes(queues.entries("T", queue_id, 5, 9))
    queues.files.close()


def test_a_file_that_is_too_short_gets_its_size_again_when_no_more_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.store.queues.owned_queue_files._MOST_OPEN", 16)
    queues = make(tmp_path)
    for queue_id in range(50):
        queues.append("T", queue_id, 0, entries(0, 1))
    for queue_id in range(30):
        os.truncate(tmp_path / f"consumequeue/T/{queue_id}/{0:020d}", 7)
    for queue_id in range(30):
        queues.append("T", queue_id, 1, entries(1, 2))
        assert bytes(queues.entries("T", queue_id, 1, 1)) == entries(1, 2)
    queues.files.sync()
    queues.files.close()


def test_an_invalid_topic_name_gets_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not usable"):
        make(tmp_path).append("../T", 0, 0, entries(0, 1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", [Fault.NO_DESCRIPTOR, Fault.FULL, Fault.INPUT_OUTPUT])
def test_a_file_that_could_not_be_made_is_made_by_the_same_call(fault: Fault) -> None:
    counted = FaultyDisk(fault, at=-1)
    OwnedQueues(counted, PER_FILE * 20).append("T", 0, 0, entries(0, 7))
    for at in range(1, counted.operations + 1):
        disk = FaultyDisk(fault, at)
        queues = OwnedQueues(disk, PER_FILE * 20)
        with pytest.raises(DiskError):
            queues.append("T", 0, 0, entries(0, 7))
        queues.append("T", 0, 0, entries(0, 7))
        assert entries(0, 7) == bytes(queues.entries("T", 0, 0, 7))
        queues.files.sync()


@pytest.mark.parametrize("first", [5, 8, 2 * MOST_BLANKS + 3])
@pytest.mark.parametrize("fault", [Fault.FULL, Fault.SHORT_WRITE])
def test_a_queue_whose_first_write_was_refused_begins_at_the_same_file(
    fault: Fault, first: int
) -> None:
    counted = FaultyDisk(fault, at=-1)
    OwnedQueues(counted, PER_FILE * 20).append("T", 0, first, entries(0, 1))
    for at in range(1, counted.operations + 1):
        disk = FaultyDisk(fault, at)
        queues = OwnedQueues(disk, PER_FILE * 20)
        with pytest.raises(DiskError):
            queues.append("T", 0, first, entries(0, 1))
        assert queues.min_offset("T", 0) == queues.max_offset("T", 0) <= first
        assert queues.append("T", 0, first, entries(0, 1)) == 1
        assert (queues.min_offset("T", 0), queues.max_offset("T", 0)) == (first, first + 1)
        assert [int(name) // 20 for name in disk.names("consumequeue/T/0")] == [first - first % 5]


def test_what_could_not_be_opened_is_synced_the_next_time() -> None:
    disk = FaultyDisk(Fault.NO_DESCRIPTOR, at=-1)
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))
    disk.fail_next(Fault.NO_DESCRIPTOR)
    with pytest.raises(DiskError) as refused:
        queues.files.sync()
    assert not isinstance(refused.value, SyncError)
    before = len(disk.trace)
    queues.files.sync()
    synced = disk.trace[before:]
    assert sum(isinstance(step, Sync) for step in synced) == 2
    assert sum(isinstance(step, SyncNames) for step in synced) == 4
    before = len(disk.trace)
    queues.files.sync()
    assert disk.trace[before:] == []


def test_what_is_written_while_a_sync_runs_is_synced_by_the_next() -> None:
    disk = RecordedDisk()
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 2))
    first = queues.files.pending_sync()
    queues.append("T", 0, 2, entries(2, 3))
    first.complete()
    assert len(queues.files.pending_sync().files) == 1


def test_a_file_that_cannot_be_removed_stays_to_be_synced() -> None:
    disk = FaultyDisk(Fault.INPUT_OUTPUT, at=-1)
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))
    disk.fail_next(Fault.INPUT_OUTPUT)
    with pytest.raises(DiskError):
        queues.trim(1 << 40)
    assert len(queues.files.pending_sync().files) == 2
    assert queues.trim(1 << 40) == 1
    assert len(queues.files.pending_sync().files) == 1


def test_a_closed_file_that_somebody_removed_fails_the_sync() -> None:
    disk = RecordedDisk()
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))
    queues.files.close()
    (gone, *_) = disk.names("consumequeue/T/0")
    disk.bystander().remove(f"consumequeue/T/0/{gone}")
    with pytest.raises(SyncError, match="the file was removed"):
        queues.files.sync()


def test_a_closed_file_that_was_trimmed_meanwhile_does_not() -> None:
    queues = OwnedQueues(RecordedDisk(), PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))
    queues.files.close()
    pending = queues.files.pending_sync()
    assert queues.trim(1 << 40) == 1
    pending.complete()
