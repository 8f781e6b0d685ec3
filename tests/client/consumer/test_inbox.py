"""Messages pass from queues to handlers by turns."""

from __future__ import annotations

import asyncio

from mqlake.client import MessageQueue
from mqlake.client.consumer.inbox import Inbox
from mqlake.client.consumer.queue_messages import QueueMessages
from tests import simulated
from tests.client.messages import consumed


def test_the_inbox_takes_queues_by_turns_and_wakes_one() -> None:
    async def run() -> None:
        inbox, queues = Inbox(), [MessageQueue("t", "a", number) for number in range(2)]
        held = [QueueMessages(queue, lambda: 0.0, in_order=False) for queue in queues]
        waiting = asyncio.create_task(inbox.take(1))
        await asyncio.sleep(0)
        waiting.cancel()
        for each in held:
            each.add([consumed(0), consumed(1)], 2)
            inbox.offer(each)
            inbox.offer(each)
        order = [(await inbox.take(1) or (None,))[0] for _ in range(4)]
        assert order == [*held, *held]
        late = asyncio.create_task(inbox.take(1))
        await asyncio.sleep(0)
        inbox.close()
        assert await late is None
        assert await inbox.take(1) is None

    simulated.run(run())
