"""Lose what was derived since the last checkpoint, and see what a recovery makes of it.

`python -m tests.store.lost_tail [--queues N] [--body BYTES]` prints how long the recovery takes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.core import durability
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings

_DERIVED = ("consumequeue", "index", "checkpoint")
_PER_TOPIC = 4
_AT_ONCE = 500
_MANY = 1000
"""Queues that all have files at the checkpoint; of fewer, only each second one has."""


class LostTail(NamedTuple):
    """A store that was killed, whose derived files are those of its last checkpoint.

    Attributes:
        checkpoint: physical offset of the checkpoint.
        entries: of each queue, before the loss.
        messages: since the checkpoint.
    """

    checkpoint: int
    entries: dict[tuple[str, int], bytes]
    messages: int


def lose(path: Path, settings: StoreSettings, queues: int, body: int) -> LostTail:
    """Write a store until the next checkpoint is due, and lose what no checkpoint covers."""
    store, dice = OwnedStore.open(LocalOwnedDirectory(path), settings), random.Random(1)
    data = dice.randbytes(body)

    def put(numbers: list[int]) -> None:
        for first in range(0, len(numbers), _AT_ONCE):
            store.puts.put_many(
                [
                    Message(
                        f"topic-{number // _PER_TOPIC}",
                        data,
                        keys=f"key-{store.log.end}-{place}",
                        queue_id=number % _PER_TOPIC,
                    )
                    for place, number in enumerate(numbers[first : first + _AT_ONCE])
                ]
            )
        store.tick()

    put(list(range(0, queues, 2)) if queues < _MANY else list(range(queues)))
    store.durability.checkpoint()
    checkpoint, before = store.log.end, store.dispatcher.count
    saved = path.with_name(f"{path.name}-saved")
    saved.mkdir()
    for name in _DERIVED:
        subprocess.run(["cp", "-a", "--sparse=always", path / name, saved / name], check=True)
    while store.log.end < checkpoint + durability._MOST_TO_READ:  # pyright: ignore[reportPrivateUsage]
        put([dice.randrange(queues) for _ in range(_AT_ONCE)])
    found = LostTail(checkpoint, entries(store), store.dispatcher.count - before)
    store.abandon()
    for name in _DERIVED:
        if (path / name).is_dir():
            shutil.rmtree(path / name)
        (saved / name).replace(path / name)
    saved.rmdir()
    return found


def entries(store: OwnedStore) -> dict[tuple[str, int], bytes]:
    """Return the entries of each queue."""
    return {
        (topic, queue_id): bytes(
            store.queues.entries(topic, queue_id, 0, store.queues.max_offset(topic, queue_id))
        )
        for topic, queue_id in store.queues.queues()
    }


def main() -> None:
    """Print how long a recovery takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=4000)
    parser.add_argument("--body", type=int, default=1024, help="bytes")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    for _ in range(options.turns):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "store"
            path.mkdir()
            lost = lose(path, StoreSettings(), options.queues, options.body)
            begin, cpu = time.perf_counter(), time.process_time()
            store = OwnedStore.open(LocalOwnedDirectory(path))
            seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
            read = store.log.end - lost.checkpoint
            is_whole = entries(store) == lost.entries
            store.abandon()
            print(
                f"{options.queues} queues: {lost.messages} messages in {read >> 20} MiB of the log"
                f" recovered in {seconds:.2f} s ({cpu:.2f} s of CPU);"
                f" {'nothing' if is_whole else 'SOMETHING'} is missing"
            )


if __name__ == "__main__":
    main()
