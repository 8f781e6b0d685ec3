"""A process that puts messages until somebody kills it.

It writes the number of each message once that is acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import sys
from multiprocessing.connection import Connection

from mqlake.store.append.message import Message
from mqlake.store.message_store import MessageStore

SETTINGS = {
    "mapped_file_size_commit_log": 1 << 16,
    "mapped_file_size_consume_queue": 20 * 64,
    "max_hash_slot_num": 16,
    "max_index_num": 500,
    "flush_interval_commit_log": 50,
    "sync_flush_timeout": 60_000,
    "flush_interval_consume_queue": 70,
    "flush_consume_queue_least_pages": 0,
}
TASKS = 8
TOPICS = 3


def message(number: int) -> Message:
    """Return the message of a number; all of it follows from the number."""
    body = f"{number}:".encode() + bytes([65 + number % 26]) * (number * 37 % 900)
    topic = f"topic-{number % TOPICS}"
    return Message(topic, body, tags="red", keys=f"k{number}", queue_id=number % 2)


async def _run(path: str, flush: str, first: int) -> None:
    numbers = iter(range(first, sys.maxsize))
    async with MessageStore.open(path, {**SETTINGS, "flush_disk_type": flush}) as store:

        async def one() -> None:
            for number in numbers:
                await store.put(message(number))
                print(number, flush=True)
                await asyncio.sleep(0)

        async def many() -> None:
            while True:
                group = [next(numbers) for _ in range(5)]
                await store.put_many([message(number) for number in group])
                print(*group, flush=True)
                await asyncio.sleep(0)

        await asyncio.gather(*(one() for _ in range(TASKS)), many())


def be_child(path: str, flush: str, first: int, out: Connection) -> None:
    """Be that process; write the numbers, a line for each acknowledgement, to a pipe."""
    os.dup2(out.fileno(), sys.stdout.fileno())
    asyncio.run(_run(path, flush, first))
