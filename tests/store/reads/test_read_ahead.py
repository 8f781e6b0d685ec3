"""Reading step by step finds what reading each step by itself finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads.live_result import LiveGetResult, SegmentMessages
from mqlake.store.reads.read_ahead import ReadAhead
from mqlake.store.results import Status
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

TAKE = ReadAhead.take
SETTINGS = StoreSettings(
    mapped_file_size_commit_log=40_000,
    mapped_file_size_consume_queue=20_000,
    max_hash_slot_num=16,
    max_index_num=64,
)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether reading ahead served each step."""
    found: list[bool] = []

    def take(ahead: ReadAhead, *arguments: int) -> SegmentMessages | None:
        run = TAKE(ahead, *arguments)
        found.append(run is not None)
        return run

    monkeypatch.setattr(ReadAhead, "take", take)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnedStore]:
    opened = OwnedStore.open(LocalOwnedDirectory(tmp_path), SETTINGS, ManualClock())
    yield opened
    opened.close()


def put(store: OwnedStore, count: int, queues: int = 1) -> None:
    for number in range(count):
        body = b"x" * (number % 50 + 1)
        store.puts.put(Message("T", body, queue_id=number % queues, tags="t"))
    store.tick()


def told(result: LiveGetResult) -> tuple[Any, ...]:
    joined = b"".join(result.pieces)
    assert joined == b"".join(result.raw)
    assert len(joined) == result.size
    return (
        *(result.status, result.next_offset, result.min_offset, result.max_offset),
        *(len(result), joined, list(result.skipped)),
    )


def alone(store: OwnedStore, queue: int, offset: int, most: int, size: int) -> LiveGetResult:
    """Read one step, by a reading that knows of no other."""
    store.reads.forget()
    return store.reads.get("T", queue, offset, most, max_bytes=size)


def walk(store: OwnedStore, queue: int, steps: Iterator[tuple[int, int]]) -> list[tuple[Any, ...]]:
    offset, found = 0, list[tuple[Any, ...]]()
    for most, size in steps:
        result = store.reads.get("T", queue, offset, most, max_bytes=size)
        found.append((offset, most, size, *told(result)))
        offset = result.next_offset
        if result.status is not Status.FOUND:
            break
    return found


def test_a_backlog_is_read_ahead(store: OwnedStore, taken: list[bool]) -> None:
    put(store, 3000)
    steps = iter([(32, 1 << 18)] * 200)
    for offset, most, size, *found in walk(store, 0, steps):
        assert found == list(told(alone(store, 0, offset, most, size)))
    whole = taken[: 3000 // 32]
    assert sum(whole) > 0.8 * len(whole)


def test_messages_that_lie_together_come_in_one_piece(store: OwnedStore) -> None:
    put(store, 600)
    first = store.reads.get("T", 0, 0, 8)
    second = store.reads.get("T", 0, 8, 32)
    assert (len(first.pieces), len(second.pieces), len(second.raw)) == (8, 1, 32)
    assert told(second) == told(alone(store, 0, 8, 32, 1 << 18))


@pytest.mark.parametrize(("count", "pieces"), [(15, 15), (16, 1), (50, 1)])
def test_many_scattered_messages_come_in_one_piece(
    store: OwnedStore, count: int, pieces: int
) -> None:
    put(store, 600, queues=3)
    found = store.reads.get("T", 1, 0, count)
    assert len(found.pieces) == pieces
    assert b"".join(found.pieces) == b"".join(found.raw)
    assert len(found) == len(found.raw) == count


@settings(max_examples=40)
@given(
    data=st.data(),
    queues=st.integers(1, 3),
    count=st.integers(1, 900),
)
def test_steps_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, queues: int, count: int
) -> None:
    directory = LocalOwnedDirectory(tmp_path_factory.mktemp("store"))
    store = OwnedStore.open(directory, SETTINGS, ManualClock())
    put(store, count, queues)
    step = st.tuples(st.sampled_from((1, 7, 32, 100)), st.sampled_from((1, 300, 5000, 1 << 18)))
    usual = data.draw(step)
    chosen = (data.draw(step) if data.draw(st.integers(0, 9)) == 0 else usual for _ in range(60))
    for offset, most, size, *found in walk(store, queues - 1, chosen):
        assert found == list(told(alone(store, queues - 1, offset, most, size)))
    store.close()


def test_a_damaged_message_is_passed_over(store: OwnedStore, tmp_path: Path) -> None:
    put(store, 900)
    (record,) = store.reads.get("T", 0, 700, 1).records
    place = store.log.place(record.physical_offset)
    assert place is not None
    with (tmp_path / place.segment.path).open("r+b") as raw:
        raw.seek(place.at + 4)
        raw.write(b"bad!")
    found = walk(store, 0, iter([(32, 1 << 18)] * 50))
    for offset, most, size, *result in found:
        assert result == list(told(alone(store, 0, offset, most, size)))
    assert sum(len(result[-1]) for result in found) == 1


def test_a_queue_that_was_removed_and_made_anew(store: OwnedStore, taken: list[bool]) -> None:
    put(store, 900)
    for offset in (0, 32, 64):
        store.reads.get("T", 0, offset, 32)
    assert taken == [False, True, True]
    store.removal.remove("T")
    for number in range(900):
        store.puts.put(Message("T", b"new %d" % number))
    store.tick()
    assert [one.body for one in store.reads.get("T", 0, 96, 2).records] == [b"new 96", b"new 97"]


def test_files_that_are_deleted_are_not_held(store: OwnedStore, tmp_path: Path) -> None:
    put(store, 900)
    for offset in (0, 32, 64):
        store.reads.get("T", 0, offset, 32)
    first = store.log.segments[0]
    store.log.remove_first()
    assert str(tmp_path / first.path) not in Path("/proc/self/maps").read_text()
    found = store.reads.get("T", 0, 96, 32).records
    assert all(one.physical_offset >= first.end for one in found)
