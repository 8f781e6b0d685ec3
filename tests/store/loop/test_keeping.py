"""Changes that are on the disk before somebody is told of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.formats import fastjson
from mqlake.store.config.config_file import ConfigWrite
from mqlake.store.loop.keeping import Keeping
from mqlake.store.message_store import MessageStore
from mqlake.store.services import Job
from tests.store.test_config_store import FullDisk, open_config


def names(path: Path) -> set[str]:
    value = fastjson.loads((path / "config" / "topics.json").read_bytes())
    assert isinstance(value, dict)
    return set(value["topicConfigTable"])


def test_a_kept_change_is_durable(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path) as store:
            for name in ("A", "B"):
                store.config.topics.ensure(name, 1)
                await store.keeping.keep(store.config.topics)
                assert name in names(tmp_path)

    asyncio.run(run())


def test_concurrent_changes_share_a_write(tmp_path: Path) -> None:
    writes: list[Job] = []

    async def write(job: Job) -> None:
        writes.append(job)
        await asyncio.to_thread(job.run)
        job.done()

    async def run() -> None:
        config, keeping = open_config(tmp_path), Keeping(write)

        async def change(number: int) -> None:
            config.topics.ensure(f"T{number}", 1)
            await keeping.keep(config.topics)
            assert f"T{number}" in names(tmp_path)

        await asyncio.gather(*map(change, range(50)))
        assert len(names(tmp_path)) == 50
        assert len(writes) <= 2

    asyncio.run(run())


def test_a_refused_write_is_reported_and_retried(tmp_path: Path) -> None:
    async def run() -> None:
        disk = FullDisk.make(tmp_path)
        async with MessageStore.open(tmp_path, directory=disk) as store:
            disk.is_full = True
            store.config.topics.ensure("A", 1)
            with pytest.raises(StoreError):
                await store.keeping.keep(store.config.topics)
            disk.is_full = False
            await store.keeping.keep(store.config.topics)
            assert "A" in names(tmp_path)

    asyncio.run(run())


def test_a_late_older_write_replaces_no_newer_one(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    writes: list[ConfigWrite] = []
    for name in ("A", "B"):
        config.topics.ensure(name, 1)
        write = config.topics.write()
        assert write is not None
        writes.append(write)
    older, newer = writes
    for write in (newer, older):
        write.complete()
    assert names(tmp_path) == {"A", "B"}
    assert config.topics.write() is None


def test_nothing_is_written_after_closing(tmp_path: Path) -> None:
    async def run() -> None:
        config, keeping = open_config(tmp_path), Keeping(_complete)
        config.topics.ensure("A", 1)
        await keeping.keep(config.topics)
        await keeping.end()
        config.topics.ensure("B", 1)
        with pytest.raises(StoreError, match="not durable"):
            await keeping.keep(config.topics)
        assert names(tmp_path) == {"A"}

    asyncio.run(run())


async def _complete(job: Job) -> None:
    job.run()
    job.done()
