"""A poll that is over while the broker reads for it hides no messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lite.pops import LitePops
from mqlake.proxy.brokers.link import BrokerLink
from mqlake.remoting.errors import RequestTimeoutError
from tests import simulated
from tests.broker.pop.lost import lose_after_reading, read_in_slices
from tests.proxy.consuming.consumer import TOPIC, TestedConsumer, bodies, send
from tests.proxy.consuming.test_lite import ADD, LiteConsumer
from tests.proxy.consuming.test_lite import run as run_lite
from tests.proxy.consuming.test_lite import send as send_lite
from tests.proxy.serving import Calls, serving

SOON = 0.5
"""Seconds, less than after which a client's messages are visible that it did not handle."""


async def received_soon(consumer: TestedConsumer, *wanted: str) -> None:
    """Receive these messages, soon, and as if they were never received before."""
    now, found = asyncio.get_running_loop().time, list[Any]()
    begin = now()
    while len(found) < len(wanted):
        found += await consumer.receive()
    assert sorted(bodies(found)) == [*wanted]
    assert now() < begin + SOON
    assert {each.system_properties.delivery_attempt for each in found} == {1}


async def lost(poll: asyncio.Task[Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await poll


@pytest.mark.parametrize("is_fifo", [False, True], ids=["at any queue", "in order"])
@pytest.mark.parametrize("how", ["waiting", "in slices"])
def test_a_poll_that_is_cancelled_while_the_broker_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, *, is_fifo: bool
) -> None:
    async def run() -> None:
        async with serving(tmp_path, timerPrecisionMs=100) as calls:
            calls.topic(TOPIC, queues=1)
            consumer = TestedConsumer(calls, is_fifo=is_fifo)
            await consumer.begin()
            sql: dict[str, Any] = {"sql": "TRUE"} if how == "in slices" else {}
            if sql:
                read_in_slices(monkeypatch)
                await send(calls, "a", "b")
            poll = asyncio.create_task(consumer.receive(**sql))
            lose_after_reading(monkeypatch, poll.cancel)
            await asyncio.sleep(0.01)
            if not sql:
                await send(calls, "a", "b")
            await lost(poll)
            await received_soon(consumer, "a", "b")

    simulated.run(run())


def test_a_poll_for_lite_topics_that_is_cancelled_while_the_broker_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, cancels = LitePops._pop, list[Callable[[], object]]()

    def pop(self: LitePops, *args: Any) -> Any:
        answer = real(self, *args)
        if answer is not None and cancels:
            cancels.pop()()
        return answer

    monkeypatch.setattr(LitePops, "_pop", pop)

    async def test(calls: Calls) -> None:
        consumer = LiteConsumer(calls)
        await consumer.sync(ADD, "s1")
        poll = asyncio.create_task(consumer.receive())
        await asyncio.sleep(1)
        cancels.append(poll.cancel)
        await send_lite(calls, "s1", "a")
        await lost(poll)
        begin = asyncio.get_running_loop().time()
        (found,) = await consumer.receive()
        assert asyncio.get_running_loop().time() < begin + SOON
        assert (found.body, found.system_properties.delivery_attempt) == (b"a", 1)

    run_lite(tmp_path, test)


def test_a_poll_whose_time_is_over_while_the_broker_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with serving(tmp_path, timerPrecisionMs=100) as calls:
            calls.topic(TOPIC, queues=1)
            consumer = TestedConsumer(calls)
            await consumer.begin()
            links = list[BrokerLink]()
            real = BrokerLink.poll

            async def poll(self: BrokerLink, *args: Any) -> Any:
                links.append(self)
                return await real(self, *args)

            def over() -> None:
                for future, _ in links[0]._awaited._awaited.values():
                    future.set_exception(RequestTimeoutError())

            monkeypatch.setattr(BrokerLink, "poll", poll)
            lose_after_reading(monkeypatch, over)
            waiting = asyncio.create_task(consumer.responses())
            await asyncio.sleep(0.01)
            await send(calls, "a")
            await waiting
            await received_soon(consumer, "a")

    simulated.run(run())
