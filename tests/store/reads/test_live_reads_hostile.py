"""Queue entries that lie: none of them raises, crashes, or brings a message that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE, QueueEntry
from mqlake.formats.file_name import segment_name
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

COUNT = 90
SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=20 * 1000,
    max_hash_slot_num=16,
    max_index_num=64,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedStore]:
    path = tmp_path_factory.mktemp("store")
    opened = OwnedStore.open(LocalOwnedDirectory(path), SMALL, ManualClock())
    for number in range(COUNT):
        opened.puts.put(Message("T", b"body %d" % number, tags="red", queue_id=0))
        opened.puts.put(Message("Other", b"other %d" % number))
    opened.tick()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def good(store: OwnedStore) -> list[QueueEntry]:
    # A queue looks for its first entry once: here before any is wrong, in whatever order tests run.
    assert store.queues.min_offset("T", 0) == 0
    entries = store.queues.entries("T", 0, 0, COUNT)
    return [consume_queue.decode(entries, at) for at in range(0, len(entries), ENTRY_SIZE)]


def overwrite(store: OwnedStore, entries: dict[int, QueueEntry]) -> None:
    path = Path(store.directory.describe(f"consumequeue/T/0/{segment_name(0)}"))
    with path.open("r+b") as file:
        for queue_offset, entry in entries.items():
            file.seek(queue_offset * ENTRY_SIZE)
            file.write(consume_queue.encode(entry))


def check(store: OwnedStore, good: list[QueueEntry], bad: dict[int, QueueEntry]) -> None:
    """Read around wrong entries, in all ways, and put the right ones back."""
    overwrite(store, bad)
    try:
        _check_get(store, {at for at, entry in bad.items() if entry != good[at]})
        _check_times(store, {at for at, entry in bad.items() if entry[0] != good[at][0]})
    finally:
        overwrite(store, {at: good[at] for at in bad})


def _check_get(store: OwnedStore, bad: set[int]) -> None:
    left = [number for number in range(COUNT) if number not in bad]
    for tags, most in ((None, COUNT), ("red", COUNT), (None, 3)):
        at, found, skipped = 0, list[int](), list[int]()
        while at < COUNT:
            result = store.reads.get("T", 0, at, most, tags=tags, max_bytes=1 << 20)
            assert result.next_offset > at
            at = result.next_offset
            found += [one.queue_offset for one in result.records]
            skipped += [one.queue_offset for one in result.skipped]
            assert all(one.body == b"body %d" % one.queue_offset for one in result.records)
            rows = result.to_arrow().column("queueOffset").to_pylist()
            assert rows == [one.queue_offset for one in result.records]
            assert len(result.raw) == len(rows)
        assert found == left
        assert set(skipped) <= bad
        assert tags or set(skipped) == bad


def _check_times(store: OwnedStore, bad: set[int]) -> None:
    timed = store.reads.by_time_range("T", 0, 1 << 62, 1000).records
    assert [one.queue_offset for one in timed] == [n for n in range(COUNT) if n not in bad]
    assert 0 <= store.reads.offset_by_time("T", 0, 1 << 61, "upper") < COUNT


@pytest.mark.parametrize(
    "entry",
    [
        QueueEntry(1 << 62, 200, 0),
        QueueEntry((1 << 63) - 1, 0x7FFFFFFF, 0),
        QueueEntry(-(1 << 63), -(1 << 31), -(1 << 63)),
        QueueEntry(-1, 100, 0),
        QueueEntry(4095, 100, 0),
        QueueEntry(4096, 0x7FFFFFFF, 0),
        QueueEntry(1, 100, 0),
        QueueEntry(0, 0, 0),
        BLANK_ENTRY,
    ],
)
def test_one_wrong_entry_hides_no_other_message(
    store: OwnedStore, good: list[QueueEntry], entry: QueueEntry
) -> None:
    for at in (0, 40, COUNT - 1):
        check(store, good, {at: entry})


def test_entries_in_the_wrong_places(store: OwnedStore, good: list[QueueEntry]) -> None:
    check(store, good, {10: good[11], 11: good[10]})
    check(store, good, {number: good[COUNT - 1 - number] for number in range(COUNT)})
    other = consume_queue.decode(store.queues.entries("Other", 0, 7, 1))
    check(store, good, {7: other})
    check(store, good, {7: good[7]._replace(size=good[7].size + 1)})


def test_entries_behind_the_readable_end(store: OwnedStore, good: list[QueueEntry]) -> None:
    end = store.log.end
    for offset in (end - 1, end, end + 1, end + 8000):
        check(store, good, {20: QueueEntry(offset, 150, 0)})


def test_nothing_but_wrong_entries(store: OwnedStore, good: list[QueueEntry]) -> None:
    overwrite(store, {number: QueueEntry(1 << 50, 100, 0) for number in range(COUNT)})
    # RocketMQ's words for an entry whose message it cannot find.
    result = store.reads.get("T", 0, 10)
    assert (result.status, result.next_offset) == ("MESSAGE_WAS_REMOVING", COUNT)
    assert len(result.skipped) == COUNT - 10
    assert all(one.reason for one in result.skipped)
    overwrite(store, dict(enumerate(good)))


_ENTRY = st.builds(
    QueueEntry,
    st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 30_000)),
    st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 200)),
    st.just(112785),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.integers(0, COUNT - 1), _ENTRY, max_size=COUNT // 2))
def test_any_entries_are_survived(
    store: OwnedStore, good: list[QueueEntry], bad: dict[int, QueueEntry]
) -> None:
    check(store, good, bad)


def test_damaged_bodies_are_passed_over_unless_they_are_wanted(tmp_path: Path) -> None:
    store = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())
    for _ in range(3):
        store.puts.put(Message("T", b"a body"))
    store.tick()
    at = store.reads.get("T", 0, 1, 1).records[0].physical_offset
    path = tmp_path / "commitlog" / segment_name(0)
    data = bytearray(path.read_bytes())
    data[data.index(b"a body", at)] ^= 1
    path.write_bytes(data)
    result = store.reads.get("T", 0, 0)
    assert [one.queue_offset for one in result.records] == [0, 2]
    (skipped,) = result.skipped
    assert (skipped.queue_offset, skipped.physical_offset) == (1, at)
    assert "checksum" in skipped.reason
    assert len(store.reads.get("T", 0, 0, crc=False).raw) == 3
    store.close()
