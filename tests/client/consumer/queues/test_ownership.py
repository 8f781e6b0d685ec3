"""A consumer's own queues are read, whatever happens to the calls that restart them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from mqlake.client.consumer.parts import ConsumerParts
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.ownership import Ownership
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.protocol.bodies.message_queue import MessageQueue
from tests import simulated

QUEUES = [MessageQueue("t", "a", number) for number in range(3)]


class Rig:
    """Reads queues from nowhere; the offsets of a queue take some rounds of the loop to settle."""

    def __init__(self, delay: float = 0.0) -> None:
        self.reading: list[MessageQueue] = []
        self.settled: dict[MessageQueue, int] = {}
        parts = cast("ConsumerParts", SimpleNamespace(pulling=self, offsets=self))
        self.ownership = Ownership(parts, {"t": SelectedTopic("t", ALL, 1)}, None, None)
        now = asyncio.get_running_loop().time
        for queue in QUEUES:
            self.ownership._held[queue] = held = QueueMessages(queue, now, in_order=False)
            held.next_offset = 7
            self.ownership._read(held, delay)

    async def run(self, held: QueueMessages, wanted: SelectedTopic, delay: float) -> None:
        self.reading.append(held.queue)
        try:
            await asyncio.sleep(60)
        finally:
            try:
                await asyncio.sleep(0)
            finally:
                self.reading.remove(held.queue)

    async def settle(self, queue: MessageQueue, offset: int, *, leaves: bool) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.settled[queue] = offset


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("count", range(20))
def test_a_restart_that_is_cancelled_leaves_no_queue_without_its_one_reader(count: int) -> None:
    async def run() -> bool:
        rig = Rig()
        await rounds(3)
        restart = asyncio.create_task(rig.ownership.restart(dict.fromkeys(QUEUES, 3)))
        await rounds(count)
        is_cancelled = restart.cancel()
        await asyncio.gather(restart, return_exceptions=True)
        await rounds(5)
        assert sorted(rig.reading, key=QUEUES.index) == QUEUES
        for queue in QUEUES:
            held = rig.ownership.get(queue)
            assert held is not None
            assert held.next_offset in (3, 7)
        if not is_cancelled:
            assert rig.settled == dict.fromkeys(QUEUES, 3)
        return is_cancelled

    is_cancelled = simulated.run(run())
    assert is_cancelled or count > 3


def test_a_restart_replaces_a_reader_that_has_ended() -> None:
    async def run() -> None:
        rig = Rig()
        await rounds(3)
        (reader, *_) = rig.ownership._readers.values()
        reader.cancel()
        await rounds(5)
        assert sorted(rig.reading, key=QUEUES.index) == QUEUES[1:]
        restart = asyncio.create_task(rig.ownership.restart({QUEUES[0]: 3}))
        await rounds(1)
        restart.cancel()
        await asyncio.gather(restart, return_exceptions=True)
        await rounds(5)
        assert sorted(rig.reading, key=QUEUES.index) == QUEUES

    simulated.run(run())


def test_first_offsets_are_waited_for_while_their_queues_are_read() -> None:
    async def run() -> None:
        rig = Rig()
        first = asyncio.create_task(rig.ownership.first_offsets())
        await rounds(3)
        for held in list(rig.ownership)[1:]:
            assert not first.done()
            held.is_begun.set()
            await rounds(3)
        assert not first.done()
        rig.ownership._readers[QUEUES[0]].cancel()
        await first

    simulated.run(run())


def test_a_queue_that_another_member_may_read_is_not_waited_for() -> None:
    async def run() -> None:
        await Rig(delay=0.5).ownership.first_offsets()

    simulated.run(run())
