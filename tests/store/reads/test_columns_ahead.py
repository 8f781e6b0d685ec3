"""Columns that are made for many steps at once are those that each step makes by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads import columns_ahead
from mqlake.store.reads.columns_ahead import ColumnsAhead
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

COUNT, QUEUES = 900, 3
SETTINGS = StoreSettings(mapped_file_size_commit_log=100_000, max_hash_slot_num=16)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedStore]:
    directory = LocalOwnedDirectory(tmp_path_factory.mktemp("store"))
    opened = OwnedStore.open(directory, SETTINGS, ManualClock())
    for number in range(COUNT * QUEUES):
        body, queue_id = b"body %d" % number, number % QUEUES
        opened.puts.put(Message("T", body, queue_id=queue_id, tags="t", keys=f"k{number}"))
    opened.tick()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def forget(store: OwnedStore) -> None:
    store.reads.forget()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each batch had that was made."""
    counts: list[int] = []
    whole = columns_ahead.to_arrow()

    def counted(buffer: Any, at: Any, *others: Any) -> Any:
        counts.append(len(at))
        return whole(buffer, at, *others)

    def to_arrow() -> Callable[..., Any]:
        return counted

    monkeypatch.setattr(columns_ahead, "to_arrow", to_arrow)
    return counts


def steps(store: OwnedStore, queue_id: int = 0, most: int = 32) -> Iterator[LiveGetResult]:
    offset = 0
    while result := store.reads.get("T", queue_id, offset, most):
        yield result
        offset = result.next_offset


def bodies(result: LiveGetResult) -> list[bytes]:
    batch = result.to_arrow()
    batch.validate(full=True)
    assert batch["queueOffset"].to_pylist() == [one.queue_offset for one in result.records]
    return batch["body"].to_pylist()


def sent(queue_id: int) -> list[bytes]:
    return [b"body %d" % number for number in range(queue_id, COUNT * QUEUES, QUEUES)]


def test_columns_of_a_backlog_are_made_ahead(store: OwnedStore, made: list[int]) -> None:
    for queue_id in range(QUEUES):
        found = [bodies(step) for step in steps(store, queue_id)]
        assert {len(rows) for rows in found[:-1]} == {32}
        assert [body for rows in found for body in rows] == sent(queue_id)
    assert len(made) < COUNT * QUEUES / 32 / 3


def test_no_columns_are_made_ahead_for_readers_that_do_not_ask_each_time(
    store: OwnedStore, made: list[int]
) -> None:
    for number, step in enumerate(steps(store)):
        if number % 2:
            assert len(bodies(step)) == len(step)
    assert set(made) <= {32, COUNT % 32}


def test_columns_are_kept_for_few_queues(
    store: OwnedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_ahead, "_MOST_KEPT", 2)
    forgotten: list[ColumnsAhead] = []
    whole = ColumnsAhead.forget

    def forget(columns: ColumnsAhead) -> None:
        forgotten.append(columns)
        whole(columns)

    monkeypatch.setattr(ColumnsAhead, "forget", forget)
    readings = [steps(store, queue_id) for queue_id in range(QUEUES)]
    found: list[list[bytes]] = [[] for _ in readings]
    for together in zip(*readings, strict=True):
        for so_far, step in zip(found, together, strict=True):
            so_far += bodies(step)
    assert found == [sent(queue_id) for queue_id in range(QUEUES)]
    assert forgotten


@settings(max_examples=60)
@given(st.data())
def test_columns_in_any_order_of_reads(store: OwnedStore, data: st.DataObject) -> None:
    store.reads.forget()
    offset = 0
    for _ in range(data.draw(st.integers(1, 25))):
        if not data.draw(st.integers(0, 7)):
            offset = data.draw(st.integers(0, COUNT - 1))
        most = data.draw(st.sampled_from((32, 32, 32, 7)))
        step = store.reads.get("T", 1, offset, most)
        if data.draw(st.integers(0, 5)):
            assert bodies(step) == sent(1)[offset : offset + most]
        offset = 0 if step.next_offset >= COUNT else step.next_offset
