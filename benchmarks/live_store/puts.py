"""Put messages as a program would, and watch how far the dispatch is behind."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import uvloop

from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.message_store import MessageStore

TAG = "TagA"
SAMPLE_SECONDS = 0.002
# Puts between two looks at the clock.
_LOOK_EACH = 32

Answer = dict[str, Any]


@dataclass
class PutLoad:
    """The load of `tests/peer/rocketmq/PutLoad.java` on one thread that waits for each answer."""

    store: BlockingMessageStore
    messages: int
    body: int
    topics: int = 1
    queues: int = 8
    perCall: int = 1  # noqa: N815
    next_look: float = 0

    def run(self) -> Answer:
        """Return seconds until all was put and until all was dispatched, and how far it lagged."""
        behind: list[int] = []
        begin = time.perf_counter()
        if self.perCall == 1:
            self._put(behind)
        else:
            self._put_many(behind)
        seconds = time.perf_counter() - begin
        behind_bytes = self._behind_bytes()
        while self._behind_bytes():
            time.sleep(0.0005)
        dispatched = time.perf_counter() - begin
        return {
            "seconds": seconds,
            "dispatched": dispatched,
            "behindBytes": behind_bytes,
            "behindMilliseconds": behind,
        }

    def _put(self, behind: list[int]) -> None:
        body, queues, topics = random.Random(1).randbytes(self.body), self.queues, self.topics
        put = self.store.put
        for number in range(self.messages):
            result = put(
                Message(
                    f"topic-{number // queues % topics}",
                    body,
                    tags=TAG,
                    keys=f"key-{number}",
                    queue_id=number % queues,
                )
            )
            if not number % _LOOK_EACH:
                self._look(behind, result.store_timestamp)

    def _put_many(self, behind: list[int]) -> None:
        body, queues, topics = random.Random(1).randbytes(self.body), self.queues, self.topics
        for call, first in enumerate(range(0, self.messages, self.perCall)):
            topic, queue_id = f"topic-{call // queues % topics}", call % queues
            results = self.store.put_many(
                [
                    Message(topic, body, tags=TAG, keys=f"key-{number}", queue_id=queue_id)
                    for number in range(first, min(first + self.perCall, self.messages))
                ]
            )
            assert all(result.is_ok for result in results), results
            self._look(behind, results[-1].store_timestamp)

    def _look(self, behind: list[int], last_put: int) -> None:
        # Not in a thread of its own, which would take the interpreter's lock from the puts.
        if (now := time.monotonic()) < self.next_look:
            return
        self.next_look = now + SAMPLE_SECONDS
        late = last_put - self.store.core.dispatcher.last_record.store_timestamp
        behind.append(max(0, late) if self._behind_bytes() else 0)

    def _behind_bytes(self) -> int:
        core = self.store.core
        return core.log.end - core.dispatcher.position


def put_waiting(
    path: str, settings: dict[str, object], waiting: int, messages: int, body: int
) -> Answer:
    """Put messages by so many tasks of an event loop, each of which waits for its answers."""
    content = random.Random(1).randbytes(body)

    async def put(store: MessageStore, numbers: Iterator[int]) -> None:
        for number in numbers:
            await store.put(
                Message("topic-0", content, tags=TAG, keys=f"key-{number}", queue_id=number % 8)
            )

    async def run() -> float:
        async with MessageStore.open(path, settings) as store:
            begin = time.perf_counter()
            numbers = iter(range(messages))
            await asyncio.gather(*(put(store, numbers) for _ in range(waiting)))
            return time.perf_counter() - begin

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return {"seconds": runner.run(run())}
