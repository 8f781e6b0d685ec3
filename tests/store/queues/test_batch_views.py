"""Batch consume queues of a store that is read: what an offset is part of, and where queues end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.log.segments import open_log
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.results import GetResult, Status
from mqlake.store.retention.report import plan_store
from mqlake.store.snapshot import Snapshot
from tests.crash.clock import ManualClock
from tests.store.test_inner_batches import SIZES, SMALL, bases, fill, opened

END = sum(SIZES)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[StoreReader]:
    store = opened(tmp_path)
    fill(store)
    store.puts.put(Message("Plain", b"plain"))
    store.tick()
    store.close()
    with StoreReader.open(tmp_path) as reader:
        yield reader


def test_an_offset_within_a_batch_is_answered_with_that_batch(reader: StoreReader) -> None:
    assert reader.queue("Batches", 0) == (0, END)
    for base, size in zip(bases(SIZES), SIZES, strict=True):
        for offset in range(base, base + size):
            found = reader.get("Batches", 0, offset, 1)
            assert [record.queue_offset for record in found.records] == [base]
            assert found.next_offset == base + size
    assert reader.get("Batches", 0, END).status is Status.OFFSET_OVERFLOW_ONE


def test_a_view_answers_as_the_live_store_does(reader: StoreReader, tmp_path: Path) -> None:
    found = [outcome(reader.get("Batches", 0, at, 1)) for at in range(END + 2)]
    live = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())
    assert found == [outcome(live.reads.get("Batches", 0, at, 1)) for at in range(END + 2)]
    live.close()


def outcome(got: GetResult | LiveGetResult) -> tuple[object, ...]:
    offsets = [record.queue_offset for record in got.records]
    return got.status, got.next_offset, got.min_offset, got.max_offset, offsets


def test_topics_and_queues_are_known_by_their_files(reader: StoreReader, tmp_path: Path) -> None:
    directory = LocalOwnedDirectory(tmp_path)
    snapshot = Snapshot(directory, open_log(directory), None)
    assert snapshot.topics_with_files == reader.topics() == ["Batches", "Plain"]
    assert snapshot.queue_ids("Batches") == reader.queues("Batches") == [0]


def test_inspect_shows_where_batch_queues_end(reader: StoreReader) -> None:
    (batches, plain) = reader.inspect().topics
    assert [(queue.min_offset, queue.max_offset) for queue in batches.queues] == [(0, END)]
    assert [(queue.min_offset, queue.max_offset) for queue in plain.queues] == [(0, 1)]


def test_retention_plans_the_files_that_go_with_the_log(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for _ in range(20):
        fill(store)
    store.tick()
    store.close()
    settings = msgspec.structs.replace(SMALL, max_commit_log_bytes=3 * 4096)
    directory = LocalOwnedDirectory(tmp_path)

    planned = {removal.file for removal in plan_store(directory, settings, 0).files}

    store = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())
    before = files(tmp_path)
    for _ in range(sum(path.startswith("commitlog/") for path in planned)):
        store.log.remove_first()
    store.queues.trim(store.log.min_offset)
    gone = before - files(tmp_path)
    store.close()
    assert {path for path in planned if path.startswith("batchconsumequeue/")} == gone
    assert len(gone) > 3


def files(store: Path) -> set[str]:
    found = (store / "batchconsumequeue").rglob("0*")
    return {str(path.relative_to(store)) for path in found if path.is_file()}
