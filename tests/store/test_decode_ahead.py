"""What is decoded for many steps at once is what each step decodes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.formats.record import Record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads import decode_ahead
from mqlake.store.reads.decode_ahead import Stretch
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
        opened.put(Message("T", body, queue_id=queue_id, tags="t", keys=f"k{number}"))
    opened.tick()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def forget(store: OwnedStore) -> None:
    store.reads.forget()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each call has decoded ahead or for one step."""
    counts: list[int] = []
    for name in ("decode", "_to_arrow"):
        whole = getattr(decode_ahead, name)

        def counted(buffer: Any, at: Any, *others: Any, whole: Any = whole) -> Any:
            counts.append(len(at))
            return whole(buffer, at, *others)

        monkeypatch.setattr(decode_ahead, name, counted)
    return counts


def steps(store: OwnedStore, queue_id: int = 0, most: int = 32) -> Iterator[LiveGetResult]:
    offset = 0
    while result := store.reads.get("T", queue_id, offset, most):
        yield result
        offset = result.next_offset


def bodies(records: list[Record]) -> list[bytes]:
    return [record.body for record in records]


def sent(queue_id: int) -> list[bytes]:
    return [b"body %d" % number for number in range(queue_id, COUNT * QUEUES, QUEUES)]


def test_records(store: OwnedStore, decoded: list[int]) -> None:
    for queue_id in range(QUEUES):
        found = [body for step in steps(store, queue_id) for body in bodies(step.records)]
        assert found == sent(queue_id)
    assert len(decoded) < COUNT * QUEUES / 32 / 3


def test_columns(store: OwnedStore, decoded: list[int]) -> None:
    for queue_id in range(QUEUES):
        batches = [step.to_arrow() for step in steps(store, queue_id)]
        assert {batch.num_rows for batch in batches[:-1]} == {32}
        assert [body for batch in batches for body in batch["body"].to_pylist()] == sent(queue_id)
        for batch in batches:
            batch.validate(full=True)
    assert len(decoded) < COUNT * QUEUES / 32 / 3


def test_nothing_is_decoded_ahead_for_who_does_not_ask(
    store: OwnedStore, decoded: list[int]
) -> None:
    for number, step in enumerate(steps(store)):
        if number % 2:
            assert len(step.records) == len(step)
    assert set(decoded) <= {32, COUNT % 32}


def test_no_record_is_handed_out_twice(store: OwnedStore) -> None:
    found = list(steps(store))
    twice = [step.records for step in found]
    again = [store.reads.get("T", 0, offset, 32).records for offset in range(0, COUNT, 32)]
    assert [bodies(records) for records in twice] == [bodies(records) for records in again]
    for before, now in zip(twice, again, strict=True):
        assert not {*map(id, before)} & {*map(id, now)}
    same = store.reads.get("T", 0, 320, 32)
    other = store.reads.get("T", 0, 320, 32)
    same.records[0].properties["KEYS"] = "mine"
    assert other.records[0].properties["KEYS"] != "mine"


def test_few_stretches_are_kept(store: OwnedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_ahead, "_MOST_KEPT", 2)
    forgotten: list[Stretch] = []
    whole = Stretch.forget

    def forget(stretch: Stretch) -> None:
        forgotten.append(stretch)
        whole(stretch)

    monkeypatch.setattr(Stretch, "forget", forget)
    readings = [steps(store, queue_id) for queue_id in range(QUEUES)]
    found: list[list[bytes]] = [[] for _ in readings]
    for together in zip(*readings, strict=True):
        for kept, step in zip(found, together, strict=True):
            kept += bodies(step.records)
    assert found == [sent(queue_id) for queue_id in range(QUEUES)]
    assert forgotten


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_and_form(store: OwnedStore, data: st.DataObject) -> None:
    store.reads.forget()
    chosen = st.sampled_from(("records", "arrow", "both", "none"))
    usual = data.draw(chosen)
    offset = 0
    for _ in range(data.draw(st.integers(1, 25))):
        if not data.draw(st.integers(0, 7)):
            offset = data.draw(st.integers(0, COUNT - 1))
        most = data.draw(st.sampled_from((32, 32, 32, 7)))
        step = store.reads.get("T", 1, offset, most)
        want = sent(1)[offset : offset + most]
        form = data.draw(chosen) if not data.draw(st.integers(0, 4)) else usual
        if form in ("records", "both"):
            assert bodies(step.records) == want
        if form in ("arrow", "both"):
            assert step.to_arrow()["body"].to_pylist() == want
        offset = 0 if step.next_offset >= COUNT else step.next_offset


def test_steps_adjoin(store: OwnedStore) -> None:
    records = [record for step in steps(store) for record in step.records]
    assert all(a.queue_offset + 1 == b.queue_offset for a, b in pairwise(records))
