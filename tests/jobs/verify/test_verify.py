from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.formats import consume_queue, index_file, record
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE, QueueEntry
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import VerifyReport, verify
from mqlake.store.reader import StoreReader
from tests.golden import CLEAN, TORN_VARIANTS, store
from tests.jobs.logs import SEGMENT, LogWriter, change


def run(path: Path, tasks: int | None = None) -> VerifyReport:
    return verify(path, LocalEngine(2), tasks=tasks)


def faults(report: VerifyReport) -> tuple[int, ...]:
    """Return the counts: missing, wrong, dangling queue entries, then those of the index."""
    findings = (*report.queue_entries.faults, *report.index_entries.faults)
    return tuple(finding.count for finding in findings)


@pytest.mark.parametrize("tasks", [None, 1, 13])
@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_store_is_clean(name: str, tasks: int | None) -> None:
    golden = store(name)

    report = run(golden.path, tasks)

    assert (report.ok, report.damage, report.notes) == (True, [], [])
    assert len(golden.messages()) == report.records
    assert faults(report) == (0,) * 6
    indexed = sum(
        index_file.decode_header(path.read_bytes()).index_count - 1
        for path in (golden.path / "index").iterdir()
    )
    assert indexed == report.index_entries.good


def test_a_killed_store_is_whole() -> None:
    report = run(store("rmq5-killed").path)

    assert (report.ok, report.records) == (True, 3204)


@pytest.mark.parametrize("tasks", [None, 9])
@pytest.mark.parametrize("name", TORN_VARIANTS)
def test_a_torn_store_has_one_damage(name: str, tasks: int | None) -> None:
    golden = store(name)

    report = run(golden.path, tasks)

    end = golden.recovery()["afterDispatch"]["commitLogMaxOffset"]
    assert (False, end) == (report.ok, report.log_end)
    assert [end] == [5242880 + damage.offset for damage in report.damage]
    assert faults(report) == (0,) * 6
    inspected = StoreReader.open(golden.path).inspect().commit_log
    assert (inspected.damage, inspected.max_offset) == (report.damage, report.log_end)
    is_flip5 = name.endswith("flip5")
    assert (4 if is_flip5 else 0) == report.records_beyond
    assert (5 if is_flip5 else 1) == report.queue_entries.stale


def small_store(path: Path, *, crashed: bool = False) -> LogWriter:
    log = LogWriter(path)
    for n in range(300):
        log.add("A" if n % 3 else "B", n % 2, properties={"UNIQ_KEY": f"U{n}", "TAGS": "t"})
        if n in (200, 220, 240):
            log.roll()
    log.close()
    rebuild(path, LocalEngine(2), queue_file_size=800, hash_slots=64, max_index=150)
    if crashed:
        (path / "abort").write_text("1")
    return log


def queue_path(path: Path, queue: str = "A/1", number: int = 0) -> Path:
    return sorted((path / "consumequeue" / queue).iterdir())[number]


def index_path(path: Path, number: int = 0) -> Path:
    return sorted((path / "index").iterdir())[number]


