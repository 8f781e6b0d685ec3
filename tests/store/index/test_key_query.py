"""Key queries: the newest matches, whatever the index lacks, within what may be looked at."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import IndexEntry
from mqlake.formats.java_string import index_key_hash
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.index import key_scan
from mqlake.store.index.index_files import IndexFile, IndexFiles
from mqlake.store.log.segments import CommitLog, find_segments
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.results import FoundOffsets, QueryBudget
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

LAST = (1 << 63) - 1
BLOCK = 4 << 10
"""Bytes of the log that are scanned about as fast as an index entry is looked at."""
KEYS = ("Aa", "BB", "k1", "k2", "AaBB", "BBAa")
"""The first two have one hash, and so have the last two."""


def open_store(path: Path, **changed: object) -> OwnedStore:
    known: dict[str, object] = {
        "mapped_file_size_commit_log": 64 << 10,
        "max_hash_slot_num": 3,
        "max_index_num": 64,
    }
    return OwnedStore.open(
        LocalOwnedDirectory(path), StoreSettings(**(known | changed)), ManualClock()
    )


def steps(search: Generator[None, None, FoundOffsets]) -> tuple[FoundOffsets, int]:
    """Return the result of a query, and how many steps it took."""
    count = 0
    while True:
        try:
            next(search)
        except StopIteration as stop:
            return stop.value, count
        count += 1


def test_keys_with_the_same_hash_are_told_apart() -> None:
    assert index_key_hash("T#Aa") == index_key_hash("T#BB")


@pytest.mark.parametrize("seed", range(6))
def test_a_query_finds_the_newest_matches_and_says_whether_it_saw_all(
    tmp_path: Path, seed: int
) -> None:
    """Against a list of all messages; and a smaller budget leaves out older ones only."""
    dice = random.Random(seed)
    dialect, is_indexed = dice.choice(list(Dialect)), dice.random() < 0.7
    store = open_store(tmp_path, index_dialect=dialect, message_index_enable=is_indexed)
    put: list[tuple[int, str, list[str], str]] = []
    for _ in range(150):
        keys = [dice.choice(KEYS) for _ in range(dice.choice((0, 1, 3, 40)))]
        topic, tags = dice.choice("TU"), dice.choice(("red", "Aa"))
        body = bytes(dice.choice((0, 100, 5000)))
        result = store.puts.put(Message(topic, body, tags=tags, keys=keys))
        put.append((result.physical_offset, topic, keys, tags))
        if dice.random() < 0.3:
            store.tick()
    for topic in "TU":
        for key, kind in [*((key, None) for key in KEYS), ("red", "T"), ("Aa", "T")]:
            expected = [
                at
                for at, name, keys, tags in put
                if name == topic and (key == tags if kind else key in keys)
            ]
            limit = dice.choice((1, 5, 1000))
            found, count = steps(
                store.reads.search(
                    topic, key, begin=0, end=LAST, max=limit, index_type=kind, budget=QueryBudget()
                )
            )
            assert found.offsets == expected[-limit:]
            assert found.is_truncated == (len(expected) > limit)
            assert count >= len(found.offsets)
            budget = QueryBudget(dice.choice((1, 50, 500)), dice.choice((1, 100_000)))
            part, _ = steps(
                store.reads.search(
                    topic, key, begin=0, end=LAST, max=limit, index_type=kind, budget=budget
                )
            )
            assert part.offsets == found.offsets[len(found.offsets) - len(part.offsets) :]
            if part.offsets != found.offsets:
                assert part.is_truncated
                assert budget.is_exceeded
    store.close()


def test_a_record_is_looked_at_once_however_many_of_its_keys_have_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, max_hash_slot_num=100, max_index_num=100_000)
    for _ in range(5):
        store.puts.put(Message("T", b"", keys=["Aa"] * 10_000))
    store.tick()
    looked: list[int] = []
    record = store.log.place
    monkeypatch.setattr(store.log, "place", lambda at: looked.append(at) or record(at))
    found, count = steps(
        store.reads.search(
            "T", "BB", begin=0, end=LAST, max=64, index_type=None, budget=QueryBudget()
        )
    )
    assert found == ([], False)
    assert len(looked) == 5
    assert count >= 50_000 // 64
    found, _ = steps(
        store.reads.search(
            "T", "Aa", begin=0, end=LAST, max=64, index_type=None, budget=QueryBudget()
        )
    )
    assert len(found.offsets) == 5
    store.close()


@pytest.mark.parametrize("is_indexed", [True, False])
def test_no_step_of_a_query_looks_at_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    """Counted, as a slow machine takes longer: index entries, records, and blocks of the log."""
    store = open_store(
        tmp_path,
        mapped_file_size_commit_log=64 << 20,
        max_hash_slot_num=1,
        max_index_num=1_000_000,
        message_index_enable=is_indexed,
    )
    store.puts.put_many([Message("T", b"", keys=["Aa", "k1"])] * 50_000)
    store.tick()
    looked, slot, place, scan = 0, IndexFile.slot, store.log.place, key_scan.segment_scan

    def counted_slot(file: IndexFile, key_hash: int) -> Iterator[IndexEntry]:
        nonlocal looked
        for entry in slot(file, key_hash):
            looked += 1
            yield entry

    def counted_place(offset: int) -> Any:
        nonlocal looked
        looked += 1
        return place(offset)

    def counted_scan(log: Any, segment: Any, start: int, end: int, **how: Any) -> Any:
        nonlocal looked
        looked += (end - start) // BLOCK
        return scan(log, segment, start, end, **how)

    monkeypatch.setattr(IndexFile, "slot", counted_slot)
    monkeypatch.setattr(store.log, "place", counted_place)
    monkeypatch.setattr(key_scan, "segment_scan", counted_scan)
    for key in ("none", "BB"):
        search, most, total = (
            store.reads.search(
                "T", key, begin=0, end=LAST, max=64, index_type=None, budget=QueryBudget()
            ),
            0,
            0,
        )
        while True:
            looked = 0
            is_over = next(search, True)
            most, total = max(most, looked), total + looked
            if is_over:
                break
        assert most <= 100
        assert total > 1000
    store.close()


def test_a_query_survives_what_is_removed_meanwhile(tmp_path: Path) -> None:
    for is_indexed in (True, False):
        (tmp_path / str(is_indexed)).mkdir()
        store = open_store(tmp_path / str(is_indexed), message_index_enable=is_indexed)
        for _ in range(1000):
            store.puts.put(Message("T", bytes(300), keys="k1"))
        store.tick()
        search = store.reads.search(
            "T", "k1", begin=0, end=LAST, max=2000, index_type=None, budget=QueryBudget()
        )
        for _ in range(20):
            next(search)
        while store.log.remove_first() is not None:
            store.index.trim(store.log.min_offset)
        found, _ = steps(search)
        last = store.reads.search(
            "T", "k1", begin=0, end=LAST, max=2000, index_type=None, budget=QueryBudget()
        )
        assert set(steps(last)[0].offsets) <= set(found.offsets)
        store.close()


def test_gaps_between_index_files_end_where_records_end(tmp_path: Path) -> None:
    store = open_store(tmp_path, max_hash_slot_num=16, max_index_num=8)
    ends = set[int]()
    for number in range(40):
        assert store.puts.put(Message("T", b"b", keys=[f"k{number}", "all"])).is_ok
        ends.add(store.log.end)
    store.close()
    first, *rest = sorted((tmp_path / "index").iterdir())
    first.unlink()
    rest[2].unlink()

    directory = LocalOwnedDirectory(tmp_path)
    index, log = IndexFiles.open(directory), CommitLog(directory, find_segments(directory))
    gaps = list(index.gaps(log, 0, max(ends)))
    with StoreReader.open(tmp_path) as reader:
        found = reader.by_key("T", "all", max=100).records

    assert len(gaps) > 2
    assert {end for _, end in gaps} <= ends
    assert len(found) == 40
