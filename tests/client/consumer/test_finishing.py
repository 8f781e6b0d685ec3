"""Who may finish a message, and what happens to it if its handler or its broker fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest

from mqlake.client.consumer import finishing as finishing_module
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.finishing import Finishing
from mqlake.client.consumer.inbox import Inbox, InboxQueue
from mqlake.client.consumer.pop.popping import Popping
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.ownership import Ownership
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.consumer.workers import Workers
from mqlake.client.errors import ClientError
from mqlake.protocol.bodies.message_queue import MessageQueue
from tests import simulated
from tests.client.messages import QUEUE, consumed
from tests.until import PATIENCE


class Rig:
    """A consumer of one queue, whose broker takes no message back unless it is told to."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.inbox, self.sent_back = Inbox[InboxQueue](), list[tuple[int, int]]()
        self.held = QueueMessages(
            QUEUE, asyncio.get_running_loop().time, in_order=settings.in_order
        )
        self.held.locked_until = float("inf")
        self.takes_back = asyncio.Event()
        self.is_broken = False
        ownership = cast("Ownership", self)
        self.finishing = Finishing(
            send_back=self.send_back,
            inbox=self.inbox,
            settings=settings,
            ownership=ownership,
            popping=cast("Popping", self),
            statistics=Statistics(time.monotonic),
        )
        self.workers = Workers(self.inbox, self.finishing)

    def get(self, queue: MessageQueue) -> QueueMessages | None:
        return self.held if queue == QUEUE else None

    def __iter__(self) -> Iterator[QueueMessages]:
        return iter((self.held,))

    async def ack(self, message: ConsumedMessage) -> bool:
        return False

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        return False

    async def send_back(self, message: ConsumedMessage, level: int, most: int) -> None:
        if self.is_broken:
            raise ClientError("no broker")
        await self.takes_back.wait()
        self.sent_back.append((message.queue_offset, level))

    def add(self, *offsets: int) -> None:
        self.held.add([consumed(offset) for offset in offsets], offsets[-1] + 1)
        self.inbox.offer(self.held)

    async def take(self) -> ConsumedMessage:
        async with asyncio.timeout(PATIENCE):
            taken = await self.inbox.take(1)
        assert taken is not None
        return taken[1][0]


def with_rig(work: Callable[[Rig], Awaitable[None]], settings: ConsumerSettings) -> None:
    async def run() -> None:
        await work(Rig(settings))

    simulated.run(run())


PLAIN = ConsumerSettings(handling_timeout=0.0)
IN_ORDER = ConsumerSettings(in_order=True, suspend=0.01, max_retries=1)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finishing_module, "_AGAIN", 0.01)


def test_a_message_that_no_broker_takes_back_cannot_be_acknowledged_by_its_old_handler() -> None:
    async def work(rig: Rig) -> None:
        rig.is_broken = True
        rig.add(0, 1)
        message = await rig.take()
        assert await rig.finishing.retry_later(message, 0)
        assert not await rig.finishing.ack(message)
        assert rig.held.committed_offset == 0
        await rig.take()  # number 1
        again = await rig.take()
        assert (again.queue_offset, again.reconsume_times) == (0, 1)
        assert not await rig.finishing.ack(message)
        assert await rig.finishing.ack(again)

    with_rig(work, PLAIN)


