"""The facades: puts that wait for the disk together, tails, stops, failures."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import DiskError, StoreError
from mqlake.store import (
    BlockingMessageStore,
    Message,
    MessageStore,
    PutError,
    PutStatus,
)
from mqlake.store.config.config_file import ConfigWrite
from mqlake.store.delivery.transactions import EndStatus
from mqlake.store.dispatch.dispatcher import Dispatcher
from mqlake.store.loop import service_task
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.owned_store import OwnedStore
from tests.until import rounds

SMALL = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
# Only puts sync, and they may take as long as a slow disk needs.
SYNC = SMALL | {
    "flushDiskType": "SYNC_FLUSH",
    "syncFlushTimeout": 60_000,
    "flushIntervalCommitLog": 60_000,
}
PATIENCE = 200
THREADS = 8


def message(number: int, queue_id: int = 0) -> Message:
    return Message("Topic", b"%d" % number, keys=f"key{number}", queue_id=queue_id)


async def arrival(store: MessageStore, count: int) -> None:
    """Wait until so many messages can be read from the first queue."""
    offset = 0
    async for _ in store.tail("Topic", [0], 0):
        offset += 1
        if offset == count:
            return


def dispatch(store: BlockingMessageStore) -> None:
    with store.lock:
        store.core.tick()


class CountedSyncs:
    """Counts the syncs of files, holds them up while told to, and fails them once told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.fails = 0, False
        self.are_held: Callable[[], bool] = lambda: False
        whole = os.fdatasync

        def sync(descriptor: int) -> None:
            self.count += 1
            until = time.monotonic() + PATIENCE
            while self.are_held() and time.monotonic() < until:
                time.sleep(0.0002)
            if self.fails:
                raise OSError(5, "Input/output error")
            whole(descriptor)

        monkeypatch.setattr(os, "fdatasync", sync)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> CountedSyncs:
    return CountedSyncs(monkeypatch)


def test_put_get_and_open_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path / "store", SMALL) as store:
            for number in range(500):
                result = await store.put(message(number))
                assert result.queue_offset == number
            await arrival(store, 500)
            assert [r.body for r in store.get("Topic", 0, 498).records] == [b"498", b"499"]
            assert store.topics() == ["Topic"]
            assert store.queues("Topic") == [0]
        async with MessageStore.open(tmp_path / "store", SMALL) as store:
            found = store.by_key("Topic", "key77").records
            assert [record.queue_offset for record in found] == [77]
            assert store.by_message_id(found[0].message_id) == found[0]
            assert store.record_at(found[0].physical_offset) == found[0]
            assert store.offset_by_time("Topic", 0, found[0].store_timestamp) <= 77
            assert len(store.by_time_range("Topic", 0, 1 << 60, 10).records) == 10

    asyncio.run(run())


def test_puts_that_wait_share_syncs(tmp_path: Path, syncs: CountedSyncs) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            before = syncs.count
            await asyncio.gather(*(store.put(message(number)) for number in range(64)))
            # Those that were put together wait together; the store's services may sync too.
            assert syncs.count - before < 16
            assert store.core.log.flushed == store.core.log.end
            assert len(store.get("Topic", 0, 0, 64).records) == 64

    asyncio.run(run())


def test_many_and_batches(tmp_path: Path) -> None:
    from mqlake.formats.message_batch import encode_batch
    from mqlake.store import MessageBatch

    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            results = await store.put_many([message(0), Message("../x", b""), message(1, 1)])
            assert [result.is_ok for result in results] == [True, False, True]
            body = encode_batch([(0, b"one", b""), (0, b"two", b"")])
            assert (await store.put_batch(MessageBatch("Topic", body))).count == 2
            assert [r.body for r in store.get("Topic", 0, 0).records] == [b"0", b"one", b"two"]
            with pytest.raises(PutError, match="MESSAGE_ILLEGAL"):
                await store.put_batch(MessageBatch("Topic", b"nonsense"))

    asyncio.run(run())


