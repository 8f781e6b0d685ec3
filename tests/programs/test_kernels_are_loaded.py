"""A broker that has loaded its kernels compiles nothing while it serves.

Compiling holds the interpreter for seconds, in which no client is answered.
"""

from __future__ import annotations

import json

from tests.kernels.processes import run

SERVES = """
import asyncio, json
from mqlake.arrow import ArrowConsumer
from mqlake.broker.lane.kernel import call_each
from mqlake.broker.lane.pull_kernel import call_each as call_pulls
from mqlake.client import Consumer, ConsumerSettings, Message, Producer
from mqlake.kernels import jit
from mqlake.programs.kernels import load_kernels
from mqlake.testing import broker

load_kernels()
call_pulls()
call_each()
loaded = jit.signatures()
SETTINGS = ConsumerSettings(consume_from="first")


def messages(count):
    return [Message(topic="T", body=b"%d" % number, tags="t", keys="k") for number in range(count)]


async def send(names):
    async with Producer(names) as producer:
        await producer.send(messages(1)[0])
        await asyncio.gather(*map(producer.send, messages(300)))
        await producer.send_many(messages(300))
        await asyncio.gather(*(producer.send_batch(messages(20)) for _ in range(40)))


async def consume(names):
    async with Consumer(names, "g", "T", settings=SETTINGS) as consumer:
        for _ in range(100):
            await (await consumer.receive(60)).ack()
    got = 0
    async with ArrowConsumer(names, "a", "T", settings=SETTINGS) as consumer:
        async for batch in consumer.arrow_batches():
            got += len(batch)
            await batch.ack()
            if got >= 1401:
                break


async def main(names):
    await send(names)
    await consume(names)


with broker() as running:
    asyncio.run(main(running.name_server))
    found = jit.signatures()
print(json.dumps([loaded, found]))
"""


def test_a_broker_that_serves_compiles_nothing() -> None:
    loaded, served = json.loads(run(SERVES))
    assert {name: count for name, count in served.items() if count > loaded.get(name, 0)} == {}
    assert {name: count for name, count in served.items() if count > 1} == {}
