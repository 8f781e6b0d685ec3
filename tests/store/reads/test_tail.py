"""Following a topic: every message once, each queue in its order, and nobody waits for others."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest

from mqlake.formats.record import Record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads.tail import Following, Tail, follow_blocking
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=200,
    max_hash_slot_num=16,
    max_index_num=64,
)
PATIENCE = 200


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnedStore]:
    opened = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())
    yield opened
    opened.close()


def put(store: OwnedStore, *bodies: str, topic: str = "T", queue_id: int = 0) -> None:
    for body in bodies:
        store.puts.put(Message(topic, body.encode(), tags=body[0], queue_id=queue_id))
    store.tick()


def text(records: list[Record]) -> list[str]:
    return [record.body.decode() for record in records]


async def first(store: OwnedStore, count: int, **how: object) -> list[str]:
    found: list[Record] = []
    async for record in Following(Tail(store.reads, "T", **how)):
        found.append(record)
        if len(found) == count:
            break
    return text(found)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_tail_waits_for_messages(store: OwnedStore) -> None:
    async def run() -> None:
        put(store, "old")
        reader = asyncio.create_task(first(store, 3))
        await settle()
        for body in ("a", "b"):
            put(store, body)
            await settle()
            assert not reader.done()
        put(store, "c")
        assert await reader == ["a", "b", "c"]

    asyncio.run(run())


def test_where_a_tail_begins(store: OwnedStore) -> None:
    async def run() -> None:
        put(store, "a0", "a1", "a2")
        put(store, "b0", "b1", queue_id=1)
        assert sorted(await first(store, 5, offset=0)) == ["a0", "a1", "a2", "b0", "b1"]
        assert await first(store, 1, queue_ids=[0], offset=2) == ["a2"]
        assert sorted(await first(store, 2, offset={0: 2, 1: 1})) == ["a2", "b1"]
        assert await first(store, 2, queue_ids=[1], offset=0, tags="b") == ["b0", "b1"]
        assert sorted(await first(store, 3, offset=0, tags="a || c")) == ["a0", "a1", "a2"]

    asyncio.run(run())


def test_the_end_is_the_one_at_the_time_of_the_call(store: OwnedStore) -> None:
    async def run() -> None:
        store.puts.put(Message("T", b"not dispatched yet"))
        records = Following(Tail(store.reads, "T"))
        put(store, "a")
        assert text([await anext(records)]) == ["a"]

    asyncio.run(run())


def test_a_tail_includes_queues_that_are_created_later(store: OwnedStore) -> None:
    async def run() -> None:
        everything = asyncio.create_task(first(store, 3))
        one_queue = asyncio.create_task(first(store, 1, queue_ids=[7]))
        await settle()
        put(store, "a", queue_id=3)
        put(store, "other", topic="U")
        put(store, "b", queue_id=4)
        put(store, "c", queue_id=7)
        assert await everything == ["a", "b", "c"]
        assert await one_queue == ["c"]

    asyncio.run(run())


def test_a_tail_from_a_future_offset_waits_for_it(store: OwnedStore) -> None:
    async def run() -> None:
        reader = asyncio.create_task(first(store, 1, queue_ids=[0], offset=3))
        for body in ("a", "b", "c", "d"):
            await settle()
            assert not reader.done()
            put(store, body)
        assert await reader == ["d"]

    asyncio.run(run())


def test_a_tail_skips_removed_offsets(store: OwnedStore) -> None:
    put(store, *(f"body {number}" for number in range(100)))
    store.log.remove_first()
    store.queues.trim(store.log.min_offset)
    low = store.reads.queue("T", 0).min_offset
    assert asyncio.run(first(store, 1, offset=0)) == [f"body {low}"]


def test_a_tail_returns_many_messages_in_order(store: OwnedStore) -> None:
    """Each has its own pace: a slow one holds no other up, and misses nothing."""

    async def slow() -> list[Record]:
        found: list[Record] = []
        async for record in Following(Tail(store.reads, "T", offset=0)):
            found.append(record)
            await asyncio.sleep(0)
            if len(found) == 400:
                break
        return found

    async def run() -> None:
        stopped = asyncio.create_task(anext(Following(Tail(store.reads, "T"))))
        readers = [asyncio.create_task(slow()) for _ in range(10)]
        for number in range(100):
            for queue_id in range(4):
                put(store, f"{number}", queue_id=queue_id)
            if number % 7 == 0:
                await asyncio.sleep(0)
        await stopped
        for reader in readers:
            found = await reader
            for queue_id in range(4):
                queue = [record for record in found if record.queue_id == queue_id]
                assert text(queue) == [f"{number}" for number in range(100)]

    asyncio.run(run())


def test_other_tasks_have_their_turn(store: OwnedStore) -> None:
    async def run() -> None:
        put(store, *(f"{number}" for number in range(320)))
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        assert len(await first(store, 320, offset=0)) == 320
        assert turns >= 9
        task.cancel()

    asyncio.run(run())


def test_a_cancelled_tail_loses_no_message(store: OwnedStore) -> None:
    async def run() -> None:
        records = Following(Tail(store.reads, "T"))
        for body in ("a", "b", "c"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(records), 0.001)
            put(store, body)
            assert text([await anext(records)]) == [body]

    asyncio.run(run())


def test_a_tail_ends_when_the_store_closes(tmp_path: Path) -> None:
    async def run() -> None:
        store = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())
        reader = asyncio.create_task(first(store, 9))
        await settle()
        put(store, "a")
        await settle()
        store.close()
        assert await reader == ["a"]

    asyncio.run(run())


def test_a_tail_that_ended_leaves_nothing_behind(store: OwnedStore) -> None:
    async def run() -> None:
        for _ in range(50):
            await asyncio.wait_for(first(store, 1, offset=0), PATIENCE)

    put(store, "a")
    asyncio.run(run())
    unused = Tail(store.reads, "T")
    gc.collect()
    (listeners,) = store.reads.arrivals._listeners.values()
    assert list(listeners) == [unused]


def test_a_tail_for_threads(store: OwnedStore) -> None:
    lock = threading.Lock()
    with lock:
        tail = Tail(store.reads, "T")
    found: list[str] = []

    def read() -> None:
        found.extend(text(list(islice(follow_blocking(tail, lock), 50))))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(50):
        with lock:
            put(store, f"{number}")
    reader.join(PATIENCE)
    assert found == [f"{number}" for number in range(50)]


def test_a_thread_waits_no_longer_than_its_timeout(store: OwnedStore) -> None:
    put(store, "a", "b")
    tail = Tail(store.reads, "T", offset=0)
    assert text(list(follow_blocking(tail, nullcontext(), timeout=0.01))) == ["a", "b"]


def test_tails_of_threads_end_when_the_store_closes(tmp_path: Path) -> None:
    store = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())
    tail = Tail(store.reads, "T")
    reader = threading.Thread(target=lambda: list(follow_blocking(tail, nullcontext())))
    reader.start()
    store.close()
    reader.join(PATIENCE)
    assert not reader.is_alive()
