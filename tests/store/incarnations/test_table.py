"""The table of incarnations, in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import DiskError
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.incarnations.table import (
    FoundIncarnations,
    Incarnations,
    OwnedIncarnations,
    find_incarnations,
)
from tests.crash.clock import ManualClock
from tests.store.config.test_config_store import NOW, FullDisk

FILE = "config/incarnations.json"

Offsets = st.dictionaries(st.sampled_from("ABCDE"), st.integers(0, 100))


def load(path: Path) -> OwnedIncarnations:
    return OwnedIncarnations.load(LocalOwnedDirectory(path), ManualClock(NOW))


def keep(table: OwnedIncarnations) -> None:
    job = table.write()
    assert job is not None
    job.complete()
    assert table.write() is None


def test_a_name_without_an_entry_has_only_living_records(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert (table.before("T"), table.group_before("G"), table.is_dead("T", 0)) == (0, 0, False)


def test_records_before_the_end_of_an_incarnation_are_dead_after_a_restart(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.end_topic("T", 500)
    assert table.end_group("G", 700)
    keep(table)
    for found in (table, load(tmp_path)):
        assert [found.is_dead("T", at) for at in (0, 499, 500)] == [True, True, False]
        assert (found.group_before("G"), found.before("G"), found.group_before("T")) == (700, 0, 0)


def test_a_dead_record_never_comes_back_to_life(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.end_topic("T", 500)
    changes = table.changes
    assert not table.end_topic("T", 500)
    assert not table.end_topic("T", 10)
    assert (table.before("T"), table.changes) == (500, changes)


def test_an_empty_table_is_written_to_say_that_it_is_complete(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.write() is None
    assert not find_incarnations(LocalOwnedDirectory(tmp_path)).is_whole
    table.complete()
    keep(table)
    assert find_incarnations(LocalOwnedDirectory(tmp_path)).is_whole


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"topics":{"T":-1}}'])
def test_the_backup_of_a_lost_table_may_lack_deletions(
    tmp_path: Path, content: bytes | None
) -> None:
    table = load(tmp_path)
    for end in (100, 200):
        table.end_topic("T", end)
        keep(table)
    (tmp_path / FILE).unlink()
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    found = find_incarnations(LocalOwnedDirectory(tmp_path))
    assert (found.table.before("T"), found.is_whole) == (100, False)
    table = load(tmp_path)
    table.end_topic("T", 300)
    keep(table)
    (tmp_path / FILE).unlink()
    # The damaged file did not replace the backup.
    assert load(tmp_path).before("T") == 100


@pytest.mark.parametrize("content", [b"{", b"\x00" * 50, b'{"topics":[]}'])
def test_a_damaged_table_without_a_backup_is_a_missing_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / FILE).write_bytes(content)
    table = load(tmp_path)
    assert not find_incarnations(LocalOwnedDirectory(tmp_path)).is_whole
    table.end_topic("T", 5)
    keep(table)
    assert load(tmp_path).before("T") == 5


def test_a_deletion_that_the_disk_refuses_is_written_by_the_next_write(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    table = OwnedIncarnations.load(disk, ManualClock(NOW))
    table.end_topic("T", 5)
    disk.is_full, job = True, table.write()
    assert job is not None
    with pytest.raises(DiskError):
        job.complete()
    assert not table.is_kept(table.changes)
    disk.is_full = False
    keep(table)
    assert table.is_kept(table.changes)
    assert load(tmp_path).before("T") == 5


@given(topics=Offsets, groups=Offsets, end=st.integers(0, 100))
def test_offsets_past_a_shorter_log_move_to_its_end(
    topics: dict[str, int], groups: dict[str, int], end: int
) -> None:
    found = FoundIncarnations(Incarnations(topics, groups), is_whole=True)
    table = OwnedIncarnations(LocalOwnedDirectory("unused"), ManualClock(NOW), found)
    offsets = [*topics.values(), *groups.values()]
    assert table.clamp(end) == sum(each > end for each in offsets)
    assert table.topics == {name: min(each, end) for name, each in topics.items()}
    assert table.groups == {name: min(each, end) for name, each in groups.items()}
    assert (table.write() is not None) == any(each > end for each in offsets)


@given(
    topics=Offsets,
    groups=Offsets,
    start=st.integers(0, 100),
    names=st.sets(st.sampled_from("ABCDE")),
)
def test_names_are_forgotten_once_they_have_neither_records_nor_a_successor(
    topics: dict[str, int], groups: dict[str, int], start: int, names: set[str]
) -> None:
    found = FoundIncarnations(Incarnations(topics, groups), is_whole=True)
    table = OwnedIncarnations(LocalOwnedDirectory("unused"), ManualClock(NOW), found)
    gone = table.prune(start, names.__contains__, names.__contains__)
    for kept, old in ((table.topics, topics), (table.groups, groups)):
        # No record that the log still has comes back to life.
        assert all(kept.get(name, 0) == each for name, each in old.items() if each > start)
        assert set(kept) == {name for name in old if old[name] > start or name in names}
    assert gone == len(topics) + len(groups) - len(table.topics) - len(table.groups)


def test_a_slave_has_the_masters_table(tmp_path: Path) -> None:
    table = load(tmp_path)
    table.end_topic("T", 5)
    table.end_topic("Mine", 9)
    topics = table.topics
    table.follow({"T": 3, "U": 4}, {"G": 6})
    assert table.topics == topics == {"T": 3, "U": 4}
    assert table.groups == {"G": 6}
    keep(table)
    assert load(tmp_path).topics == {"T": 3, "U": 4}
