"""`confirmed` alone decides what is acknowledged, dispatched and read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.message_batch import encode_batch
from mqlake.store import (
    BlockingMessageStore,
    Message,
    MessageBatch,
    MessageStore,
    PutError,
    PutResult,
)
from mqlake.store.append.put_result import PutStatus
from mqlake.store.delivery.transactions import Ended
from mqlake.store.owned_store import OwnedStore
from mqlake.store.results import Status
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests import simulated
from tests.crash.disk import RecordedDisk
from tests.store.held_watermark import HeldWatermark
from tests.until import until, wait_until

SYNC = {"mappedFileSizeCommitLog": 1 << 16, "flushDiskType": "SYNC_FLUSH"}
SLOW = SYNC | {"syncFlushTimeout": 60_000, "osPageCacheBusyTimeOutMills": 60_000}
BODY = encode_batch([(0, b"one", b""), (0, b"two", b"")])
ONE = Message("Topic", b"one", keys="key")
PATIENCE = 200.0
_ALL = 8
"""Messages that the threads put: of the topic, halves, and what says that one has ended."""


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldWatermark:
    return HeldWatermark(monkeypatch)


@pytest.mark.parametrize("flush", list(FlushDiskType))
def test_confirmed_is_flushed_under_sync_flush_and_written_otherwise(flush: FlushDiskType) -> None:
    settings = StoreSettings(mapped_file_size_commit_log=1 << 16, flush_disk_type=flush)
    store = OwnedStore.open(RecordedDisk(), settings)
    marks, is_sync = store.watermarks, flush is FlushDiskType.SYNC_FLUSH
    first = store.puts.put(ONE)
    assert (marks.end, marks.flushed) == (first.end, 0)
    assert marks.confirmed == (0 if is_sync else first.end)
    assert marks.is_confirmed(first) is not is_sync
    store.tick()
    assert marks.dispatched == marks.confirmed
    store.durability.sync_log()
    assert marks.flushed == marks.confirmed == marks.dispatched == first.end
    assert marks.is_confirmed(first)
    refused = store.puts.put(Message("../x", b""))
    second = store.puts.put(ONE)
    assert marks.unconfirmed([first, refused]) is None
    assert marks.unconfirmed([first, second, refused]) is (second if is_sync else None)
    store.close()


def check_unread(core: OwnedStore, end: int) -> None:
    """Nothing from a physical offset on is dispatched, read or found."""
    core.tick()
    assert core.watermarks.dispatched == end < core.watermarks.flushed
    assert core.reads.get("Topic", 0, 0).status is Status.NO_MESSAGE_IN_QUEUE
    assert core.reads.record_at(end) is None
    assert core.reads.raw_at(end) is None
    assert not core.reads.by_key("Topic", "key").records
    assert core.reads.head_from("Topic", 0, 0) is None


async def on_disk(store: MessageStore) -> None:
    await until(lambda: store.watermarks.flushed >= store.watermarks.end)
    # Whoever is acknowledged by the sync gets to hear of it.
    await asyncio.sleep(0.1)


def test_no_put_returns_before_it_is_confirmed(tmp_path: Path, held: HeldWatermark) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SLOW) as store:
            half = await store.prepare(ONE, "producers")
            end = store.watermarks.end
            held.hold(end)
            calls = [
                store.put(ONE),
                store.put_many([ONE, Message("../x", b"")]),
                store.put_batch(MessageBatch("Topic", BODY)),
                store.prepare(ONE, "producers"),
                store.end(half, "producers", commit=True),
                store.appends.confirm([store.appends.batch(MessageBatch("Topic", BODY))]),
                store.appends.confirm([store.appends.half(ONE)]),
                store.appends.confirm([store.appends.again(ONE)]),
            ]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await on_disk(store)
            assert not any(task.done() for task in tasks)
            check_unread(store.core, end)
            held.release()
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*tasks)
            store.core.tick()  # What was held up longer than the disk is dispatched a moment later.
            assert len(store.get("Topic", 0, 0).records) == 8

    simulated.run(run())


def test_a_refused_put_is_answered_at_once(tmp_path: Path, held: HeldWatermark) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            held.hold(0)
            (refused,) = await asyncio.wait_for(store.put_many([Message("../x", b"")]), PATIENCE)
            assert refused.status is PutStatus.MESSAGE_ILLEGAL
            assert await asyncio.wait_for(store.appends.confirm([refused]), PATIENCE) == [refused]

    simulated.run(run())


def test_a_put_that_is_not_confirmed_in_time_is_a_flush_timeout(
    tmp_path: Path, held: HeldWatermark
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC | {"syncFlushTimeout": 50}) as store:
            first = store.appends.many([ONE])
            await on_disk(store)
            held.hold(first[0].end)
            late = await store.appends.confirm([*first, *store.appends.many([ONE])])
            assert [each.status for each in late] == [
                PutStatus.PUT_OK,
                PutStatus.FLUSH_DISK_TIMEOUT,
            ]

    simulated.run(run())


def test_a_put_that_is_not_confirmed_fails_when_the_store_is_closed(
    tmp_path: Path, held: HeldWatermark
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SLOW) as store:
            held.hold(0)
            put = asyncio.ensure_future(store.put(ONE))
            await asyncio.sleep(0)
            await on_disk(store)
        with pytest.raises(PutError, match="the store was closed before"):
            await asyncio.wait_for(put, PATIENCE)

    simulated.run(run())


def test_no_thread_returns_before_its_put_is_confirmed(tmp_path: Path, held: HeldWatermark) -> None:
    with BlockingMessageStore.open(tmp_path, SLOW) as store, ThreadPoolExecutor() as threads:
        half = store.prepare(ONE, "producers")
        end = store.core.log.end
        held.hold(end)
        calls: list[Callable[[], Any]] = [
            lambda: store.put(ONE),
            lambda: store.put_many([ONE]),
            lambda: store.put_batch(MessageBatch("Topic", BODY)),
            lambda: store.prepare(ONE, "producers"),
            lambda: store.end(half, "producers", commit=True),
        ]
        puts = [threads.submit(call) for call in calls]
        marks, ends = store.core.watermarks, store.core.offsets
        wait_until(
            lambda: sum(ends.values()) >= _ALL and marks.flushed >= marks.end,
            why=lambda: (dict(ends), marks.end, marks.flushed),
        )
        assert not wait(puts, 0.1).done
        with store.lock:
            check_unread(store.core, end)
            held.release()
            store.lock.notify_all()
        for put in puts:
            assert isinstance(put.result(PATIENCE), PutResult | Ended | list)
