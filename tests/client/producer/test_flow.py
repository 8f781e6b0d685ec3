"""Producers wait for room."""

from __future__ import annotations

import asyncio

from mqlake.client.producer.flow import FlowControl
from tests import simulated


def test_messages_wait_for_room_in_their_order() -> None:
    async def run() -> None:
        room, order = FlowControl(2, 100), list[int]()

        async def send(number: int, size: int) -> None:
            await room.enter(size)
            try:
                order.append(number)
                await asyncio.sleep(0.01)
            finally:
                room.leave(size)

        tasks = [asyncio.create_task(send(number, 60)) for number in range(3)]
        tasks.append(asyncio.create_task(send(3, 1000)))
        await asyncio.sleep(0)
        tasks[1].cancel()
        await room.drained()
        assert order == [0, 2, 3]
        assert (room.count, room.bytes) == (0, 0)

    simulated.run(run())


def test_a_cancelled_sender_leaves_the_count_as_it_was() -> None:
    async def run() -> None:
        room, release = FlowControl(2, 100), asyncio.Event()

        async def hold(size: int) -> None:
            await room.enter(size)
            try:
                await release.wait()
            finally:
                room.leave(size)

        tasks = [asyncio.create_task(hold(size)) for size in (60, 60, 10, 10)]
        await asyncio.sleep(0)
        assert (room.count, room.bytes) == (1, 60)
        tasks[1].cancel()  # it waits, and holds up those after it
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (room.count, room.bytes) == (2, 70)
        tasks[0].cancel()  # its room goes to the last one, which is cancelled in the same moment
        tasks[3].cancel()
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await room.drained()
        assert (room.count, room.bytes) == (0, 0)

    simulated.run(run())