def test_a_prepared_message_is_read_once_it_is_committed(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            first = await store.prepare(message(1), "producers")
            second = await store.prepare(message(2), "producers")
            assert store.queue("Topic", 0).max_offset == 0
            assert (await store.end(first, "producers", commit=False)).status is EndStatus.OK
            ended = await store.end(second, "producers", commit=True)
            assert ended.status is EndStatus.OK
            # A tick that takes long dispatches the messages of some queues only.
            store.core.tick()
            assert [r.body for r in store.get("Topic", 0, 0).records] == [b"2"]
            again = await store.end(second, "producers", commit=True)
            assert again.status is EndStatus.ALREADY_ENDED

    asyncio.run(run())
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        half = store.prepare(message(3), "producers")
        assert store.end(half, "others", commit=True).status is EndStatus.WRONG_GROUP
        assert store.end(half, "producers", commit=True).status is EndStatus.OK
        dispatch(store)
        assert [r.body for r in store.tail("Topic", offset=0, timeout=0.05)] == [b"2", b"3"]


def test_a_refused_put_is_an_error(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL) as store:
            with pytest.raises(PutError, match="MESSAGE_ILLEGAL") as refused:
                await store.put(Message("../../x", b""))
            assert refused.value.result.status is PutStatus.MESSAGE_ILLEGAL

    asyncio.run(run())
    with (
        BlockingMessageStore.open(tmp_path, SMALL) as store,
        pytest.raises(PutError, match="MESSAGE_ILLEGAL"),
    ):
        store.put(Message("a/b", b""))


def test_a_failed_sync_fails_all_that_wait_and_the_store_stays_readable(
    tmp_path: Path, syncs: CountedSyncs
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            await store.put(message(0))
            syncs.fails = True
            puts = [store.put(message(number)) for number in range(1, 9)]
            results = await asyncio.gather(*puts, return_exceptions=True)
            assert all(isinstance(result, PutError) for result in results)
            assert "Input/output error" in str(results[0])
            syncs.fails = False
            with pytest.raises(PutError, match="SERVICE_NOT_AVAILABLE"):
                await store.put(message(9))
            assert [r.body for r in store.get("Topic", 0, 0).records] == [b"0"]

    with pytest.raises(DiskError, match="Input/output error"):
        asyncio.run(run())
    assert (tmp_path / "abort").exists()
    with BlockingMessageStore.open(tmp_path, SYNC) as store:
        assert not store.core.recovered.is_clean
        assert store.get("Topic", 0, 0).records[0].body == b"0"


def test_a_sync_beyond_the_flush_timeout_is_a_put_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    whole = os.fdatasync

    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC | {"syncFlushTimeout": 50}) as store:
            monkeypatch.setattr(os, "fdatasync", lambda file: (held.wait(PATIENCE), whole(file)))
            with pytest.raises(PutError, match="the message is not durable after 50 ms"):
                await store.put(message(0))
            held.set()

    asyncio.run(run())


def test_appends_are_durable_once_that_was_waited_for(tmp_path: Path, syncs: CountedSyncs) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            results = store.appends.many([message(0), Message("../x", b""), message(1)])
            assert store.watermarks.unconfirmed(results) is results[-1]
            assert store.core.log.flushed < store.core.log.end
            assert await store.appends.confirm(results) == results
            assert store.core.log.flushed == store.core.log.end
            syncs.fails = True
            kept, refused, lost = await store.appends.confirm(
                [*results[:2], *store.appends.many([message(2)])]
            )
            assert (kept, refused) == (results[0], results[1])
            assert (lost.status, lost.count) == (PutStatus.UNKNOWN_ERROR, 1)
            syncs.fails = False

    with pytest.raises(DiskError):
        asyncio.run(run())


def test_puts_hear_of_a_disk_that_hangs_whatever_else_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free, hanging = threading.Event(), threading.Semaphore(0)
    sync = os.fdatasync

    def hang(descriptor: int) -> None:
        hanging.release()
        is_free.wait()
        sync(descriptor)

    async def run() -> None:
        settings = SYNC | {"syncFlushTimeout": 50, "flushIntervalCommitLog": 1}
        async with MessageStore.open(tmp_path, settings) as store:
            monkeypatch.setattr(os, "fdatasync", hang)
            # Appended, not waited for: only the store's own flush syncs it, and hangs.
            store.appends.many([message(0)])
            await asyncio.to_thread(hanging.acquire)
            try:
                with pytest.raises(PutError, match="FLUSH_DISK_TIMEOUT"):
                    await store.put(message(1))
            finally:
                is_free.set()

    asyncio.run(run())


def test_closing_waits_for_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free, writing = threading.Event(), threading.Semaphore(0)
    replace, order = ConfigWrite.run, list[str]()

    def slow(write: ConfigWrite) -> None:
        order.append("begin")
        writing.release()
        is_free.wait()
        replace(write)
        order.append("end")

    async def run() -> None:
        store = await MessageStore.open(tmp_path, SMALL).__aenter__()
        monkeypatch.setattr(ConfigWrite, "run", slow)
        store.core.config.topics.ensure("Topic", 1)
        await asyncio.to_thread(writing.acquire)
        store.core.config.topics.ensure("Other", 1)
        closing = asyncio.create_task(store.close())
        await rounds()
        is_free.set()
        await closing

    asyncio.run(run())
    assert order == ["begin", "end"] * (len(order) // 2)


def test_nothing_is_put_nor_dispatched_while_another_thread_closes_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free, is_closing, threads = threading.Event(), threading.Event(), set[int]()
    stop, dispatch = OwnedStore._stop, Dispatcher.run

    def slow(core: OwnedStore) -> None:
        is_closing.set()
        is_free.wait()
        threads.clear()
        stop(core)

    def noted(*arguments: Any) -> None:
        threads.add(threading.get_ident())
        dispatch(*arguments)

    async def run() -> PutStatus:
        store = await MessageStore.open(tmp_path, SMALL).__aenter__()
        await store.put(Message("Topic", b"before"))
        monkeypatch.setattr(OwnedStore, "_stop", slow)
        monkeypatch.setattr(Dispatcher, "run", noted)
        closing = asyncio.create_task(store.close())
        await asyncio.to_thread(is_closing.wait)
        with pytest.raises(PutError) as refused:
            await store.put(Message("Topic", b"late"))
        store.appends.many([Message("Topic", b"later")])
        threads.clear()
        await rounds()
        assert store.core.tick()
        assert not threads
        is_free.set()
        await closing
        assert threads
        assert threading.get_ident() not in threads
        return refused.value.result.status

    assert asyncio.run(run()) is PutStatus.SERVICE_NOT_AVAILABLE
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        assert store.queue("Topic", 0).max_offset == 1


def test_a_tail_follows_until_the_store_is_closed(tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        got: list[bytes] = []
        enough = asyncio.Event()

        async def follow(store: MessageStore) -> None:
            async for record in store.tail("Topic"):
                got.append(record.body)
                if len(got) == 99:
                    enough.set()

        async with MessageStore.open(tmp_path, SMALL) as store:
            await store.put(message(0))
            await arrival(store, 1)
            task = asyncio.create_task(follow(store))
            await asyncio.sleep(0)
            for number in range(1, 100):
                await store.put(message(number))
            await enough.wait()
        await task
        return got

    assert asyncio.run(run()) == [b"%d" % number for number in range(1, 100)]


def test_a_body_of_async_with_that_fails_still_stops_cleanly(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL) as store:
            await store.put(message(0))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(run())
    assert not (tmp_path / "abort").exists()


def test_a_store_that_cannot_be_opened_is_an_error_on_entering(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL), MessageStore.open(tmp_path, SMALL):
            raise AssertionError("two owners")

    with pytest.raises(StoreError, match="owns this store"):
        asyncio.run(run())
    with pytest.raises(StoreError, match="maxIndexNum"):
        MessageStore.open(tmp_path, {"maxIndexNum": "many"})


def test_threads_share_syncs(tmp_path: Path, syncs: CountedSyncs) -> None:
    with BlockingMessageStore.open(tmp_path, SYNC) as store:
        before, ends = syncs.count, store.core.offsets
        each = threading.Barrier(THREADS)
        # A sync takes until all threads have put their next message, or one might do so alone.
        syncs.are_held = lambda: sum(ends.values()) % THREADS != 0

        def put(queue_id: int) -> None:
            for number in range(20):
                each.wait(PATIENCE)
                store.put(message(number, queue_id))

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(put, range(THREADS)))
        assert syncs.count - before < 160
        for queue_id in range(THREADS):
            bodies = [record.body for record in store.get("Topic", queue_id, 0).records]
            assert bodies == [b"%d" % number for number in range(20)]


def test_a_put_does_not_wait_for_one_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, entered = threading.Event(), threading.Event()
    with BlockingMessageStore.open(tmp_path, SMALL | {"osPageCacheBusyTimeOutMills": 10}) as store:
        append = store.core.log.append_record

        def slow(*what: Any) -> None:
            entered.set()
            assert held.wait(PATIENCE)
            append(*what)

        monkeypatch.setattr(store.core.log, "append_record", slow)
        thread = threading.Thread(target=store.put, args=[message(0)])
        thread.start()
        assert entered.wait(PATIENCE)
        time.sleep(0.05)
        with pytest.raises(PutError, match="OS_PAGE_CACHE_BUSY"):
            store.put(message(1))
        held.set()
        thread.join()
        monkeypatch.undo()
        assert store.put(message(1)).queue_offset == 1


def test_threads_hear_of_a_failed_sync(tmp_path: Path, syncs: CountedSyncs) -> None:
    store = BlockingMessageStore.open(tmp_path, SYNC)
    store.put(message(0))
    syncs.fails = True
    with pytest.raises(PutError, match="Input/output error"):
        store.put(message(1))
    refused = store.put_many([message(1)])
    assert [result.status for result in refused] == [PutStatus.SERVICE_NOT_AVAILABLE]
    assert [record.body for record in store.get("Topic", 0, 0).records] == [b"0"]
    with pytest.raises(DiskError, match="Input/output error"):
        store.close()


def test_a_blocking_tail_ends_after_its_timeout(tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        results = store.put_many([message(number) for number in range(10)])
        assert all(result.is_ok for result in results)
        dispatch(store)
        assert [r.body for r in store.tail("Topic", offset=7, timeout=0.05)] == [b"7", b"8", b"9"]


def test_a_store_that_is_closed_ends_the_removal_of_a_topic_first(tmp_path: Path) -> None:
    """Also where nobody waits for it any more."""
    queues = 300

    async def run() -> None:
        store = MessageStore.open(tmp_path, SMALL)
        async with store:
            for queue_id in range(queues):
                await store.put(Message("Topic", b"x", queue_id=queue_id))
            store.core.tick()
            store.core.config.consumer_offsets.commit("group", "Topic", 0, 1)
            waiting = asyncio.create_task(store.removals.remove("Topic"))
            await asyncio.sleep(0)
            waiting.cancel()
            left = len(store.core.queues.queues())
        assert left > 0
        assert store.core.queues.queues() == []
        assert list(store.core.config.consumer_offsets.groups_of("Topic")) == []

    asyncio.run(run())
    assert not (tmp_path / "consumequeue/Topic").exists()


def test_a_topic_may_be_removed_twice_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL) as store:
            for queue_id in range(300):
                await store.put(Message("Topic", b"x", queue_id=queue_id))
            store.core.tick()
            await asyncio.gather(*(store.removals.remove("Topic") for _ in range(3)))
            assert store.core.queues.queues() == []
            result = await store.put(Message("Topic", b"again"))
            assert result.queue_offset == 0

    asyncio.run(run())


def test_many_puts_that_wait_are_answered_before_they_are_dispatched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all are dispatched soon, whether others follow them or not."""
    # The timers of the store, which may be due at any moment, dispatch nothing.
    monkeypatch.setattr(service_task, "LOOK_INTERVAL", 600)
    monkeypatch.setattr(Dispatching, "soon", lambda _: None)

    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            loop, behind = asyncio.get_running_loop(), list[int]()

            async def put(number: int) -> None:
                await store.put(message(number))
                behind.append(number - store.core.dispatcher.count)
                assert store.watermarks.flushed > 0

            for following in (0, 64):
                await asyncio.gather(*(put(number) for number in range(64)))
                await asyncio.gather(*(put(number) for number in range(following)))
                deadline = loop.time() + PATIENCE
                while store.watermarks.dispatched < store.watermarks.end:
                    assert loop.time() < deadline
                    await asyncio.sleep(0.001)
            assert store.queue("Topic", 0).max_offset == 192
            assert max(behind) == 63, "the first ones are answered first"

    asyncio.run(run())


def test_a_put_that_the_flush_service_made_durable_is_dispatched_when_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatching, "soon", lambda _: None)
    whole, begun = os.fdatasync, threading.Event()
    ends = [threading.Event(), threading.Event()]
    syncs = iter(ends)

    def hold(descriptor: int) -> None:
        begun.set()
        if (end := next(syncs, None)) is not None:
            end.wait(PATIENCE)
        whole(descriptor)

    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC | {"flushIntervalCommitLog": 1}) as store:
            monkeypatch.setattr(os, "fdatasync", hold)
            try:
                appended = store.appends.many([message(0)])
                assert await asyncio.to_thread(begun.wait, PATIENCE)
                # Its own sync waits until that of the service has ended.
                answer = asyncio.create_task(store.appends.confirm(appended))
                for _ in range(10):
                    await asyncio.sleep(0)
                ends[0].set()
                await answer
                assert store.queue("Topic", 0).max_offset == 1
            finally:
                for end in ends:
                    end.set()

    asyncio.run(run())
