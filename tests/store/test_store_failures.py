"""Whatever fails in a live store is logged, refuses puts, and never ends without a word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import FormatError, StoreError, SyncError
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutError, PutStatus
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.log.pending_sync import PendingSync
from mqlake.store.message_store import MessageStore
from mqlake.store.services import Services
from tests.until import until

SMALL = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
SYNC = SMALL | {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": 60_000}
ERRORS = [StoreError("log: Input/output error"), FormatError("damaged"), ValueError("odd")]
PATIENCE = 200


def message(number: int) -> Message:
    return Message("Topic", b"%d" % number)


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_tick_that_fails_refuses_puts_until_one_succeeds(
    tmp_path: Path,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL) as store:
            await store.put(message(0))
            core = store.core
            monkeypatch.setattr(core.dispatcher, "run", failing(error))
            await until(lambda: core.health.dispatch_failures > 2)
            with pytest.raises(PutError, match=str(error).rpartition(" ")[2]) as refused:
                await store.put(message(1))
            assert refused.value.result.status is PutStatus.SERVICE_NOT_AVAILABLE
            monkeypatch.undo()
            failures = core.health.dispatch_failures
            core.tick()
            await store.put(message(1))
            core.tick()
            assert len(store.get("Topic", 0, 0).records) == 2
            assert core.health.dispatch_failures == failures
            assert not store.failed.done()

    asyncio.run(run())
    assert not (tmp_path / "abort").exists()
    lines = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert any("the store accepts no messages" in record.message for record in lines)
    assert len(lines) <= 2


def test_a_service_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        settings = SMALL | {"cleanResourceInterval": 10, "flushConsumerOffsetInterval": 10}
        monkeypatch.setattr("mqlake.store.retention.retention.is_time", failing(ValueError("odd")))
        async with MessageStore.open(tmp_path, settings) as store:
            retention = next(s for s in store.core.services if s.name == "retention")
            await until(lambda: retention.failures > 0)
            store.core.config.consumer_offsets.commit("G", "Topic", 0, 1)
            await until((tmp_path / "config" / "consumerOffset.json").exists)
            assert retention.failure == "ValueError: odd"
            await store.put(message(0))

    asyncio.run(run())
    assert "service retention failed" in caplog.text
    assert "Traceback" in caplog.text


class _Ends:
    """A job of which only the end fails."""

    def run(self) -> None:
        pass

    def done(self) -> None:
        raise SyncError("flush: Input/output error")


@pytest.mark.parametrize("start", [failing(SyncError("flush: Input/output error")), _Ends])
def test_a_sync_that_fails_in_a_service_is_final(
    tmp_path: Path, start: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_a_loop() -> None:
        async with MessageStore.open(tmp_path / "loop", SMALL) as store:
            monkeypatch.setattr(store.core.durability.flush_service, "start", start)
            await until(lambda: isinstance(store.core.health.failure, SyncError))
            assert not store.failed.done(), "the other services go on"
            await store.put(message(0))

    def in_threads() -> None:
        with BlockingMessageStore.open(tmp_path / "thread", SMALL) as store:
            monkeypatch.setattr(store.core.durability.flush_service, "start", start)
            asyncio.run(until(lambda: isinstance(store.core.health.failure, SyncError)))
            store.put(message(0))

    for put in (lambda: asyncio.run(in_a_loop()), in_threads):
        with pytest.raises(SyncError) as closed:
            put()
        # `close` raises the failure, while the put's is handled.
        assert isinstance(closed.value.__context__, PutError)
        assert "Input/output error" in str(closed.value.__context__)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_store_fails_when_its_service_task_ends(
    tmp_path: Path,
    cancelled: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        store = await MessageStore.open(tmp_path, SMALL).__aenter__()
        await store.put(message(0))
        if cancelled:
            store._services._task.cancel()  # pyright: ignore[reportPrivateUsage]
        else:
            monkeypatch.setattr(Services, "due", failing(ValueError("odd")))
        async with asyncio.timeout(PATIENCE):
            failure = await store.failed
        reason = "it was cancelled" if cancelled else "ValueError: odd"
        assert f"service task has ended: {reason}" in str(failure)
        with pytest.raises(PutError, match="service task has ended"):
            await store.put(message(1))
        # What was put can still be read.
        store.core.tick()
        assert store.get("Topic", 0, 0).records[0].body == b"0"
        with pytest.raises(StoreError, match="service task has ended"):
            await store.close()

    asyncio.run(run())
    assert "service task has ended" in caplog.text
    assert (tmp_path / "abort").exists()
    monkeypatch.undo()
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        assert [record.body for record in store.get("Topic", 0, 0).records] == [b"0"]


def test_tables_are_kept_when_a_store_cannot_stop_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        store = await MessageStore.open(tmp_path, SMALL).__aenter__()
        monkeypatch.setattr(Services, "due", failing(ValueError("odd")))
        await store.failed
        store.core.config.topics.ensure("Kept", 3)
        with pytest.raises(StoreError):
            await store.close()

    asyncio.run(run())
    assert '"Kept"' in (tmp_path / "config" / "topics.json").read_text()


def test_puts_that_wait_are_answered_when_the_service_task_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        store = await MessageStore.open(tmp_path, SYNC).__aenter__()
        never = asyncio.Event()
        monkeypatch.setattr(store._waiting, "sync", never.wait)  # pyright: ignore[reportPrivateUsage]
        put = asyncio.create_task(store.put(message(0)))
        await asyncio.sleep(0)
        store._services._task.cancel()  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(PutError, match="service task has ended"):
            async with asyncio.timeout(PATIENCE / 2):
                await put
        never.set()
        with pytest.raises(StoreError):
            await store.close()

    asyncio.run(run())


def test_puts_that_wait_are_answered_when_the_sync_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            monkeypatch.setattr(PendingSync, "run", failing(ValueError("odd")))
            with pytest.raises(PutError, match="the sync ended: ValueError: odd") as failed:
                async with asyncio.timeout(PATIENCE / 2):
                    await store.put(message(0))
            assert failed.value.result.status is PutStatus.UNKNOWN_ERROR
            monkeypatch.undo()
            assert (await store.put(message(1))).queue_offset == 1
            assert store.core.durability.flush_service.failures

    asyncio.run(run())
    assert "service flush failed" in caplog.text


def test_threads_hear_when_the_sync_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with BlockingMessageStore.open(tmp_path, SYNC) as store:
        with monkeypatch.context() as patch:
            patch.setattr(PendingSync, "run", failing(ValueError("odd")))
            with pytest.raises(PutError, match="the sync ended: ValueError: odd"):
                store.put(message(0))
        assert store.put(message(1)).queue_offset == 1


def test_threads_hear_when_the_service_thread_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = BlockingMessageStore.open(tmp_path, SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(Services, "due", failing(ValueError("odd")))
        store._thread.join(PATIENCE)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(PutError, match="service thread has ended: ValueError: odd"):
        store.put(message(0))
    with pytest.raises(StoreError, match="service thread has ended"):
        store.close()
    assert "service thread has ended" in caplog.text


def test_a_topic_whose_removal_the_disk_refuses_is_not_said_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL) as store:
            await store.put(message(0))
            store.core.tick()

            def refuse(_: int) -> None:
                raise OSError(5, "Input/output error")

            monkeypatch.setattr("os.fdatasync", refuse)
            with pytest.raises(StoreError, match="Input/output error"):
                await store.removals.remove("Topic")
            heard.append("removal")

    heard: list[str] = []
    with pytest.raises(StoreError, match="Input/output error"):
        asyncio.run(run())
    assert heard
