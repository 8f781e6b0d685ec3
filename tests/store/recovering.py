"""Stores to be recovered, and what a recovered one must be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from mqlake.formats.dialect import Dialect
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import ReadableFile
from mqlake.store.append.message import Message
from mqlake.store.recovery.checkpoint_file import CheckpointFile, reached
from mqlake.store.recovery.recovery import Recovered, recover
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.jobs.model import index_files, queue_files, read_index_files, read_log, read_queue_files
from tests.store.live_parts import LiveParts

GOLDEN = StoreSettings(max_hash_slot_num=1000, max_index_num=4000)
SMALL = StoreSettings(
    mapped_file_size_commit_log=1 << 14,
    mapped_file_size_consume_queue=400,
    max_hash_slot_num=11,
    max_index_num=50,
)

FIRST = f"consumequeue/Topic0/1/{0:020d}"
"""The first file of a queue that has several."""
_BLOCK = 1 << 16


def open_store(path: Path, settings: StoreSettings = GOLDEN) -> Recovered:
    return recover(LocalOwnedDirectory(path), settings, ManualClock(1_800_000_000_000))


def contents(path: Path) -> dict[str, tuple[int, dict[int, bytes]]]:
    """Return the size of each file of a store, and its blocks that are not all zero, by offset."""
    directory = LocalOwnedDirectory(path)
    names = [str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()]
    return {name: (directory.size(name), dict(_blocks(directory.open(name)))) for name in names}


def _blocks(file: ReadableFile) -> Iterator[tuple[int, bytes]]:
    """Yield blocks with data; the holes of a file of RocketMQ's default size are not read."""
    for start, end in file.data_ranges(0, file.size):
        for at in range(start // _BLOCK * _BLOCK, end, _BLOCK):
            block = file.read(at, _BLOCK)
            if block.count(0) != len(block):
                yield at, block
    file.close()


def messages(count: int, seed: int = 0) -> list[Message]:
    dice = random.Random(seed)
    return [
        Message(
            f"Topic{dice.randrange(4)}",
            dice.randbytes(dice.randrange(200)),
            tags=dice.choice((None, "red", "blue")),
            keys=[f"{seed}-{number}"] * dice.randrange(3),
            queue_id=dice.randrange(3),
        )
        for number in range(count)
    ]


def require_whole(path: Path, settings: StoreSettings, dialect: Dialect = Dialect.V5_5) -> int:
    """Check that queues and index are what their log makes them; return the number of records."""
    records = list(read_log(path))
    assert queue_files(records, settings.mapped_file_size_consume_queue) == read_queue_files(path)
    indexes = index_files(records, settings.max_hash_slot_num, settings.max_index_num, dialect)
    assert indexes == read_index_files(path)
    return len(records)


def leave_killed(path: Path) -> None:
    """Make a store of 300 messages whose checkpoint covers 200, and whose process died."""
    parts = LiveParts(path, SMALL)
    parts.put_many(messages(200))
    parts.log.unsynced().complete()
    parts.queues.files.sync()
    parts.index.sync()
    CheckpointFile.open(parts.directory).write(
        reached(parts.dispatcher.done, parts.queues, parts.index)
    )
    parts.put_many(messages(100, seed=1))
