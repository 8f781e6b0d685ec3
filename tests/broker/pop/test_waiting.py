"""Pops that wait: whom they are answered to, and what happens meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from tests.broker.admin.asking import done, wanted
from tests.broker.pop.popping import TOPIC, acknowledge, bodies, header, pop, send
from tests.broker.running import Running, running, to
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


async def create(broker: Running, queues: int) -> None:
    fields = wanted(TOPIC, read_queue_nums=queues, write_queue_nums=queues)
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)


def test_a_pop_over_very_many_queues(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await create(broker, 4000)
            names = [f"{number}" for number in range(40)]
            for number, name in enumerate(names):
                await send(broker, name, queue_id=number * 97)
            first, second = await asyncio.gather(pop(broker), pop(broker))
            assert bodies([*first, *second]) == sorted(names)
            await acknowledge(broker, *first, *second)
            assert not await pop(broker)
            assert not await pop(broker, order=True)

    asyncio.run(run())


def test_what_comes_while_very_many_queues_are_looked_into(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await create(broker, 4000)
            await pop(broker)
            for number in range(8):
                waiting = asyncio.create_task(pop(broker, poll_time=15_000))
                await asyncio.sleep(0.004 * number)
                await send(broker, f"{number}", queue_id=(number * 500 + 3) % 4000)
                async with asyncio.timeout(5):
                    assert bodies(await waiting) == [f"{number}"]

    asyncio.run(run())


def test_the_time_of_a_pop_is_up_while_it_is_looked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await create(broker, 4000)
            await send(broker, "a", properties="TAGS\1other\2")
            fields = {"exp": "wanted", "exp_type": "TAG"}
            waiting = [
                asyncio.create_task(
                    pop(broker, consumer_group=f"g{number}", poll_time=500, **fields)
                )
                for number in range(20)
            ]
            await asyncio.sleep(0.45)
            for number in range(10):
                await send(broker, "b", queue_id=number, properties="TAGS\1other\2")
            assert await asyncio.gather(*waiting) == [[]] * 20
            assert not any(peer.in_flight for peer in broker.broker.peers)

    asyncio.run(run())
