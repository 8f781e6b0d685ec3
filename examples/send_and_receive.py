"""Send orders, and bill each one, in one program: `send_and_receive.py NAME_SERVERS`.

Try it: `mqlake broker --store ./store`, then `python examples/send_and_receive.py 127.0.0.1:9876`.
"""

from __future__ import annotations

import asyncio
import json
import sys

from mqlake.client import ConsumedMessage, Consumer, ConsumerSettings, Message, Producer

TOPIC, GROUP = "ExampleOrders", "example-billing"
ORDERS = 10


async def main(name_servers: str) -> None:
    async with Producer(name_servers) as producer:
        for number in range(ORDERS):
            order = {"order": number, "amount": 100 * number}
            await producer.send(
                Message(
                    topic=TOPIC,
                    body=json.dumps(order).encode(),
                    tags="paid" if number % 2 else "open",
                    keys=f"order-{number}",
                    # The messages of one customer stay in their order.
                    sharding_key=f"customer-{number % 3}",
                )
            )
    print(f"sent {ORDERS} orders")

    billed: list[int] = []
    done = asyncio.Event()

    async def bill(message: ConsumedMessage) -> None:
        order = json.loads(message.body)
        print(f"billed order {order['order']}: {order['amount']}")
        billed.append(order["order"])
        if len(billed) == ORDERS // 2:
            done.set()

    settings = ConsumerSettings(consume_from="first", in_order=True)
    async with Consumer(name_servers, GROUP, {TOPIC: "paid"}, settings=settings) as consumer:
        handling = asyncio.create_task(consumer.run(bill))
        await done.wait()
    await handling


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
