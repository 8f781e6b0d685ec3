from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import StoreError
from mqlake.formats.kafka import offset_index, time_index
from mqlake.formats.kafka.offset_index import OffsetPosition
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.errors import (
    CorruptIndexError,
    FullIndexError,
    InvalidOffsetError,
    OffsetOverflowError,
)
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex
from mqlake.storage.local_owned import LocalOwnedDirectory

BASE = 1000

ENTRIES = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), max_size=60).map(
    lambda steps: [
        (sum(step[0] for step in steps[: n + 1]), sum(step[1] for step in steps[: n + 1]))
        for n in range(len(steps))
    ]
)


def offsets(pairs: list[tuple[int, int]]) -> OffsetIndex:
    data = b"".join(
        offset_index.encode_entry(BASE, OffsetPosition(BASE + offset, position))
        for offset, position in pairs
    )
    return OffsetIndex(data, BASE, "test.index")


@given(ENTRIES, st.integers(BASE - 10, BASE + 40_000))
def test_offset_look_up_is_the_last_entry_not_above(
    pairs: list[tuple[int, int]], target: int
) -> None:
    below = [(BASE + o, p) for o, p in pairs if BASE + o <= target]
    assert (below[-1] if below else (BASE, 0)) == offsets(pairs).lookup(target)


@given(ENTRIES, st.integers(0, 40_000), st.integers(0, 9000))
def test_upper_bound_is_the_first_entry_beyond(
    pairs: list[tuple[int, int]], position: int, length: int
) -> None:
    beyond = [(BASE + o, p) for o, p in pairs if p >= position + length]
    found = offsets(pairs).upper_bound(OffsetPosition(0, position), length)
    assert (beyond[0] if beyond else None) == found


@given(ENTRIES, st.integers(-5, 40_000))
def test_time_look_up_is_the_last_entry_not_after(
    pairs: list[tuple[int, int]], target: int
) -> None:
    data = b"".join(
        time_index.encode_entry(BASE, TimestampOffset(time, BASE + offset))
        for offset, time in pairs
    )
    before = [(time, BASE + o) for o, time in pairs if time <= target]
    assert (before[-1] if before else (-1, BASE)) == TimeIndex(data, BASE, "t").lookup(target)


@given(ENTRIES, st.integers(0, 30))
def test_zeros_at_the_end_are_no_entries(pairs: list[tuple[int, int]], more: int) -> None:
    entries = [OffsetPosition(BASE + offset, position) for offset, position in pairs]
    data = b"".join(offset_index.encode_entry(BASE, entry) for entry in entries)
    padded = OffsetIndex(data + bytes(8 * more), BASE, "test.index")
    assert entries == padded.all() or (not pairs and more == 1)


def test_a_time_index_of_time_0_only() -> None:
    assert TimeIndex(bytes(12), BASE, "t").all() == [(0, BASE)]
    assert TimeIndex(bytes(24), BASE, "t").all() == []


def test_a_new_file_has_its_largest_size_until_it_is_trimmed(tmp_path: Path) -> None:
    path = tmp_path / "test.index"
    index = OffsetIndex.own(LocalOwnedDirectory(tmp_path), path.name, BASE, 100)
    assert (path.stat().st_size, index.max_entries, index.entries) == (96, 12, 0)
    index.append(1001, 50)
    index.append(1010, 99)
    assert bytes.fromhex("00000001 00000032 0000000a 00000063") == path.read_bytes()[:16]
    assert path.stat().st_size == 96
    index.close()
    assert path.stat().st_size == 16

    again = OffsetIndex.own(LocalOwnedDirectory(tmp_path), path.name, BASE, 100)
    assert again.all() == [(1001, 50), (1010, 99)]
    assert again.is_full
    again.grow()
    assert not again.is_full
    again.append(1011, 120)
    again.close()
    assert path.stat().st_size == 24


def test_an_empty_file_can_be_opened_and_grown(tmp_path: Path) -> None:
    path = tmp_path / "test.index"
    OffsetIndex.own(LocalOwnedDirectory(tmp_path), path.name, BASE, 100).close()
    assert path.stat().st_size == 0
    index = OffsetIndex.own(LocalOwnedDirectory(tmp_path), path.name, BASE, 100)
    assert index.is_full
    index.grow()
    index.append(1001, 1)
    index.close()
    assert path.stat().st_size == 8


