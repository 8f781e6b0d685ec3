"""Verify a store while a broker writes it: what was complete is judged, what is coming is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats import record
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import VerifyReport, settled, verify
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import FlushDiskType, StoreSettings
from mqlake.store.snapshot import Snapshot
from tests.crash.clock import ManualClock

SEGMENT = 1 << 16
STAGES = ("index files", "records and their entries", "consume queues", "index entries")


class Live:
    """A store that is written, in this process, while another part of it verifies."""

    def __init__(self, path: Path) -> None:
        settings = StoreSettings(
            flush_disk_type=FlushDiskType.SYNC_FLUSH,
            mapped_file_size_commit_log=SEGMENT,
            mapped_file_size_consume_queue=2000,
            max_hash_slot_num=50,
            max_index_num=300,
        )
        self.path = path
        self.store = OwnedStore.open(LocalOwnedDirectory(path), settings, ManualClock())
        self.count = 0

    def append(self, count: int) -> None:
        """Append messages of several queues, each with keys, and dispatch none."""
        for _ in range(count):
            self.count += 1
            keys = f"k{self.count} all"
            message = Message(f"T{self.count % 3}", b"x" * 150, keys=keys, queue_id=self.count % 2)
            assert self.store.puts.put(message).is_ok

    def put(self, count: int) -> None:
        """Append messages, sync and dispatch them: files of all kinds roll."""
        self.append(count)
        self.store.durability.sync_log()


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    # Another process's, as verify sees it.
    monkeypatch.setattr(Snapshot, "owner", 4711)
    monkeypatch.setattr(settled, "_LOOK_INTERVAL", 0)
    live = Live(tmp_path)
    live.put(500)
    yield live
    live.store.abandon()


class Interleaved(LocalEngine):
    """An engine that lets something happen before each stage and each task."""

    def __init__(self, happens: Callable[[str], object]) -> None:
        super().__init__(1)
        self._happens = happens

    def run(self, task: Callable[[Any], Any], jobs: Sequence[Any], what: str) -> list[Any]:
        def interrupted(job: Any) -> Any:
            self._happens(what)
            return task(job)

        self._happens(what)
        return super().run(interrupted, jobs, what)


def check(live: Live, happens: Callable[[str], object] = lambda what: None) -> VerifyReport:
    return verify(live.path, Interleaved(happens), tasks=5)


@pytest.mark.parametrize("stage", STAGES)
def test_messages_that_come_before_a_stage_are_no_damage(live: Live, stage: str) -> None:
    report = check(live, lambda what: live.put(150) if what == stage else None)

    assert (report.ok, report.damage, report.notes) == (True, [], [])
    assert report.records == 500
    assert report.queue_entries.good == 500
    assert report.index_entries.good == 1000


def test_messages_that_come_all_the_time_are_no_damage(live: Live) -> None:
    report = check(live, lambda what: live.put(37))

    assert (report.ok, report.damage) == (True, [])


def test_what_is_appended_and_not_dispatched_is_no_damage(live: Live) -> None:
    def happens(what: str) -> None:
        live.append(40)
        live.store.log.prepare_next()

    live.append(100)
    report = check(live, happens)

    assert (report.ok, report.damage, report.records) == (True, [], 600)
    assert report.queue_entries.undispatched == 100
    assert report.index_entries.undispatched == 200


def test_a_run_of_records_whose_first_size_is_not_there_yet(live: Live) -> None:
    # As in the middle of `append_record`: a whole record stands behind one that has no size yet.
    log = live.store.log
    live.append(2)
    first = live.store.watermarks.confirmed
    place = log.place(first)
    assert place is not None
    file = live.store.directory.open_writable(place.segment.path)
    size = file.read(place.at, 4)
    file.write(place.at, bytes(4))
    report = check(live)
    assert (report.ok, report.damage, report.records) == (True, [], 500)
    file.write(place.at, size)
    file.close()
    assert check(live).records == 502


def test_a_dispatch_that_has_written_some_of_its_queues(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest entry is there, while entries of records before it are not."""
    live.append(60)
    queue = live.store.queues.queue("T2", 0)
    queue_append = queue.append
    late: list[tuple[int, memoryview]] = []

    def append_later(offset: int, data: memoryview) -> int:
        late.append((offset, memoryview(bytes(data))))
        return 0

    monkeypatch.setattr(queue, "append", append_later)
    live.store.log.unsynced().complete()
    live.store.tick()
    assert late

    def end_of_dispatch(seconds: float) -> None:
        # The dispatch goes on when the verification waits for the first time.
        for offset, data in late:
            queue_append(offset, data)
        late.clear()
        monkeypatch.setattr(queue, "append", queue_append)
        live.put(6)

    monkeypatch.setattr(settled.time, "sleep", end_of_dispatch)
    report = check(live)
    assert (report.ok, report.damage) == (True, [])
    assert not late


def test_an_index_file_that_is_just_being_made(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    new = live.path / "index" / "20300101000000000"
    new.touch()
    monkeypatch.setattr(settled.time, "sleep", lambda seconds: new.unlink(missing_ok=True))
    assert check(live).ok


def test_a_log_file_that_is_just_being_made(live: Live) -> None:
    last = max(int(path.name) for path in (live.path / "commitlog").iterdir())
    new = live.path / "commitlog" / f"{last + SEGMENT:020}"
    new.touch()
    report = check(live)
    assert (report.ok, report.damage) == (True, [])


def _zero(path: Path, at: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(length))


def damage_a_record(live: Live) -> str:
    path = live.path / "commitlog" / f"{0:020}"
    data = path.read_bytes()
    _zero(path, data.index(b"x" * 150) + 10, 4)
    return "body"


def damage_a_record_in_the_middle(live: Live) -> str:
    path = live.path / "commitlog" / f"{0:020}"
    first = int.from_bytes(path.read_bytes()[:4], "big")
    _zero(path, first, record.FRAME_SIZE)
    return "nothing was written here"


def damage_a_queue(live: Live) -> str:
    _zero(live.path / "consumequeue" / "T1" / "1" / f"{0:020}", 5 * ENTRY_SIZE, ENTRY_SIZE)
    return "no entry for the record"


def damage_the_growing_index(live: Live) -> str:
    path = max((live.path / "index").iterdir())
    data = bytearray(path.read_bytes())
    slot = next(at for at in range(40, 240, 4) if any(data[at : at + 4]))
    _zero(path, slot, 4)
    return "slots do not lead to their last entry"


@pytest.mark.parametrize(
    "plant",
    [
        damage_a_record,
        damage_a_record_in_the_middle,
        damage_a_queue,
        damage_the_growing_index,
    ],
)
def test_damage_of_what_was_complete_is_found(live: Live, plant: Callable[[Live], str]) -> None:
    reason = plant(live)

    report = check(live)

    assert not report.ok
    assert any(reason in damage.reason for damage in report.damage), report.damage
