"""The files of light queues are verified, and derived again after a rebuild."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.file_name import segment_name
from mqlake.formats.light import light_queue_file
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild.job import rebuild
from mqlake.jobs.verify.job import VerifyReport, verify
from tests.store.light.lights import SETTINGS, LightMessages, light_files, name, open_store

SLOTS = light_queue_file.slots_of(SETTINGS.mapped_file_size_commit_log)


def fill(path: Path, *, is_closed: bool = True) -> LightMessages:
    """Make a store with several files of light queues."""
    store, sent = open_store(path), LightMessages()
    for number in range(120):
        sent.put(store, b"%d" % number + bytes(200), [name(number % 7), name(number % 3 + 20)])
        if number == 60:
            store.tick()
            store.durability.checkpoint()
    store.tick()
    if is_closed:
        store.close()
    else:
        store.abandon()
    return sent


def run(path: Path) -> VerifyReport:
    return verify(path, LocalEngine(1))


def files_of(path: Path) -> list[Path]:
    return [path / "lightqueue" / each for each in light_files(path) if "/" in each]


@pytest.mark.parametrize("is_closed", [True, False])
def test_files_of_a_sound_store_are_sound(tmp_path: Path, is_closed: bool) -> None:
    fill(tmp_path, is_closed=is_closed)
    report = run(tmp_path)
    assert report.damage == []
    assert report.light_files == len(light_files(tmp_path)) - 1
    if is_closed:
        assert report.light_entries == 240
    else:
        assert 120 <= report.light_entries < 240


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (3, "the header is not that of a file of light queues"),
        (35, "the header counts other entries"),
        (40, "the slots lead to other entries"),
        (light_queue_file.entry_at(SLOTS, 2) + 10, "entry 2 is not that of its record"),
        (light_queue_file.entry_at(SLOTS, 2) + 39, "entry 2 is not that of its record"),
    ],
)
def test_a_changed_byte_is_found(tmp_path: Path, at: int, reason: str) -> None:
    fill(tmp_path)
    path = files_of(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    report = run(tmp_path)
    assert not report.ok
    (damage,) = report.damage
    assert damage.file == str(path.relative_to(tmp_path))
    assert damage.offset <= at < damage.offset + damage.length
    assert reason in damage.reason


def test_missing_files_and_entries_without_records_are_found(tmp_path: Path) -> None:
    fill(tmp_path)
    path = files_of(tmp_path)[-1]
    data = bytearray(path.read_bytes())
    count = int.from_bytes(data[28:32], "big")
    last = light_queue_file.entry_at(SLOTS, count - 1)
    data[last + 40 : last + 80] = data[last : last + 40]
    path.write_bytes(data)
    first = tmp_path / "lightqueue" / "Parent" / segment_name(0)
    first.unlink()
    reasons = {each.file.rpartition("/")[2]: each.reason for each in run(tmp_path).damage}
    assert reasons.keys() == {first.name, path.name}
    assert reasons[first.name] == "the file is missing"
    assert reasons[path.name].startswith("an entry without a record")


def test_files_that_are_derived_again_are_noted(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "lightqueue" / "complete").unlink()
    report = run(tmp_path)
    assert report.ok
    assert report.light_files == 0
    assert any("derives them again" in note for note in report.notes)


def test_files_of_deleted_topics_are_left_out(tmp_path: Path) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    for number in range(40):
        sent.put(store, b"%d" % number, [name(number % 5)])
    store.tick()
    store.removal.remove("Parent")
    again = LightMessages()
    again.put(store, b"new", [name(1)])
    store.tick()
    store.close()
    report = run(tmp_path)
    assert report.damage == []
    assert report.light_entries == 1


def test_after_a_rebuild_they_are_derived_byte_for_byte(tmp_path: Path) -> None:
    sent = fill(tmp_path)
    before = light_files(tmp_path)
    rebuild(tmp_path, LocalEngine(1))
    store = open_store(tmp_path)
    assert light_files(tmp_path) == before
    sent.require(store)
    store.close()
    report = run(tmp_path)
    assert report.damage == []
    assert report.light_entries == 240
