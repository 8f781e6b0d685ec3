"""A store is its opener's: a forked child writes nothing, lets go of nothing, waits for nobody."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutError
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.message_store import MessageStore
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.forked import in_child

SMALL = StoreSettings(
    flush_disk_type=FlushDiskType.SYNC_FLUSH,
    sync_flush_timeout=60_000,
    mapped_file_size_commit_log=1 << 16,
    mapped_file_size_consume_queue=2000,
    max_hash_slot_num=100,
    max_index_num=400,
)
LATER = "this store was opened by process {}; open it again in this process"


def content(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def bodies(path: Path, topic: str = "T") -> list[bytes]:
    with StoreReader.open(path) as reader:
        return [record.body for record in reader.get(topic, 0, 0, 100).records]


def message(body: bytes = b"a child's") -> Message:
    return Message("T", body, keys="k", tags="t")


def test_a_child_changes_no_file_of_the_core(tmp_path: Path) -> None:
    clock = ManualClock()
    store = OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, clock)
    assert store.puts.put(message(b"a parent's")).is_ok
    store.durability.sync_log()
    before = content(tmp_path)
    expected = LATER.format(os.getpid())

    def try_all() -> str:
        clock.forward(100_000)
        results = [store.puts.put(message()), *store.puts.put_many([message() for _ in range(20)])]
        results.append(store.puts.put_batch(MessageBatch("T", b"")))
        assert {result.reason for result in results} == {expected}
        assert store.services.due() is None
        store.config.consumer_offsets.commit("G", "T", 0, 1)
        for refused in (
            store.tick,
            store.durability.sync_log,
            store.durability.checkpoint,
            store.close,
            store.abandon,
            store.config.persist,
            lambda: store.removal.remove("T"),
        ):
            with pytest.raises(StoreError, match=expected):
                refused()
        assert not store.transactions.prepare(message(), "P").is_ok
        return "all refused"

    assert in_child(try_all) == "all refused"
    assert content(tmp_path) == before
    clock.forward(100_000)
    assert store.puts.put(message(b"goes on")).is_ok
    store.close()
    assert bodies(tmp_path) == [b"a parent's", b"goes on"]


def test_threads_of_a_blocking_store_are_not_waited_for(tmp_path: Path) -> None:
    expected = LATER.format(os.getpid())
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        store.put(message(b"a parent's"))

        def use() -> str:
            for refused in (lambda: store.put(message()), lambda: store.prepare(message(), "P")):
                with pytest.raises(PutError, match=expected):
                    refused()
            assert [result.reason for result in store.put_many([message()])] == [expected]
            with pytest.raises(StoreError, match=expected):
                store.close()
            return "done"

        assert in_child(use) == "done"
        # The service thread holds the lock that it does not have in the child.
        with store.lock:
            assert in_child(use) == "done"
        store.put(message(b"goes on"))
    assert bodies(tmp_path) == [b"a parent's", b"goes on"]


def test_a_child_that_leaves_the_block_closes_nothing(tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        store.put(message(b"a parent's"))
        before = content(tmp_path)

        def leave() -> None:
            with store:
                raise SystemExit(3)

        # The exception that is under way is not replaced.
        assert in_child(leave) == "SystemExit: 3\n"
        assert content(tmp_path) == before


def test_tasks_of_an_asyncio_store_are_not_waited_for(tmp_path: Path) -> None:
    expected = LATER.format(os.getpid())

    def step(coroutine: object) -> None:
        # Not `asyncio.run`: the child is in the middle of the parent's loop.
        coroutine.send(None)  # type: ignore[attr-defined]

    async def run() -> None:
        async with MessageStore.open(tmp_path, SMALL) as store:
            await store.put(message(b"a parent's"))

            def use() -> str:
                for call in (lambda: store.put(message()), store.close, lambda: _leave(store)):
                    with pytest.raises(StoreError, match=expected):
                        step(call())
                return "done"

            assert in_child(use) == "done"
            await store.put(message(b"goes on"))

    asyncio.run(run())
    assert bodies(tmp_path) == [b"a parent's", b"goes on"]


async def _leave(store: MessageStore) -> None:
    await store.__aexit__(None, None, None)


def test_a_child_opens_the_store_once_the_parent_has_closed_it(tmp_path: Path) -> None:
    directory = LocalOwnedDirectory(tmp_path)
    store = OwnedStore.open(directory, SMALL)

    def open_again() -> str:
        with BlockingMessageStore.open(tmp_path, SMALL) as own:
            return own.put(message()).status

    assert f"process {os.getpid()} owns this store" in in_child(open_again)
    store.close()
    assert in_child(open_again) == "PUT_OK"

    def open_same_directory() -> str:
        own = OwnedStore.open(directory, SMALL)
        own.close()
        return "ok"

    assert in_child(open_same_directory) == "ok"
    assert bodies(tmp_path) == [b"a child's"]


def test_processes_of_python_are_not_disturbed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.forks", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    assert bodies(tmp_path) == [b"beside", b"goes on"]


def test_a_partition_of_kafka(tmp_path: Path) -> None:
    record = NewRecord(1, b"key", b"value")
    with OwnedLogDirectory(tmp_path) as logs:
        partition = logs.partition("T", 0)
        partition.append([record])
        before = content(tmp_path)

        def use() -> str:
            refused: list[Callable[[], object]] = [
                lambda: partition.append([record]),
                lambda: partition.truncate_to(0),
                lambda: logs.partition("other", 0),
                lambda: logs.__exit__(None),
                partition.roll,
                partition.flush,
                partition.close,
                partition.abandon,
            ]
            for call in refused:
                with pytest.raises(StoreError, match=LATER.format(os.getppid())):
                    call()
            logs.__exit__(SystemExit)
            return "done"

        assert in_child(use) == "done"
        assert content(tmp_path) == before
        assert partition.append([record]) == 1
