"""Index files that are written: rolling, names, headers, look-ups, trimming."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqlake.dispatch.derived.index_entries import IndexFileBuilder
from mqlake.errors import DiskError, FormatError
from mqlake.formats import index_file
from mqlake.formats.java_string import index_key_hash
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.index.index_files import IndexFile
from mqlake.store.index.owned_index import OwnedIndex
from tests.crash.clock import ManualClock
from tests.jobs.model import read_index_files

SLOTS, ENTRIES = 5, 11
NOW = 1_800_000_000_000


def make(path: Path) -> OwnedIndex:
    return OwnedIndex(LocalOwnedDirectory(path), ManualClock(NOW), SLOTS, ENTRIES)


def insert(index: OwnedIndex, start: int, end: int) -> None:
    numbers = np.arange(start, end, dtype=np.int64)
    hashes = np.array([index_key_hash(f"T#{number}") for number in numbers], np.int32)
    index.insert(hashes, 100 * numbers, NOW + 700 * numbers)


def built(start: int, end: int, previous_end: int) -> bytes:
    builder = IndexFileBuilder(SLOTS, ENTRIES, previous_end_timestamp=previous_end)
    numbers = np.arange(start, end, dtype=np.int64)
    hashes = np.array([index_key_hash(f"T#{number}") for number in numbers], np.int32)
    builder.insert(hashes, 100 * numbers, NOW + 700 * numbers)
    return bytes(builder.finish())


@pytest.mark.parametrize("each", [1, 3, 25])
def test_files_are_those_that_a_rebuild_makes(each: int, tmp_path: Path) -> None:
    index = make(tmp_path)

    for start in range(0, 25, each):
        insert(index, start, min(25, start + each))

    assert [
        built(0, 10, 0),
        built(10, 20, NOW + 700 * 9),
        built(20, 25, NOW + 700 * 19),
    ] == read_index_files(tmp_path)
    state = index.state()
    assert (
        state.header.index_count,
        state.is_full,
        state.full_until,
    ) == (6, False, NOW + 700 * 19)


def test_names_are_of_the_time_and_ascend(tmp_path: Path) -> None:
    index = make(tmp_path)
    insert(index, 0, 35)

    names = sorted(path.name for path in (tmp_path / "index").iterdir())
    assert [int(names[0]) + step for step in range(4)] == [int(name) for name in names]
    assert names[-1] == index.state().name


def test_a_record_without_keys_opens_the_next_file(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.take_record()
    index.take_record()
    assert [bytes(36) + b"\0\0\0\1"] == [data[:40] for data in read_index_files(tmp_path)]

    insert(index, 0, 10)
    assert len(read_index_files(tmp_path)) == 1
    index.take_record()

    header = index_file.decode_header(read_index_files(tmp_path)[1])
    assert header == (NOW + 6300, NOW + 6300, 900, 900, 0, 1)


def test_queries_see_what_was_just_inserted(tmp_path: Path) -> None:
    index = make(tmp_path)
    insert(index, 0, 12)
    files = index.files()
    insert(index, 12, 15)

    for number in range(12):
        offsets = [offset for file in files.files for offset in _offsets(file, f"T#{number}")]
        assert 100 * number in offsets
    newest = index.files().files[-1]
    assert _offsets(newest, "T#14") == [1400]


def _offsets(file: IndexFile, text: str) -> list[int]:
    value = index_key_hash(text)
    return [entry.physical_offset for entry in file.slot(value) if entry.key_hash == value]


def _names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "index").iterdir())


def test_trimming_keeps_the_last_file_and_what_is_being_read(tmp_path: Path) -> None:
    index = make(tmp_path)
    insert(index, 0, 25)
    oldest = index.files().files[0]

    assert index.trim(900) == 0
    assert index.trim(901) == 1
    assert [*index.state().names] == _names(tmp_path)
    assert index.trim(1 << 40) == 1
    assert [*index.state().names] == _names(tmp_path)
    assert len(read_index_files(tmp_path)) == 1
    assert _offsets(oldest, "T#0") == [0]


def test_a_full_disk_inserts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = make(tmp_path)
    insert(index, 0, 8)
    before, state = read_index_files(tmp_path), index.state()

    def full(*_: object) -> None:
        raise DiskError("no room")

    monkeypatch.setattr(LocalOwnedDirectory, "create", full)
    with pytest.raises(DiskError, match="no room"):
        insert(index, 8, 25)
    assert (before, state) == (read_index_files(tmp_path), index.state())
    monkeypatch.undo()

    insert(index, 8, 25)
    assert built(10, 20, NOW + 700 * 9) == read_index_files(tmp_path)[1]


def test_a_full_file_is_synced_after_the_roll(tmp_path: Path) -> None:
    index = make(tmp_path)
    insert(index, 0, 8)
    insert(index, 8, 15)

    pending = index.pending_sync()
    assert len(pending.files) == 2
    assert pending.directories == ["index", ""]
    pending.complete()
    insert(index, 15, 16)
    assert len(index.pending_sync().files) == 1


def test_impossible_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        OwnedIndex(LocalOwnedDirectory(tmp_path), ManualClock(), 0, 4)
