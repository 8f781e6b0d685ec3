"""Messages that were popped for a connection that is closed before the answer are popped again at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.slices import Job
from mqlake.testing.advanced_clock import AdvancedClock
from tests.broker.pop.lost import lose_after_reading, read_in_slices
from tests.broker.pop.popping import (
    LONG,
    TOPIC,
    Popped,
    acknowledge,
    header,
    pop,
    run,
    send,
    until_waiting,
)
from tests.broker.running import PATIENCE, Running, running

SOON = 1.0
"""Seconds, much less than the invisible time."""
SQL = {"exp": "TRUE", "exp_type": "SQL92"}
"""A condition, so that the queues are read in slices."""


@asynccontextmanager
async def lost_client(
    broker: Running, monkeypatch: pytest.MonkeyPatch, **hook: object
) -> AsyncGenerator[RemotingClient]:
    """Connect a client whose connection is closed once messages were popped for it."""
    before, client = broker.broker.peers, RemotingClient(connect_timeout=PATIENCE)

    def lose() -> None:
        for peer in broker.broker.peers - before:
            peer.close()

    lose_after_reading(monkeypatch, lose, **hook)  # pyright: ignore[reportArgumentType]
    yield client
    await client.close()


async def lost_pop(broker: Running, client: RemotingClient, **fields: object) -> Command:
    asked = request(RequestCode.POP_MESSAGE, header(**fields))
    return await client.request(broker.address, asked, PATIENCE)


async def pop_soon(broker: Running, *wanted: str, **fields: object) -> list[Popped]:
    """Pop these messages; they come soon, and as if nobody had popped them before."""
    now, found = asyncio.get_running_loop().time, list[Popped]()
    begin = now()
    while len(found) < len(wanted):
        found += await pop(broker, poll_time=2000, **fields)
    came = [each.body for each in found]
    assert (came if fields.get("order") else sorted(came)) == [*wanted]
    assert now() < begin + SOON
    assert {(each.times, each.record.reconsume_times) for each in found} == {(0, 0)}
    return found


async def lose(
    broker: Running, monkeypatch: pytest.MonkeyPatch, how: str, **fields: object
) -> None:
    """Lose a pop of the messages a and b."""
    if how == "waiting":
        broker.state.topics.put(Topic(TOPIC))
        await until_waiting(broker, 0)  # The other client is connected.
        async with lost_client(broker, monkeypatch) as client:
            waiting = asyncio.create_task(lost_pop(broker, client, poll_time=LONG, **fields))
            await until_waiting(broker, 1)
            await send(broker, "a", "b")
            with pytest.raises(ConnectionFailedError):
                await waiting
        return
    await send(broker, "a", "b")
    if how == "in slices":
        read_in_slices(monkeypatch)
        fields |= SQL
    async with lost_client(broker, monkeypatch) as client:
        with pytest.raises(ConnectionFailedError):
            await lost_pop(broker, client, **fields)


@pytest.mark.parametrize("is_ordered", [False, True], ids=["at any queue", "in order"])
@pytest.mark.parametrize("how", ["at once", "waiting", "in slices"])
def test_messages_for_a_closed_connection_are_popped_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, *, is_ordered: bool
) -> None:
    async def test() -> None:
        async with running(tmp_path, timerPrecisionMs=100) as broker:
            await lose(broker, monkeypatch, how, order=is_ordered)
            found = await pop_soon(broker, "a", "b", order=is_ordered)
            assert await pop(broker, order=is_ordered) == []
            await acknowledge(broker, *found)
            assert await pop(broker, order=is_ordered) == []

    run(test())


def test_a_pop_that_waits_gets_the_messages_of_a_lost_pop_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            (first,) = await pop(broker, order=True)
            async with lost_client(broker, monkeypatch) as client:
                lost = asyncio.create_task(lost_pop(broker, client, order=True, poll_time=LONG))
                await until_waiting(broker, 1)
                other = asyncio.create_task(pop(broker, order=True, poll_time=LONG))
                await until_waiting(broker, 2)
                await send(broker, "b")
                await acknowledge(broker, first)
                begin = asyncio.get_running_loop().time()
                assert [(each.body, each.times) for each in await other] == [("b", 0)]
                assert asyncio.get_running_loop().time() < begin + SOON
                with pytest.raises(ConnectionFailedError):
                    await lost

    run(test())


def test_a_pop_that_came_while_a_lost_one_read_gets_its_messages_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            others: list[asyncio.Task[list[Popped]]] = []

            def meanwhile() -> Job[None]:
                others.append(asyncio.create_task(pop(broker, order=True, poll_time=LONG)))
                waits = asyncio.create_task(until_waiting(broker, 1))
                while not waits.done():
                    yield

            await send(broker, "a")
            read_in_slices(monkeypatch)
            async with lost_client(broker, monkeypatch, meanwhile=meanwhile) as client:
                with pytest.raises(ConnectionFailedError):
                    await lost_pop(broker, client, order=True, invisible_time=LONG, **SQL)
            (found,) = await asyncio.wait_for(others[0], PATIENCE)
            assert (found.body, found.times) == ("a", 0)

    asyncio.run(test())  # Simulated time would stand still while the job of the lost pop goes on.


def test_earlier_attempts_still_count_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            assert len(await pop(broker, order=True, invisible_time=400)) == 1
            await asyncio.sleep(0.5)
            async with lost_client(broker, monkeypatch) as client:
                with pytest.raises(ConnectionFailedError):
                    await lost_pop(broker, client, order=True)
            (again,) = await pop(broker, order=True)
            assert (again.body, again.times) == ("a", 1)

    run(test())


def test_no_check_point_is_written_while_messages_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hide messages that are sent to nobody until their invisible time is over."""

    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, popCkStayBufferTime=1) as broker:
            (look,) = [
                each.start
                for each in broker.runtime.repeating
                if each.name == "PopConsumption._look"
            ]

            def meanwhile() -> Job[None]:
                clock.advance(1)
                look()
                for _ in range(20):
                    yield

            await send(broker, "a")
            read_in_slices(monkeypatch)
            async with lost_client(broker, monkeypatch, meanwhile=meanwhile) as client:
                with pytest.raises(ConnectionFailedError):
                    await lost_pop(broker, client, **SQL)
            assert broker.records("rmq_sys_wheel_timer") == []
            await pop_soon(broker, "a")

    run(test())
