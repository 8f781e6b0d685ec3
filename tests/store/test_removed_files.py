"""Somebody removes files underneath a running store: it says so, and takes no more messages."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.errors import DiskError, SyncError
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store import BlockingMessageStore, Message, MessageStore, PutError, PutStatus
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.store.small_stores import SMALL, WIRE, fill, run_services


def _first(path: Path) -> Path:
    return min(path.iterdir())


def _last(path: Path) -> Path:
    """Return the last file that has data; the one behind it was made ahead."""
    return max(file for file in path.iterdir() if file.read_bytes().strip(b"\0"))


# A slow disk must not decide what a put hears of.
SYNC = WIRE | {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": 60_000}
REMOVALS: dict[str, Callable[[Path], object]] = {
    "commitlog": lambda root: shutil.rmtree(root / "commitlog"),
    "commitlog, moved": lambda root: (root / "commitlog").rename(root / "elsewhere"),
    "first file of the log": lambda root: _first(root / "commitlog").unlink(),
    "last file of the log": lambda root: _last(root / "commitlog").unlink(),
    "consumequeue": lambda root: shutil.rmtree(root / "consumequeue"),
    "a topic": lambda root: shutil.rmtree(root / "consumequeue" / "Topic"),
    "index": lambda root: shutil.rmtree(root / "index"),
    "all": shutil.rmtree,
}


@pytest.mark.parametrize("what", REMOVALS)
@pytest.mark.parametrize("flush", [FlushDiskType.ASYNC_FLUSH, FlushDiskType.SYNC_FLUSH])
def test_a_removal_is_noticed_within_a_second(
    what: str, flush: FlushDiskType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root, clock = tmp_path / "store", ManualClock()
    settings = StoreSettings(**SMALL, flush_disk_type=flush)
    store = OwnedStore.open(LocalOwnedDirectory.make(root), settings, clock)
    fill(store)
    if not store.watermarks.confirms_at_append:
        store.durability.sync_log()
    REMOVALS[what](root)
    clock.forward(1000)
    run_services(store)
    refused = store.puts.put(Message("Topic", b"later"))
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "removed while it was in use" in refused.reason
    assert str(store.health.failure) in caplog.text
    assert len(store.reads.get("Topic", 0, 59).records) == 1  # what is mapped can still be read
    with pytest.raises(SyncError, match="removed"):
        store.close()


def test_a_queue_file_that_is_not_the_last_used_is_noticed_at_the_checkpoint(
    tmp_path: Path,
) -> None:
    store = OwnedStore.open(LocalOwnedDirectory.make(tmp_path), StoreSettings(**SMALL))
    fill(store)
    _first(tmp_path / "consumequeue" / "Topic" / "0").unlink()
    with pytest.raises(SyncError, match="removed"):
        store.durability.checkpoint()
    assert not store.puts.put(Message("Topic", b"later")).is_ok
    with pytest.raises(SyncError):
        store.close()


def test_what_the_store_removes_itself_is_no_failure(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = StoreSettings(**SMALL, max_commit_log_bytes=8192)
    store = OwnedStore.open(LocalOwnedDirectory.make(tmp_path), settings, clock)
    for _ in range(10):
        fill(store, 30)
        pending = store.queues.files.pending_sync()
        for _ in range(3):
            clock.forward(10_000)
            run_services(store)
        pending.run()  # files of it were trimmed meanwhile
    assert store.log.min_offset > 0
    store.removal.remove("Topic")
    fill(store)
    assert store.health.failure is None
    store.close()


def test_no_put_is_acknowledged_after_the_log_was_removed(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            await store.put(Message("Topic", b"before"))
            shutil.rmtree(tmp_path / "commitlog")
            with pytest.raises(PutError, match="removed while it was in use"):
                await store.put(Message("Topic", b"after"))
            with pytest.raises(PutError, match="SERVICE_NOT_AVAILABLE"):
                await store.put(Message("Topic", b"later"))

    with pytest.raises(DiskError, match="removed"):
        asyncio.run(run())


def test_no_put_is_acknowledged_after_the_log_was_truncated(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            await store.put(Message("Topic", b"before"))
            os.truncate(_first(tmp_path / "commitlog"), 4096)
            # A write call: a write to the mapping would end the process.
            many = [Message("Topic", b"after" * 200, properties={"a": "b"}) for _ in range(40)]
            with pytest.raises(PutError, match="truncated while it was in use"):
                await store.put_many(many)
            with pytest.raises(PutError, match="SERVICE_NOT_AVAILABLE"):
                await store.put(Message("Topic", b"later"))

    with pytest.raises(DiskError, match="truncated"):
        asyncio.run(run())


def test_threads_are_told_that_the_log_was_removed(tmp_path: Path) -> None:
    store = BlockingMessageStore.open(tmp_path, SYNC)
    store.put(Message("Topic", b"before"))
    shutil.rmtree(tmp_path / "commitlog")
    with pytest.raises(PutError, match="removed while it was in use"):
        store.put(Message("Topic", b"after"))
    with pytest.raises(DiskError, match="removed"):
        store.close()
