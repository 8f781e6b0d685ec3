"""mqlake's client as a process that is measured: `python -m benchmarks.client.peer`.

It answers the same requests as the JVM of `tests/peer/rocketmq_load/`, with the same words.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mqlake.arrow import SETTINGS, ArrowConsumer
from mqlake.client import ConsumedMessage, Consumer, ConsumerSettings, Message, Producer

SECONDS = 120
"""What a backlog may take."""

Answer = dict[str, Any]


class Stopwatch:
    """Time, and processor time of this process, since it was started."""

    def __init__(self) -> None:
        self._begun, self._used = time.perf_counter(), time.process_time()

    def measured(self, messages: int) -> Answer:
        """Return seconds and processor seconds since the start, and the messages they were for."""
        return {
            "seconds": time.perf_counter() - self._begun,
            "cpu": time.process_time() - self._used,
            "messages": messages,
        }


class Peer:
    """A client with one producer, and a consumer for each backlog."""

    def __init__(self) -> None:
        self._names = ""
        self._producer: Producer | None = None

    async def send(self, names: str, topic: str, size: str, count: str, most: str) -> Answer:
        """Send messages, so many in flight."""
        producer, body, left = await self._producer_of(names), b"x" * int(size), int(count)

        async def send() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await producer.send(Message(topic=topic, body=body))

        watch = Stopwatch()
        await asyncio.gather(*(send() for _ in range(int(most))))
        return watch.measured(int(count))

    async def one_by_one(self, names: str, topic: str, size: str, count: str) -> Answer:
        """Send messages, each once the one before it was acknowledged."""
        producer, body = await self._producer_of(names), b"x" * int(size)
        latencies: list[float] = []
        watch = Stopwatch()
        for _ in range(int(count)):
            begun = time.perf_counter()
            await producer.send(Message(topic=topic, body=body))
            latencies.append(time.perf_counter() - begun)
        return watch.measured(int(count)) | {"median": statistics.median(latencies)}

    async def batches(
        self, names: str, topic: str, size: str, count: str, each: str, most: str
    ) -> Answer:
        """Send batches, so many in flight."""
        producer, body, left = await self._producer_of(names), b"x" * int(size), int(count)

        async def send() -> None:
            nonlocal left
            while left > 0:
                left -= int(each)
                await producer.send_many([Message(topic=topic, body=body)] * int(each))

        watch = Stopwatch()
        await asyncio.gather(*(send() for _ in range(int(most))))
        return watch.measured(int(count))

    async def push(self, names: str, topic: str, group: str, count: str) -> Answer:
        """Consume a backlog with a function that is called with each message."""
        watch: Stopwatch | None = None
        left = int(count)
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        async def handle(_message: ConsumedMessage) -> None:
            nonlocal watch, left
            watch = watch or Stopwatch()
            left -= 1
            if left == 0:
                done.set_result(watch.measured(int(count)))

        async with _consumer(names, topic, group) as consumer:
            running = asyncio.create_task(consumer.run(handle))
            answer = await asyncio.wait_for(done, SECONDS)
        await running
        return answer

    async def iterate(self, names: str, topic: str, group: str, count: str) -> Answer:
        """Consume a backlog with `async for`, and acknowledge each message."""
        watch: Stopwatch | None = None
        left = int(count)
        async with _consumer(names, topic, group) as consumer, asyncio.timeout(SECONDS):
            async for message in consumer:
                watch = watch or Stopwatch()
                await message.ack()
                left -= 1
                if left <= 0:
                    return watch.measured(int(count))
        raise AssertionError("the consumer was closed")

    async def arrow(self, names: str, topic: str, group: str, count: str) -> Answer:
        """Consume a backlog in batches of Arrow columns, and acknowledge each batch."""
        watch: Stopwatch | None = None
        left = int(count)
        settings = msgspec.structs.replace(SETTINGS, consume_from="first")
        async with (
            ArrowConsumer(names, group, topic, settings=settings) as consumer,
            asyncio.timeout(SECONDS),
        ):
            async for batch in consumer.arrow_batches():
                watch = watch or Stopwatch()
                await batch.ack()
                left -= len(batch)
                if left <= 0:
                    return watch.measured(int(count))
        raise AssertionError("the consumer was closed")

    async def _producer_of(self, names: str) -> Producer:
        if self._names != names or self._producer is None:
            if self._producer is not None:
                await self._producer.close()
            self._producer, self._names = Producer(names), names
            await self._producer.start()
        return self._producer


def _consumer(names: str, topic: str, group: str) -> Consumer:
    settings = ConsumerSettings(consume_from="first")
    return Consumer(names, group, topic, settings=settings)


def main() -> None:
    """Answer until the input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    peer = Peer()
    requests: dict[str, Callable[..., Awaitable[Answer]]] = {
        "send": peer.send,
        "one by one": peer.one_by_one,
        "batches": peer.batches,
        "push": peer.push,
        "iterate": peer.iterate,
        "arrow": peer.arrow,
    }
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            name, *words = line.rstrip("\n").split("\t")
            try:
                answer = runner.run(_answer(requests[name](*words)))
            except Exception as error:  # noqa: BLE001 (whoever asked is told)
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


async def _answer(answer: Awaitable[Answer]) -> Answer:
    return await answer


if __name__ == "__main__":
    main()
