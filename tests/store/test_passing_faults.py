"""The disk refuses something, and then no more: the same store goes on, and has lost nothing."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mqlake.errors import DiskError
from mqlake.storage.local_owned import LocalOwnedDirectory, LocalOwnedFile
from mqlake.store import BlockingMessageStore, Message, MessageStore, PutError, services
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.owned_store import OwnedStore
from mqlake.store.queues.owned_queue import OwnedQueue
from mqlake.store.queues.owned_queue_files import OwnedQueueFiles
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.recovery.checkpoint_file import CheckpointFile, reached
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.log_walk import walk
from tests.crash.oracles import check_index
from tests.store.small_stores import SMALL, WIRE, fill, run_services
from tests.until import PATIENCE

# Only puts sync, and they may take as long as a slow disk needs.
SYNC = WIRE | {
    "flushDiskType": "SYNC_FLUSH",
    "syncFlushTimeout": 60_000,
    "flushIntervalCommitLog": 60_000,
}


def _none_left(*_: object) -> NoReturn:
    raise DiskError(os.strerror(errno.EMFILE), errno.EMFILE)


def open_store(path: Path, clock: ManualClock) -> OwnedStore:
    return OwnedStore.open(LocalOwnedDirectory.make(path), StoreSettings(**SMALL), clock)


def test_a_put_that_cannot_be_synced_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path, SYNC) as store:
            # The first put makes the first file, whose name is synced with it.
            monkeypatch.setattr(LocalOwnedDirectory, "sync_directory", _none_left)
            with pytest.raises(PutError, match="Too many open files"):
                await store.put(Message("Topic", b"0"))
            assert store.core.log.flushed == 0
            monkeypatch.undo()
            assert (await store.put(Message("Topic", b"1"))).queue_offset == 1
            assert store.core.health.failure is None
            assert [record.body for record in store.get("Topic", 0, 0).records] == [b"0", b"1"]

    asyncio.run(run())


def test_a_thread_whose_put_cannot_be_synced_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BlockingMessageStore.open(tmp_path, SYNC) as store:
        monkeypatch.setattr(LocalOwnedDirectory, "sync_directory", _none_left)
        with pytest.raises(PutError, match="Too many open files"):
            store.put(Message("Topic", b"0"))
        monkeypatch.undo()
        assert store.put(Message("Topic", b"1")).queue_offset == 1


def test_services_outlive_a_checkpoint_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "FIRST_PAUSE", 10)

    async def run() -> None:
        settings = WIRE | {"flushIntervalConsumeQueue": 10, "flushConsumeQueueLeastPages": 0}
        async with MessageStore.open(tmp_path, settings) as store:
            await store.put(Message("Topic", b"0"))
            refused, written = asyncio.Semaphore(0), asyncio.Event()
            loop, write = asyncio.get_running_loop(), CheckpointFile.write

            def refuse(_: object, path: str) -> None:
                loop.call_soon_threadsafe(refused.release)
                raise DiskError(path, errno.EMFILE)

            def note(file: CheckpointFile, *arguments: Any) -> None:
                write(file, *arguments)
                loop.call_soon_threadsafe(written.set)

            with monkeypatch.context() as patch:
                patch.setattr(LocalOwnedDirectory, "open_writable", refuse)
                for _ in range(3):
                    await refused.acquire()
            with monkeypatch.context() as patch:
                patch.setattr(CheckpointFile, "write", note)
                await written.wait()
            assert (await store.put(Message("Topic", b"1"))).queue_offset == 1

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_keys_are_not_inserted_twice_if_the_next_file_cannot_be_made() -> None:
    """The last key fills a file, and a record without keys wants the next one."""
    sent = [Message("Topic", b"%d" % number, keys=f"k{number}") for number in range(31)]
    sent.append(Message("Topic", b"no key"))
    disk, clock = FaultyDisk(Fault.NO_INODE_FOR_EVER, at=-1), ManualClock()
    store = OwnedStore.open(disk, StoreSettings(**SMALL), clock)
    fill(store, 1)  # the queue's file, and the index's first
    for message in sent[1:]:
        assert store.puts.put(message).is_ok
    disk.make_directory("consumequeue/Topic/0")
    queue = store.queues.queue("Topic", 0)
    assert isinstance(queue, OwnedQueue)
    for base in range(200, 700, 200):  # so that only the index lacks a file
        store.queues.files.make_file(queue.file_path(base), 200, is_first=False)
        queue.bases.append(base)
    disk.fail_next(Fault.NO_INODE_FOR_EVER)
    store.tick()
    assert "No space left" in store.puts.put(Message("Topic", b"refused")).reason
    disk.mend()
    store.tick()
    check_index(store, disk, walk(disk))
    store.close()
    OwnedStore.open(disk, StoreSettings(**SMALL), clock).close()


@pytest.mark.parametrize("first", [2_000, 2_000_000])
def test_messages_of_a_new_queue_whose_first_entry_was_refused_are_readable(first: int) -> None:
    disk, clock = FaultyDisk(Fault.SHORT_WRITE, at=-1), ManualClock()
    store = OwnedStore.open(disk, StoreSettings(**SMALL), clock)
    store.offsets.set("Topic", 0, first)
    assert store.puts.put(Message("Topic", b"0")).queue_offset == first
    disk.fail_next(Fault.SHORT_WRITE)
    store.tick()
    assert disk.has_failed
    store.tick()
    assert store.puts.put(Message("Topic", b"1")).queue_offset == first + 1
    store.tick()
    assert store.dispatcher.refused == 0
    assert store.reads.queue("Topic", 0) == (first, first + 2)
    assert [record.body for record in store.reads.get("Topic", 0, first).records] == [b"0", b"1"]
    assert len(disk.names("consumequeue/Topic/0")) == 1
    store.close()


def test_a_deleted_topic_starts_at_zero_again_though_its_directory_stayed_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, ManualClock())
    fill(store, 3)
    monkeypatch.setattr(LocalOwnedDirectory, "remove_directory", _none_left)
    with pytest.raises(DiskError, match="Too many open files"):
        store.removal.remove("Topic")
    monkeypatch.undo()
    store.removal.remove("Topic")
    assert not (tmp_path / "consumequeue/Topic").exists()
    fill(store, 1)
    assert store.reads.queue("Topic", 0) == (0, 1)
    store.close()


@pytest.mark.parametrize("refusing", [(OwnedCommitLog, "read"), (OwnedQueueFiles, "file")])
def test_a_delayed_message_that_cannot_be_read_now_is_delivered_later(
    refusing: tuple[type, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    store = open_store(tmp_path, clock)
    store.puts.put(Message("Topic", b"delayed", delay_level=1))
    store.puts.put(Message("Topic", b"timed", properties={"TIMER_DELAY_SEC": "1"}))
    store.tick()
    clock.forward(3000)
    monkeypatch.setattr(*refusing, _none_left)
    for deliver in (store.scheduled.deliver, store.timers.deliver):
        with pytest.raises(DiskError, match="Too many open files"):
            deliver()
    monkeypatch.undo()
    assert (store.scheduled.dropped, store.timers.dropped) == (0, 0)
    assert (store.scheduled.deliver(), store.timers.deliver()) == (1, 1)
    store.tick()
    bodies = {record.body for record in store.reads.get("Topic", 0, 0).records}
    assert bodies == {b"delayed", b"timed"}
    store.close()


def test_a_half_message_that_cannot_be_read_now_is_asked_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, asked = ManualClock(), list[object]()
    store = open_store(tmp_path, clock)
    store.transactions.ask_with(asked.append)
    store.transactions.prepare(Message("Topic", b"half"), "group")
    ended = store.transactions.prepare(Message("Topic", b"ended"), "group")
    store.transactions.end(ended.physical_offset, ended.queue_offset, "group", commit=False)
    store.tick()
    clock.forward(10_000_000)
    monkeypatch.setattr(OwnedCommitLog, "read", _none_left)
    with pytest.raises(DiskError, match="Too many open files"):
        store.transactions.check()
    monkeypatch.undo()
    store.transactions.check()
    assert len(asked) == 1
    store.close()


def test_a_consumer_does_not_skip_a_queue_file_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, ManualClock())
    fill(store)
    monkeypatch.setattr(OwnedQueues, "entries", _none_left)
    with pytest.raises(DiskError, match="Too many open files"):
        store.reads.get("Topic", 0, 0)
    monkeypatch.undo()
    assert store.reads.get("Topic", 0, 0).records[0].body == b"0"
    store.close()


def test_a_start_does_not_do_without_a_segment_that_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, ManualClock())
    fill(store)
    end = store.log.end
    store.close()
    size = LocalOwnedDirectory.size

    def refuse(directory: LocalOwnedDirectory, path: str) -> int:
        return _none_left() if path.startswith("commitlog/") else size(directory, path)

    monkeypatch.setattr(LocalOwnedDirectory, "size", refuse)
    with pytest.raises(DiskError, match="Too many open files"):
        open_store(tmp_path, ManualClock())
    monkeypatch.undo()
    store = open_store(tmp_path, ManualClock())
    assert (store.log.min_offset, store.log.end) == (0, end)
    store.close()


def test_retention_asks_again_to_sync_what_it_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    settings = StoreSettings(**SMALL, max_commit_log_bytes=8192)
    store = OwnedStore.open(LocalOwnedDirectory.make(tmp_path), settings, clock)
    fill(store, 200)
    store.durability.checkpoint()
    store.retention.check()
    job = store.retention.remove_next()
    assert job is not None
    monkeypatch.setattr(LocalOwnedDirectory, "sync_directory", _none_left)
    with pytest.raises(DiskError):
        job.run()
    monkeypatch.undo()
    for _ in range(20):
        clock.forward(10_000)
        run_services(store)
    assert len(store.log.segments) <= 3
    store.close()


def test_a_checkpoint_that_was_written_in_part_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, ManualClock())
    fill(store, 10)
    store.durability.checkpoint()
    good, before = (
        (tmp_path / "checkpoint").read_bytes(),
        reached(store.dispatcher.done, store.queues, store.index),
    )
    whole, file = LocalOwnedFile.write, store.durability._checkpoint

    def half(file: LocalOwnedFile, offset: int, data: bytes) -> None:
        whole(file, offset, bytes(len(data)))
        raise DiskError("no room", errno.ENOSPC)

    fill(store, 1)
    monkeypatch.setattr(LocalOwnedFile, "write", half)
    with pytest.raises(DiskError, match="no room"):
        store.durability.checkpoint()
    monkeypatch.undo()
    file.write(before)
    assert (tmp_path / "checkpoint").read_bytes() == good
    store.durability.checkpoint()
    store.close()
