"""Ask a question with a message, and wait for the reply: `request_reply.py NAME_SERVERS`.

Try it: `mqlake broker --store ./store`, then `python examples/request_reply.py 127.0.0.1:9876`.
"""

from __future__ import annotations

import asyncio
import sys

from mqlake.client import ConsumedMessage, Consumer, ConsumerSettings, Message, Producer

TOPIC, GROUP = "ExamplePrices", "example-prices"
PRICES = {b"apple": b"0.40", b"pear": b"0.55"}


async def main(name_servers: str) -> None:
    async with Producer(name_servers) as producer:

        async def answer(question: ConsumedMessage) -> None:
            await producer.reply(question, PRICES.get(question.body, b"not for sale"))

        settings = ConsumerSettings(consume_from="first")
        async with Consumer(name_servers, GROUP, TOPIC, settings=settings) as consumer:
            answering = asyncio.create_task(consumer.run(answer))
            for fruit in (b"apple", b"pear", b"brick"):
                reply = await producer.request(Message(topic=TOPIC, body=fruit), timeout=30)
                print(f"{fruit.decode()}: {reply.body.decode()}")
        await answering


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
