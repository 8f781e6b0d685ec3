"""Requests that wait when their broker becomes a slave are answered as new ones would be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.header import Header
from mqlake.protocol.headers.pop import NotificationHeader
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.pop.popping import GROUP, LONG, TOPIC, header, pop, send
from tests.broker.pull.pulls import polls, start_pull
from tests.broker.running import Running, running
from tests.broker.slave.pairs import switch
from tests.until import until


def waiting(broker: Running, code: RequestCode, fields: Header) -> asyncio.Task[int]:
    """Begin a request that waits; return its response code."""

    async def ask() -> int:
        return (await broker.ask(code, fields)).code

    return asyncio.create_task(ask())


def count(broker: Running) -> int:
    """Return how many requests wait for the topic that is popped."""
    routes = {route.code: route for route in broker.broker.routes}
    family = routes[RequestCode.POLLING_INFO].handler.__self__  # type: ignore[attr-defined]
    return family._waiting.count(TOPIC, GROUP, -1)


def test_pops_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            assert len(await pop(broker)) == 1
            told = NotificationHeader(
                consumer_group=GROUP, topic=TOPIC, queue_id=-1, poll_time=LONG
            )
            notification = waiting(broker, RequestCode.NOTIFICATION, told)
            await until(lambda: count(broker) == 1)
            pops = [
                waiting(broker, RequestCode.POP_MESSAGE, header(poll_time=LONG)) for _ in range(3)
            ]
            await until(lambda: count(broker) == 4)
            switch(broker, BrokerRole.SLAVE, 1)
            expected = [ResponseCode.SERVICE_NOT_AVAILABLE] * 3
            assert await asyncio.gather(*pops) == expected
            assert (await broker.ask(RequestCode.POP_MESSAGE, header())).code == expected[0]
            # A slave serves these.
            assert (count(broker), notification.done()) == (1, False)
            notification.cancel()

    simulated.run(run())


@pytest.mark.parametrize("serves_reads", [True, False])
def test_pulls_are_refused_unless_a_slave_serves_reads(tmp_path: Path, serves_reads: bool) -> None:
    async def run() -> None:
        async with running(tmp_path, slaveReadEnable=serves_reads) as broker:
            await send(broker, "a")
            pull = start_pull(broker, 1, LONG)
            await until(lambda: len(polls(broker)) == 1)
            switch(broker, BrokerRole.SLAVE, 1)
            if serves_reads:
                new = start_pull(broker, 1, LONG)
                await until(lambda: len(polls(broker)) == 2)
                assert not pull.done()
                for task in (pull, new):
                    task.cancel()
            else:
                assert (await pull).code == ResponseCode.SYSTEM_BUSY

    simulated.run(run())
