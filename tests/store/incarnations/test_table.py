"""The table of incarnations, in memory and on disk."""

from __future__ import annotations

import json
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
    TopicEnd,
    find_incarnations,
)
from tests.crash.clock import ManualClock
from tests.store.test_config_store import NOW, FullDisk

FILE = "config/incarnations.json"

Names, Offset = st.sampled_from("ABCDE"), st.integers(0, 100)


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


def test_a_changed_digit_of_a_table_is_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every offset that it could hide living records with."""
    table = load(tmp_path)
    table.end_topic("T1", 12345, 345)
    table.end_group("G", 678)
    keep(table)
    content = (tmp_path / FILE).read_bytes()
    known = find_incarnations(LocalOwnedDirectory(tmp_path))
    refused = 0
    for at, digit in enumerate(content):
        for other in b"0123456789" if bytes([digit]).isdigit() else b"":
            if other == digit:
                continue
            (tmp_path / FILE).write_bytes(content[:at] + bytes([other]) + content[at + 1 :])
            caplog.clear()
            found = find_incarnations(LocalOwnedDirectory(tmp_path))
            is_same = found.is_whole and (found.table.ended(), found.version) == (
                known.table.ended(),
                known.version,
            )
            if not is_same:
                assert not found.is_whole
                assert not found.table
                (record,) = caplog.records
                assert "counts as missing" in record.message
                refused += 1
    assert refused > 100


def test_a_table_that_was_formatted_again_or_has_no_checksum_is_whole(tmp_path: Path) -> None:
    table = load(tmp_path)
    for name in ("B", "A"):
        table.end_topic(name, 5, 3)
    keep(table)
    members = json.loads((tmp_path / FILE).read_bytes())
    assert members["crc32"] > 0
    (tmp_path / FILE).write_text(json.dumps(members, sort_keys=True, indent=1))
    assert find_incarnations(LocalOwnedDirectory(tmp_path)).is_whole
    del members["crc32"]
    (tmp_path / FILE).write_text(json.dumps(members))
    found = find_incarnations(LocalOwnedDirectory(tmp_path))
    assert (found.is_whole, found.table.befores) == (True, {"A": 5, "B": 5})


@pytest.mark.parametrize("checksum", [-1, "x", [], {}, 1.5, True, 10**30])
def test_a_checksum_of_another_type_is_damage(tmp_path: Path, checksum: object) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / FILE).write_text(json.dumps({"topics": {"T": 5}, "crc32": checksum}))
    assert not find_incarnations(LocalOwnedDirectory(tmp_path)).is_whole


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


Ends = st.builds(lambda before, seen: TopicEnd(max(before, seen), seen), Offset, Offset)
Tables = st.builds(
    Incarnations, st.dictionaries(Names, Ends), st.dictionaries(Names, Offset), Offset
)


def owned(found: Incarnations) -> OwnedIncarnations:
    directory = LocalOwnedDirectory("unused")
    return OwnedIncarnations(directory, ManualClock(NOW), FoundIncarnations(found, is_whole=True))


@given(found=Tables, end=st.integers(0, 100))
def test_offsets_past_a_shorter_log_move_to_its_end(found: Incarnations, end: int) -> None:
    table = owned(found)
    offsets = [*found.befores.values(), *found.groups.values(), found.others]
    assert table.clamp(end) == sum(each > end for each in offsets)
    for name in "ABCDEF":
        assert table.before(name) == min(found.before(name), end)
        assert table.group_before(name) == min(found.group_before(name), end)
    assert (table.write() is not None) == any(each > end for each in offsets)


@given(found=Tables, start=st.integers(0, 100), names=st.sets(st.sampled_from("ABCDE")))
def test_names_are_forgotten_once_they_have_neither_records_nor_a_successor(
    found: Incarnations, start: int, names: set[str]
) -> None:
    table = owned(found)
    table.prune(start, names.__contains__, names.__contains__)
    for name in "ABCDEF":
        # No record that the log still has comes back to life, and none dies.
        assert max(table.before(name), start) == max(found.before(name), start)
        assert max(table.group_before(name), start) == max(found.group_before(name), start)
        assert found.was_deleted(name, start) == table.was_deleted(name, start)
        if name in names:
            assert table.before(name) in (found.before(name), 0)
            assert table.group_before(name) == found.group_before(name)
    if not table.others:
        assert all(found.before(name) > start or name in names for name in table.topics)
    assert all(found.group_before(name) > start or name in names for name in table.groups)
    assert table.others in (found.others, 0)


@given(found=Tables, start=st.integers(0, 100), names=st.sets(Names), log=st.integers(0, 100))
def test_a_forgotten_name_is_known_again_for_a_longer_log(
    found: Incarnations, start: int, names: set[str], log: int
) -> None:
    table = owned(found)
    table.prune(start, names.__contains__, names.__contains__)
    joined = table.with_older(found, max(start, log))
    for name in "ABCDEF":
        assert joined.before(name) == found.before(name) or name in names
        # Whatever the older table says, nothing that the log of the newer one has dies.
        most = max(table.before(name), log)
        assert table.before(name) <= table.with_older(found, log).before(name) <= most
        assert table.was_deleted(name, start) == joined.was_deleted(name, start)


def test_a_topic_that_is_unknown_is_dead_where_all_others_are(tmp_path: Path) -> None:
    table = load(tmp_path)
    table.adopt(Incarnations({"T": TopicEnd(0)}, {}, 50))
    keep(table)
    for found in (table, load(tmp_path)):
        assert [found.is_dead(name, 49) for name in "TU"] == [False, True]
        assert not found.is_dead("U", 50)
    assert not table.end_topic("U", 50)
    assert table.end_topic("T", 50)


def test_a_table_is_replaced_as_a_whole(tmp_path: Path) -> None:
    table = load(tmp_path)
    table.end_topic("T", 5)
    table.end_topic("Mine", 9)
    table.adopt(Incarnations({"T": TopicEnd(3), "U": TopicEnd(4, 4)}, {"G": 6}))
    assert table.befores == {"T": 3, "U": 4}
    assert table.groups == {"G": 6}
    keep(table)
    assert load(tmp_path).topics == {"T": (3, 0), "U": (4, 4)}


def test_a_derived_offset_says_nothing_of_messages_that_wait(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.end_topic("T", 50, 50)
    table.adopt(table.derived({"T": 80, "U": 90}))
    assert not table.end_topic("T", 60, 60)
    keep(table)
    for found in (table, load(tmp_path)):
        assert [found.is_dead("T", at) for at in (79, 80)] == [True, False]
        assert [found.was_deleted("T", at) for at in (59, 60)] == [True, False]
        assert (found.is_dead("U", 89), found.was_deleted("U", 0)) == (True, False)
