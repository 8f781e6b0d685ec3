"""Metrics of a master and its slaves, and of dead letters."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.send import SendBackHeader
from tests import simulated
from tests.broker.metrics.scraping import of, scrape
from tests.broker.running import running, to
from tests.replication.slaves import Slave, close_all, end, only, server
from tests.until import until


def test_what_a_slave_lacks_is_a_number(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            try:
                assert (await scrape(broker))[of("mqlake_slaves")] == 0
                broker.state.topics.make("Orders", 1)
                await broker.send(to("Orders"))
                slave = await Slave.connect(server(broker).address)
                slave.report(0)
                await until(lambda: server(broker).connections and only(broker).acknowledged == 0)
                found = await scrape(broker)
                behind = of("mqlake_slave_behind_bytes", slave=only(broker).address)
                assert found[behind] == end(broker)
                assert (found[of("mqlake_slave")], found[of("mqlake_slaves")]) == (0, 1)
                slave.report(end(broker))
                await until(lambda: only(broker).acknowledged == end(broker))
                found = await scrape(broker)
                assert (found[behind], found[of("mqlake_slaves_in_sync")]) == (0, 1)
            finally:
                await close_all()

    asyncio.run(check())


def test_a_slave_says_whether_it_follows(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path, brokerRole="SLAVE", brokerId=1) as broker:
            found = await scrape(broker)
            assert (found[of("mqlake_slave")], found[of("mqlake_follows_master")]) == (1, 0)
            assert of("mqlake_slaves") not in found

    simulated.run(check())


def test_dead_letters_are_counted(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            broker.state.topics.make("Orders", 1)
            await broker.send(to("Orders"))
            back = SendBackHeader(offset=0, group="group", delay_level=-1)
            answer = await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back)
            assert answer.code == ResponseCode.SUCCESS
            found = await scrape(broker)
            labels = {"consumer_group": "group", "topic": "Orders", "is_system": "false"}
            assert found[of("rocketmq_send_to_dlq_messages_total", **labels)] == 1

    asyncio.run(check())