def test_a_message_on_its_way_back_is_not_late_and_goes_back_once() -> None:
    async def work(rig: Rig) -> None:
        rig.add(0)
        message = await rig.take()
        going = asyncio.create_task(rig.finishing.retry_later(message, 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        await rig.finishing.give_up_late_ones()
        assert not await rig.finishing.retry_later(message, 2)
        rig.takes_back.set()
        assert await going
        assert (rig.sent_back, rig.held.committed_offset) == ([(0, 2)], 1)

    with_rig(work, PLAIN)


def test_a_cancelled_hand_back_is_not_forgotten() -> None:
    async def work(rig: Rig) -> None:
        rig.add(0)
        message = await rig.take()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(rig.finishing.retry_later(message, 0), 0.01)
        assert (await rig.take()).queue_offset == 0

    with_rig(work, PLAIN)


def test_a_message_that_was_sent_back_while_its_queue_restarted_is_not_committed() -> None:
    async def work(rig: Rig) -> None:
        rig.add(0, 1)
        message = await rig.take()
        going = asyncio.create_task(rig.finishing.retry_later(message, 2))
        await asyncio.sleep(0)
        rig.held.restart(0)
        rig.takes_back.set()
        await going
        assert rig.held.committed_offset == 0

    with_rig(work, PLAIN)


def test_an_ordered_message_becomes_a_dead_letter_after_its_retries() -> None:
    async def work(rig: Rig) -> None:
        rig.takes_back.set()
        rig.add(0, 1)
        first = await rig.take()
        assert await rig.finishing.retry_later(first, 0)
        assert not await rig.finishing.ack(first)
        again = await rig.take()
        assert (again.queue_offset, again.reconsume_times) == (0, 1)
        assert await rig.finishing.retry_later(again, 0)
        assert rig.sent_back == [(0, -1)]
        assert (await rig.take()).queue_offset == 1

    with_rig(work, IN_ORDER)


def test_an_ordered_broadcast_message_is_retried_before_the_next_one() -> None:
    async def work(rig: Rig) -> None:
        rig.add(0)
        assert await rig.finishing.retry_later(await rig.take(), 0)
        again = await rig.take()
        assert again.reconsume_times == 1
        assert await rig.finishing.retry_later(again, 0)
        assert (rig.sent_back, rig.held.committed_offset) == ([], 1)

    with_rig(work, ConsumerSettings(in_order=True, broadcasting=True, suspend=0.01, max_retries=1))


def test_a_handler_whose_work_is_cancelled_fails_that_message_alone() -> None:
    async def work(rig: Rig) -> None:
        rig.takes_back.set()
        rig.add(0, 1)
        seen: list[int] = []

        async def handle(message: ConsumedMessage) -> None:
            seen.append(message.queue_offset)
            if message.queue_offset == 0:
                inner = asyncio.create_task(asyncio.sleep(9))
                inner.cancel()
                await inner
            rig.inbox.close()

        async with asyncio.timeout(PATIENCE):
            await rig.workers.run(handle, 1)
        assert (seen, rig.sent_back, rig.held.committed_offset) == ([0, 1], [(0, 0)], 2)

    with_rig(work, PLAIN)


def test_a_worker_that_is_cancelled_gives_its_message_back() -> None:
    async def work(rig: Rig) -> None:
        rig.add(0)
        begun = asyncio.Event()

        async def handle(message: ConsumedMessage) -> None:
            begun.set()
            await asyncio.sleep(60)

        running = asyncio.create_task(rig.workers.run(handle, 3))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        again = await rig.take()
        assert (again.queue_offset, again.reconsume_times) == (0, 0)

    with_rig(work, PLAIN)


def test_a_base_exception_of_a_handler_ends_all_workers_at_once() -> None:
    class Stop(BaseException):
        pass

    async def work(rig: Rig) -> None:
        rig.add(0)

        async def handle(message: ConsumedMessage) -> None:
            raise Stop

        async with asyncio.timeout(PATIENCE):
            with pytest.raises(Stop):
                await rig.workers.run(handle, 3)

    with_rig(work, PLAIN)


def test_a_seek_waits_for_handlers_only() -> None:
    async def work(rig: Rig) -> None:
        rig.add(0, 1)
        received = await rig.take()  # by `receive`: nobody has to finish it after a seek
        rig.held.restart(5, rig.workers.handling)
        assert not await rig.finishing.ack(received)
        rig.add(5)
        held, release = asyncio.Event(), asyncio.Event()

        async def handle(message: ConsumedMessage) -> None:
            held.set()
            await release.wait()
            rig.inbox.close()

        running = asyncio.create_task(rig.workers.run(handle, 2))
        await held.wait()
        rig.held.restart(7, rig.workers.handling)
        rig.add(7)
        assert not rig.held.is_ready
        release.set()
        await running
        assert rig.held.is_ready

    with_rig(work, IN_ORDER)


def test_a_handler_that_swallows_its_cancellation_is_the_last_one() -> None:
    async def work(rig: Rig) -> None:
        rig.takes_back.set()
        rig.add(0, 1)
        begun = asyncio.Event()

        async def handle(message: ConsumedMessage) -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise RuntimeError("cut off") from None

        running = asyncio.create_task(rig.workers.run(handle, 1))
        await begun.wait()
        running.cancel()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(asyncio.CancelledError):
                await running
        assert (await rig.take()).queue_offset == 1

    with_rig(work, PLAIN)


def test_a_handler_that_is_no_coroutine_function_ends_the_call_and_redelivers_nothing() -> None:
    async def work(rig: Rig) -> None:
        handled: list[int] = []

        def handle(message: ConsumedMessage) -> None:
            handled.append(message.queue_offset)

        handler: Any = handle
        rig.add(0, 1)
        with pytest.raises(ClientError) as raised:
            await rig.workers.run(handler, 1)
        assert str(raised.value) == (
            "the handler handle is not a coroutine function: write async def"
        )
        assert (handled, rig.sent_back, rig.held.committed_offset) == ([0], [], 0)
        assert (await rig.take()).queue_offset == 0

    with_rig(work, PLAIN)


def test_a_function_that_returns_a_coroutine_is_a_handler() -> None:
    async def work(rig: Rig) -> None:
        handled: list[int] = []

        async def handle(message: ConsumedMessage) -> None:
            await asyncio.sleep(0)
            handled.append(message.queue_offset)
            rig.inbox.close()

        rig.add(0)
        await rig.workers.run(lambda message: handle(message), 1)  # noqa: PLW0108 (no coroutine function)
        assert (handled, rig.held.committed_offset) == ([0], 1)

    with_rig(work, PLAIN)