def test_offsets_must_go_up(tmp_path: Path) -> None:
    index = OffsetIndex.own(LocalOwnedDirectory(tmp_path), "test.index", BASE, 100)
    index.append(BASE, 10)
    with pytest.raises(InvalidOffsetError, match="offset 1000 cannot follow 1000"):
        index.append(BASE, 20)
    with pytest.raises(OffsetOverflowError):
        index.append(BASE + (1 << 31), 20)
    index.append(BASE + (1 << 31) - 1, 20)
    index.close()


def test_a_full_index_refuses_entries(tmp_path: Path) -> None:
    index = OffsetIndex.own(LocalOwnedDirectory(tmp_path), "test.index", BASE, 16)
    index.append(1001, 1)
    index.append(1002, 2)
    with pytest.raises(FullIndexError):
        index.append(1003, 3)
    index.close()


def test_the_last_place_of_a_time_index_is_for_closing(tmp_path: Path) -> None:
    index = TimeIndex.own(LocalOwnedDirectory(tmp_path), "test.timeindex", BASE, 24)
    index.maybe_append(TimestampOffset(5, 1001))
    assert index.is_full
    with pytest.raises(FullIndexError):
        index.maybe_append(TimestampOffset(6, 1002))
    index.maybe_append(TimestampOffset(6, 1002), closing=True)
    assert index.all() == [(5, 1001), (6, 1002)]
    index.maybe_append(TimestampOffset(6, 1002), closing=True)
    with pytest.raises(FullIndexError):
        index.maybe_append(TimestampOffset(7, 1003), closing=True)
    index.close()


def test_times_and_offsets_must_not_go_down(tmp_path: Path) -> None:
    index = TimeIndex.own(LocalOwnedDirectory(tmp_path), "test.timeindex", BASE, 120)
    index.maybe_append(TimestampOffset(-1, 1000))
    assert index.entries == 0
    index.maybe_append(TimestampOffset(5, 1005))
    index.maybe_append(TimestampOffset(5, 1009))
    assert index.all() == [(5, 1005)]
    with pytest.raises(InvalidOffsetError):
        index.maybe_append(TimestampOffset(6, 1004))
    with pytest.raises(InvalidOffsetError):
        index.maybe_append(TimestampOffset(4, 1006))
    with pytest.raises(OffsetOverflowError):
        index.maybe_append(TimestampOffset(6, BASE + (1 << 31)))
    index.close()


@pytest.mark.parametrize(("offset", "left"), [(0, 0), (1001, 0), (1002, 1), (1005, 1), (1006, 2)])
def test_truncation(tmp_path: Path, offset: int, left: int) -> None:
    index = OffsetIndex.own(LocalOwnedDirectory(tmp_path), "test.index", BASE, 100)
    times = TimeIndex.own(LocalOwnedDirectory(tmp_path), "test.timeindex", BASE, 120)
    for number in (1001, 1005):
        index.append(number, number)
        times.maybe_append(TimestampOffset(number, number))
    index.truncate_to(offset)
    times.truncate_to(offset)
    assert (left, left) == (index.entries, times.entries)
    index.close()
    times.close()


def test_reading_only() -> None:
    index = OffsetIndex(bytes.fromhex("00000001 00000032"), BASE, "test.index")
    for change in (
        index.trim,
        index.reset,
        lambda: index.append(1005, 60),
    ):
        with pytest.raises(StoreError, match="reading only"):
            change()
    index.close()


@pytest.mark.parametrize("size", [1, 7, 9])
def test_files_with_a_partial_entry_are_refused(size: int) -> None:
    with pytest.raises(CorruptIndexError, match="not a multiple"):
        OffsetIndex(b"\1" * size, BASE, "test.index").sanity_check()
    with pytest.raises(CorruptIndexError, match="not a multiple"):
        TimeIndex(b"\1" * (size + 12), BASE, "test.timeindex").sanity_check()


def test_entries_below_the_base() -> None:
    with pytest.raises(CorruptIndexError, match="below the base"):
        OffsetIndex(bytes.fromhex("ffffffff 00000032"), BASE, "test.index").sanity_check()
    with pytest.raises(CorruptIndexError, match="below the base"):
        TimeIndex(bytes(7) + b"\1" + b"\xff" * 4, BASE, "test.timeindex").sanity_check()
    with pytest.raises(CorruptIndexError, match="before the first"):
        TimeIndex(bytes(7) + b"\2" + bytes(11) + b"\1" + b"\0\0\0\1", BASE, "t").sanity_check()
