"""A taskiq application on RocketMQ, or on `mqlake broker`.

    taskiq worker taskiq_app:broker     # in one terminal
    python taskiq_app.py                # in another one

The environment variable NAME_SERVERS names another cluster than the one of this machine.
"""

from __future__ import annotations

import asyncio
import os

from mqlake.taskiq import RocketmqBroker

broker = RocketmqBroker(os.environ.get("NAME_SERVERS", "127.0.0.1:9876"), visibility_timeout=60)


@broker.task(task_name="bill")
async def bill(order: int) -> None:
    """Write an invoice."""
    print(f"billed order {order}", flush=True)


async def main() -> None:
    """Send four tasks, the last one with a delay."""
    await broker.startup()
    for number in range(3):
        await bill.kiq(number)
    await bill.kicker().with_labels(delay=2).kiq(3)
    await broker.shutdown()
    print("sent 4 tasks")


if __name__ == "__main__":
    asyncio.run(main())
