"""Whether there is something to pop, and who waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.pop import (
    NotificationAnswerHeader,
    NotificationHeader,
    PollingInfoAnswerHeader,
    PollingInfoHeader,
)
from tests.broker.pop.popping import GROUP, TOPIC, pop, send
from tests.broker.running import Running, running


async def has_message(broker: Running, poll_time: int = 0, **fields: object) -> bool:
    header = NotificationHeader(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=-1,
        poll_time=poll_time,
        **fields,  # pyright: ignore[reportArgumentType]
    )
    asked = request(RequestCode.NOTIFICATION, header)
    answer = await broker.client.request(broker.address, asked, timeout=20)
    return answer.header(NotificationAnswerHeader).has_msg


def test_told_when_there_is_something(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            assert await has_message(broker)
            await pop(broker)
            assert not await has_message(broker)
            waiting = asyncio.create_task(has_message(broker, poll_time=15_000))
            await asyncio.sleep(0.2)
            header = PollingInfoHeader(consumer_group=GROUP, topic=TOPIC, queue_id=-1)
            answer = await broker.ask(RequestCode.POLLING_INFO, header)
            assert answer.header(PollingInfoAnswerHeader).polling_num == 1
            await send(broker, "b", queue_id=3)
            assert await asyncio.wait_for(waiting, 5)
            assert not await has_message(broker, order=True) or await pop(broker)

    asyncio.run(run())


def test_told_when_there_is_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            await pop(broker)
            assert not await has_message(broker, poll_time=200)

    asyncio.run(run())
