"""Queues that are written: places, files, holes, trimming, syncing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import FormatError
from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import BLANK_ENTRY, QueueEntry
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.queues.owned_queue import MOST_BLANKS
from mqlake.store.queues.owned_queues import OwnedQueues
from tests.crash.disk import RecordedDisk
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


def test_entries_lie_at_their_places(tmp_path: Path) -> None:
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


def test_an_offset_far_from_all_others_is_not_believed(tmp_path: Path) -> None:
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


def test_a_removed_topic_starts_again_at_zero(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 7))
    queues.append("T", 1, 0, entries(0, 1))

    queues.remove_topic("T")

    assert not (tmp_path / "consumequeue/T").exists()
    assert queues.queues() == []
    queues.append("T", 0, 0, entries(0, 1))
    queues.sync()
    assert queues.max_offset("T", 0) == 1


def test_a_topic_may_go_while_it_is_synced(tmp_path: Path) -> None:
    queues = make(tmp_path)
    queues.append("T", 0, 0, entries(0, 7))

    pending = queues.pending_sync()
    queues.remove_topic("T")
    pending.complete()

    assert queues.queues() == []


def test_a_sync_covers_files_and_the_names_that_lead_to_them() -> None:
    disk = RecordedDisk()
    queues = OwnedQueues(disk, PER_FILE * 20)
    queues.append("T", 0, 0, entries(0, 7))

    pending = queues.pending_sync()
    queues.append("T", 0, 7, entries(7, 8))
    pending.complete()

    synced = [step for step in disk.trace if isinstance(step, Sync | SyncNames)]
    assert [Sync, Sync, SyncNames, SyncNames, SyncNames, SyncNames] == [
        type(step) for step in synced
    ]
    queues.sync()
    assert len([step for step in disk.trace if isinstance(step, Sync)]) - 2 == 1
    queues.sync()
    assert len(synced) + 1 == len(
        [step for step in disk.trace if isinstance(step, Sync | SyncNames)]
    )


def test_more_queues_than_files_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.store.queues.owned_queues._MOST_OPEN", 16)
    queues = make(tmp_path)

    for _ in range(2):
        for queue_id in range(50):
            end = queues.max_offset("T", queue_id)
            queues.append("T", queue_id, end, entries(end, end + 3))
    pending = queues.pending_sync()
    queues.trim(entry(6).physical_offset)
    pending.complete()

    for queue_id in range(50):
        assert entries(0, 6)[-20:] == bytes(queues.entries("T", queue_id, 5, 9))
    queues.close()


def test_a_topic_that_is_no_name_gets_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not usable"):
        make(tmp_path).append("../T", 0, 0, entries(0, 1))
    assert list(tmp_path.iterdir()) == []