def edit(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def entry(path: Path, at: int) -> QueueEntry:
    return consume_queue.decode(path.read_bytes(), at)


def swap_index_field(path: Path, number: int, field: int, data: bytes) -> None:
    edit(index_path(path), index_file.entry_at(64, number) + field, data)


def test_a_small_store_is_clean(tmp_path: Path) -> None:
    small_store(tmp_path / "store")

    for tasks in (1, 2, 7):
        report = run(tmp_path / "store", tasks)
        assert (report.ok, report.notes) == (True, [])
        assert (
            report.records,
            report.queue_entries.good,
            report.index_entries.good,
        ) == (300, 300, 600)


def plant_queue(path: Path) -> None:
    (path / "consumequeue/C/0").mkdir(parents=True)
    data = consume_queue.encode(QueueEntry(0, 91, 0)).ljust(800, b"\0")
    (path / "consumequeue/C/0/00000000000000000000").write_bytes(data)


PLANTED: dict[str, tuple[Callable[[Path], None], tuple[int, ...]]] = {
    "queue entry zeroed": (lambda p: edit(queue_path(p), 60, bytes(20)), (1, 0, 0, 0, 0, 0)),
    "queue entry blank": (
        lambda p: edit(queue_path(p), 60, consume_queue.encode(BLANK_ENTRY)),
        (1, 0, 0, 0, 0, 0),
    ),
    "queue entry's offset": (lambda p: edit(queue_path(p), 67, b"\1"), (0, 1, 0, 0, 0, 0)),
    "queue entry's size": (lambda p: edit(queue_path(p), 71, b"\1"), (0, 1, 0, 0, 0, 0)),
    "queue entry's tags": (lambda p: edit(queue_path(p), 79, b"\1"), (0, 1, 0, 0, 0, 0)),
    "entry behind the queue's last": (
        lambda p: edit(queue_path(p, "B/0", -1), 780, consume_queue.encode(QueueEntry(0, 91, 0))),
        (0, 0, 1, 0, 0, 0),
    ),
    "entry in a queue of no record": (plant_queue, (0, 0, 1, 0, 0, 0)),
    "queue file gone": (lambda p: queue_path(p, "A/1", 1).unlink(), (40, 0, 0, 0, 0, 0)),
    "queues gone": (lambda p: shutil.rmtree(p / "consumequeue"), (300, 0, 0, 0, 0, 0)),
    "index file gone": (lambda p: index_path(p, 1).unlink(), (0, 0, 0, 149, 0, 0)),
    "index gone": (lambda p: shutil.rmtree(p / "index"), (0, 0, 0, 600, 0, 0)),
    "index entry's hash": (lambda p: swap_index_field(p, 50, 3, b"\0"), (0, 0, 0, 1, 0, 1)),
    "index entry's offset": (lambda p: swap_index_field(p, 5, 11, b"\1"), (0, 0, 0, 1, 0, 1)),
    "index entry's seconds": (lambda p: swap_index_field(p, 5, 15, b"\7"), (0, 0, 0, 0, 1, 0)),
    "index entry's link": (lambda p: swap_index_field(p, 5, 19, b"\4"), (0,) * 6),
    "index slot": (lambda p: edit(index_path(p), 40 + 4 * 7, b"\0\0\0\1"), (0,) * 6),
    "index header's times": (lambda p: edit(index_path(p), 15, b"\0"), (0,) * 6),
    "index header's offsets": (lambda p: edit(index_path(p, 1), 31, b"\0"), (0,) * 6),
    "index header's slots": (lambda p: edit(index_path(p), 35, b"\0"), (0,) * 6),
    "index file of another size": (
        lambda p: (p / "index/20990101000000000").write_bytes(b"0" * 99),
        (0,) * 6,
    ),
}


@pytest.mark.parametrize("tasks", [1, 5])
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_damage_is_found(kind: str, tasks: int, tmp_path: Path) -> None:
    plant, expected = PLANTED[kind]
    small_store(tmp_path / "store")
    plant(tmp_path / "store")

    report = run(tmp_path / "store", tasks)

    assert not report.ok
    assert expected == faults(report)
    assert report.damage
    named = min(100, max(expected, default=0)) or 1
    assert named <= len(report.damage)
    for damage in report.damage:
        assert not damage.file.startswith("/")
        assert damage.reason


def test_a_wrong_entry_is_named_by_its_place(tmp_path: Path) -> None:
    small_store(tmp_path / "store")
    edit(queue_path(tmp_path / "store"), 60, bytes(20))

    (damage,) = run(tmp_path / "store").damage

    assert damage.file == "consumequeue/A/1/00000000000000000000"
    assert (damage.offset, damage.length) == (60, ENTRY_SIZE)


def test_a_lost_record_is_one_damage_and_its_entries_are_explained(tmp_path: Path) -> None:
    log = small_store(tmp_path / "store")
    change(tmp_path / "store", log.offsets[10] + 4, b"\0")

    report = run(tmp_path / "store")

    assert faults(report) == (0,) * 6
    (damage,) = report.damage
    assert (log.offsets[10], log.offsets[11] - log.offsets[10]) == (damage.offset, damage.length)
    assert (report.queue_entries.lost, report.index_entries.lost) == (1, 2)
    assert report.records == 299


def test_a_damaged_body_keeps_its_entries(tmp_path: Path) -> None:
    log = small_store(tmp_path / "store")
    change(tmp_path / "store", log.offsets[10] + record.MIN_SIZE - 3, b"!")

    report = run(tmp_path / "store")

    assert (report.records, report.damaged_bodies, report.queue_entries.good) == (299, 1, 300)
    assert [log.offsets[10]] == [damage.offset for damage in report.damage]


def test_what_a_crashed_broker_had_not_dispatched_is_a_note(tmp_path: Path) -> None:
    small_store(tmp_path / "store", crashed=True)
    last = queue_path(tmp_path / "store", "A/1", -1)
    written = next(at for at in range(780, -1, -20) if entry(last, at).size)
    edit(last, written, bytes(20))

    report = run(tmp_path / "store")

    assert (report.ok, report.queue_entries.undispatched) == (True, 1)
    assert report.notes


def test_entries_of_deleted_segments_are_expired(tmp_path: Path) -> None:
    small_store(tmp_path / "store")
    (tmp_path / "store/commitlog/00000000000000000000").unlink()

    report = run(tmp_path / "store")

    assert (report.ok, report.records) == (True, 99)
    assert (report.queue_entries.expired, report.index_entries.expired) == (201, 402)


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.add()
    log.roll()
    log.add()
    log.roll_out_of_recovery()
    store = log.close()
    rebuild(store, LocalEngine(2))
    (store / "commitlog" / f"{SEGMENT:020d}").unlink()

    report = run(store)

    assert not report.ok
    assert faults(report) == (0,) * 6
    assert report.queue_entries.lost == 1


def test_a_second_record_of_one_queue_offset_is_a_note(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for n in [0, 1, 2, 1, 3]:
        log.add(queue_offset=n)
    store = log.close()
    rebuild(store, LocalEngine(2))

    report = run(store)

    assert (report.ok, report.queue_entries.good, report.queue_entries.repeated) == (True, 4, 1)


def test_blank_entries_before_a_queue_are_a_note(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.add(queue_offset=7)
    store = log.close()
    rebuild(store, LocalEngine(2))

    report = run(store)

    assert (report.ok, report.queue_entries.blank) == (True, 7)


def test_nothing_is_written(tmp_path: Path) -> None:
    small_store(tmp_path / "store")
    paths = sorted((tmp_path / "store").rglob("*"))
    before = [(path, path.stat().st_mtime_ns) for path in paths]

    run(tmp_path / "store")

    paths = sorted((tmp_path / "store").rglob("*"))
    assert before == [(path, path.stat().st_mtime_ns) for path in paths]
