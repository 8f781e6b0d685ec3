"""Pops that wait: whom they are answered to, and what happens meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import request
from tests.broker.pop.popping import TOPIC, header, pop, send
from tests.broker.running import running, to
from tests.broker.slow_reader import SlowReader

GROUPS = [f"group-{number}" for number in range(40)]
BODY = bytes(250_000)


def test_a_client_that_does_not_read_leaves_the_messages_to_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "first")
            for group in GROUPS:
                assert len(await pop(broker, consumer_group=group)) == 1
            waiting = [header(consumer_group=group, poll_time=15_000) for group in GROUPS]
            slow = await SlowReader.connect(broker)
            await slow.ask([request(RequestCode.POP_MESSAGE, fields) for fields in waiting])
            sent = await broker.send(to(TOPIC, queue_id=0), BODY)
            assert sent.code == ResponseCode.SUCCESS
            await asyncio.sleep(0.5)
            others = [len(await pop(broker, consumer_group=group)) for group in GROUPS[::2]]
            assert sum(others) > 4, "the messages are not out to the one that does not read"
            late = len(GROUPS) - sum(others)
            answers = await slow.read(late)
            assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
            assert all(len(answer.body) > len(BODY) for answer in answers)
            slow.close()

    asyncio.run(run())
