"""Verify the units of batch consume queues against records, both ways."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.formats import batch_consume_queue
from mqlake.formats.batch_consume_queue import UNIT_SIZE, BatchQueueUnit
from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE
from mqlake.formats.file_name import segment_name
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import VerifyReport, verify
from mqlake.store.append.message import Message
from tests.formats.java_answers import content
from tests.jobs.logs import LogWriter
from tests.jobs.test_pickles import PicklingEngine
from tests.store.test_inner_batches import SIZES, batch, opened

QUEUE = Path("batchconsumequeue/Batches/0")
ROUNDS = 13
RECORDS = ROUNDS * len(SIZES)
RESERVED = 4
"""Bytes at the end of a unit that mean nothing."""


def make(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    store = opened(path)
    for _ in range(ROUNDS):
        for size in SIZES:
            store.puts.put_batch(batch(size))
        store.puts.put(Message("Batches", b"single", queue_id=3))
        store.puts.put(Message("Plain", b"plain"))
        store.tick()
    store.close()
    return path


def run(path: Path, tasks: int | None = None) -> VerifyReport:
    return verify(path, PicklingEngine(2), tasks=tasks)


def counts(report: VerifyReport) -> tuple[int, ...]:
    """Return how many queue entries are missing, wrong and dangling."""
    return tuple(finding.count for finding in report.queue_entries.faults)


def file(path: Path, number: int = 0) -> Path:
    return sorted((path / QUEUE).iterdir())[number]


def unit(path: Path, index: int, number: int = 0) -> BatchQueueUnit:
    return batch_consume_queue.decode(file(path, number).read_bytes(), index * UNIT_SIZE)


def edit(path: Path, index: int, number: int = 0, /, **fields: int) -> None:
    """Change fields of a unit."""
    changed = unit(path, index, number)._replace(**fields)
    write(path, index, batch_consume_queue.encode(changed), number)


def write(path: Path, index: int, data: bytes, number: int = 0) -> None:
    with file(path, number).open("r+b") as opened_file:
        opened_file.seek(index * UNIT_SIZE)
        opened_file.write(data)


def swap(path: Path) -> None:
    """Let two units change their places: each is found by its base offset."""
    first, second = unit(path, 1), unit(path, 2)
    write(path, 1, batch_consume_queue.encode(second) + batch_consume_queue.encode(first))


def plant_queue(path: Path) -> None:
    (path / "batchconsumequeue/Other/7").mkdir(parents=True)
    shutil.copy(file(path), path / "batchconsumequeue/Other/7")


def repeat_the_first(path: Path) -> None:
    """Write a unit that is there already at the next free place."""
    place = next(at for at in range(4) if unit(path, at, -1).size == 0)
    write(path, place, batch_consume_queue.encode(unit(path, 0)), -1)


PLANTED: dict[str, tuple[Callable[[Path], object], tuple[int, int, int]]] = {
    "a unit zeroed": (lambda p: write(p, 1, bytes(UNIT_SIZE)), (1, 0, 0)),
    "the first unit zeroed": (lambda p: write(p, 0, bytes(UNIT_SIZE)), (1, 0, 0)),
    "a unit in the middle zeroed": (lambda p: write(p, 2, bytes(UNIT_SIZE), 7), (1, 0, 0)),
    "a file zeroed": (lambda p: write(p, 0, bytes(4 * UNIT_SIZE), 5), (4, 0, 0)),
    "a negative size": (lambda p: edit(p, 1, size=-1), (1, 0, 0)),
    "another physical offset": (lambda p: edit(p, 1, physical_offset=1), (0, 1, 0)),
    "that of another record": (
        lambda p: edit(p, 1, physical_offset=unit(p, 0).physical_offset),
        (0, 1, 0),
    ),
    "another size": (lambda p: edit(p, 1, size=4), (0, 1, 0)),
    "other tags": (lambda p: edit(p, 1, tags_code=4), (0, 1, 0)),
    "another time": (lambda p: edit(p, 1, store_timestamp=4), (0, 1, 0)),
    "another number of messages": (lambda p: edit(p, 1, batch_size=9), (0, 1, 0)),
    "a later base offset": (lambda p: edit(p, 1, base_offset=1 << 50), (1, 0, 1)),
    "the largest base offset": (lambda p: edit(p, 0, base_offset=(1 << 63) - 1), (1, 0, 1)),
    "a file's first base offset": (lambda p: edit(p, 0, 4, base_offset=1 << 50), (1, 0, 1)),
    "a compacted offset": (lambda p: edit(p, 1, compacted_offset=5), (0, 1, 0)),
    "units in another order": (swap, (0, 1, 0)),
    "a unit that is there twice": (repeat_the_first, (0, 1, 0)),
    "a queue without records": (plant_queue, (0, 0, 4)),
    "a file gone": (lambda p: file(p, 3).unlink(), (4, 0, 0)),
    "all files but one gone": (
        lambda p: [each.unlink() for each in sorted((p / QUEUE).iterdir())[1:]],
        (RECORDS - 4, 0, 0),
    ),
    "all gone": (
        lambda p: shutil.rmtree(p / "batchconsumequeue"),
        (RECORDS + ROUNDS, 0, 0),
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("tasks", [1, 3, 11])
def test_units_of_a_clean_store_are_good(whole: Path, tasks: int) -> None:
    report = run(whole, tasks)

    assert (report.ok, report.damage, report.notes) == (True, [], [])
    assert report.queue_entries.good == report.records == RECORDS + 2 * ROUNDS
    assert report.queues == 3


@pytest.mark.parametrize("tasks", [1, 5])
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_damage_is_found(whole: Path, tmp_path: Path, kind: str, tasks: int) -> None:
    plant, expected = PLANTED[kind]
    path = shutil.copytree(whole, tmp_path / "store")
    plant(path)

    report = run(path, tasks)

    assert counts(report) == expected
    assert report.ok == (not any(expected))
    in_place = kind in ("units in another order", "a unit that is there twice")
    assert report.queue_entries.good == report.records - sum(expected[:2]) + in_place
    assert all(damage.file.startswith("batchconsumequeue/") for damage in report.damage)


def test_rocketmqs_units_are_good(tmp_path: Path) -> None:
    """A log and its queue that RocketMQ 5.5.0 wrote."""
    for path, name in (("commitlog", "inner_batches.log"), (QUEUE, "batch_consume_queue.bin")):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / segment_name(0)).write_bytes(content(name))
    configure(tmp_path)

    report = run(tmp_path)

    # The log's other records are of a topic whose queue is not there.
    assert not [each for each in report.damage if each.file.startswith("batchconsumequeue/")]
    assert report.queue_entries.good == 20


def configure(store: Path) -> None:
    table = {"Batches": {"topicName": "Batches", "attributes": {QUEUE_TYPE: BATCH_QUEUES}}}
    (store / "config").mkdir()
    (store / "config/topics.json").write_text(json.dumps({"topicConfigTable": table}))


def test_a_wrong_unit_is_named_by_its_place(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "store")
    edit(path, 2, 3, size=4)

    (damage,) = run(path).damage

    assert damage.file == str(file(path, 3).relative_to(path))
    assert (damage.offset, damage.length) == (2 * UNIT_SIZE, UNIT_SIZE)
    assert "the record requires" in damage.reason


def test_a_missing_unit_is_named_by_the_place_after_the_last_one(
    whole: Path, tmp_path: Path
) -> None:
    path = shutil.copytree(whole, tmp_path / "store")
    write(path, 2, bytes(UNIT_SIZE), 3)

    (damage,) = run(path, 1).damage

    assert damage.file == str(file(path, 3).relative_to(path))
    assert (damage.offset, damage.length) == (2 * UNIT_SIZE, UNIT_SIZE)


def test_units_of_lost_and_deleted_records_are_notes(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "store")
    segments = sorted((path / "commitlog").iterdir())
    segments[0].unlink()
    lost = unit(path, 0, 8)
    base = max(int(each.name) for each in segments if int(each.name) <= lost.physical_offset)
    with (path / "commitlog" / f"{base:020d}").open("r+b") as log:
        log.seek(lost.physical_offset - base + 4)
        log.write(b"\0")

    report = run(path, 4)

    assert counts(report) == (0, 0, 0)
    assert report.queue_entries.lost == 1
    assert report.queue_entries.expired > 4
    assert len(report.damage) == 1


def test_what_a_crashed_broker_had_not_dispatched_is_a_note(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "store")
    (path / "abort").write_text("1")
    (path / "checkpoint").unlink()
    last = max(at for at in range(4) if unit(path, at, -1).size)
    write(path, last, bytes(UNIT_SIZE), -1)

    report = run(path)

    assert (report.ok, report.queue_entries.undispatched) == (True, 1)


@pytest.mark.parametrize("tasks", [1, 9])
def test_queue_offsets_that_go_back_get_no_unit(tmp_path: Path, tasks: int) -> None:
    log = LogWriter(tmp_path / "store")
    for number in [0, 1, 10, 5, 10, 11]:
        log.add("Batches", 0, queue_offset=number, body=b"x" * 3000)
    store = log.close()
    configure(store)
    rebuild(store, LocalEngine(1))

    report = run(store, tasks)

    assert (report.ok, report.queue_entries.good, report.queue_entries.repeated) == (True, 4, 2)


@pytest.mark.parametrize("seed", range(40))
def test_any_byte_that_changes_is_found(whole: Path, tmp_path: Path, seed: int) -> None:
    path = shutil.copytree(whole, tmp_path / "store")
    dice = random.Random(seed)
    index = dice.randrange(RECORDS)
    chosen, at = file(path, index // 4), index % 4 * UNIT_SIZE
    data = bytearray(chosen.read_bytes())
    data[at + dice.randrange(UNIT_SIZE - RESERVED)] ^= dice.randrange(1, 256)
    chosen.write_bytes(data)

    report = run(path, dice.choice((1, 4)))

    assert not report.ok
    assert all(damage.file.startswith("batchconsumequeue/") for damage in report.damage)
    assert 1 <= sum(counts(report)) <= 2


HOSTILE: dict[str, Callable[[Path], object]] = {
    "part of a unit": lambda p: file(p, -1).write_bytes(file(p, -1).read_bytes() + b"\1" * 17),
    "a huge hole": lambda p: os.truncate(file(p, -1), 1 << 42),
    "units of all ones": lambda p: file(p, 2).write_bytes(b"\xff" * 4 * UNIT_SIZE),
    "units of 0x7f": lambda p: file(p, 2).write_bytes(b"\x7f" * 4 * UNIT_SIZE),
    "an empty file": lambda p: file(p, 2).write_bytes(b""),
    "a directory instead of a file": lambda p: (p / QUEUE / f"{1 << 40:020d}").mkdir(),
    "a name beyond all offsets": lambda p: (p / QUEUE / ("9" * 20)).write_bytes(b"\1" * 46),
    "another name": lambda p: (p / QUEUE / "..0").write_bytes(b"\1" * 46),
    "a queue with another name": lambda p: (p / QUEUE).rename((p / QUEUE).with_name("-1")),
    "a file instead of the queues": lambda p: (
        shutil.rmtree(p / "batchconsumequeue/Batches"),
        (p / "batchconsumequeue/Batches").write_bytes(b""),
    ),
    "a topic that leaves the store": lambda p: (p / "batchconsumequeue" / "..%2f").mkdir(),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_files_may_be_anything(whole: Path, tmp_path: Path, kind: str) -> None:
    path = shutil.copytree(whole, tmp_path / "store")
    HOSTILE[kind](path)

    report = run(path, 3)

    entries = report.queue_entries
    assert entries.good + entries.missing.count + entries.wrong.count == report.records
