"""A slave becomes a master, and a master a slave, without a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.client.cluster import Cluster
from mqlake.errors import StoreError
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.protocol import naming
from mqlake.protocol.codes import ResponseCode
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.running import running, to
from tests.broker.slave.pairs import SLAVE, name_server, pair, switch
from tests.broker.slave.test_refusals import copied
from tests.until import until

DELAYED = "DELAY\x011\x02UNIQ_KEY\x01A\x02"
TIMED = "TIMER_DELAY_MS\x01500\x02UNIQ_KEY\x01B\x02"


def test_a_slave_that_is_promoted_goes_on_where_its_master_was(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", messageDelayLevel="1h") as broker:
            await broker.send(to("Orders", properties=DELAYED))
        copied(tmp_path)
        async with (
            name_server() as names,
            running(
                tmp_path / "slave", namesrvAddr=names, messageDelayLevel="1s", **SLAVE
            ) as broker,
        ):
            known = await addresses(names)
            assert known == {1: broker.address}
            switch(broker, BrokerRole.SYNC_MASTER, 0)
            assert (await broker.send(to("Others"))).code == ResponseCode.SUCCESS
            # What waited for its time is delivered, and what comes now.
            await until(lambda: len(broker.records("Orders")) == 1)
            await broker.send(to("Others", properties=TIMED))
            await until(lambda: len(broker.records("Others")) == 2)
            await broker.state.names.told()
            assert await addresses(names) == {0: broker.address}
            assert "TBW102" in broker.state.topics
            assert set(naming.SYSTEM_GROUPS) <= set(broker.state.groups)

    simulated.run(run())


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_slave_that_is_promoted_knows_every_topic_with_messages(
    tmp_path: Path, is_restarted: bool
) -> None:
    """It copies its master's topics once a minute."""

    async def run() -> None:
        async with pair(tmp_path) as (one, other):
            await until(lambda: other.state.topics.get("TBW102") is not None)
            await one.send(to("Newest"))
            end = one.state.store.watermarks.end
            await until(lambda: other.state.store.watermarks.dispatched == end)
            if not is_restarted:
                switch(other, BrokerRole.ASYNC_MASTER, 0)
                assert other.state.topics.get("Newest") is not None
        if is_restarted:
            async with running(tmp_path / "slave") as promoted:
                assert promoted.state.topics.get("Newest") is not None

    simulated.run(run())


def test_a_master_that_is_demoted_takes_and_delivers_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, messageDelayLevel="1s") as broker:
            switch(broker, BrokerRole.SLAVE, 1)
            refused = await broker.send(to("Orders"))
            assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
            switch(broker, BrokerRole.ASYNC_MASTER, 0)
            await broker.send(to("Orders", properties=DELAYED))
            switch(broker, BrokerRole.SLAVE, 1)
            end = broker.state.store.watermarks.end
            services = {each.name: each for each in broker.state.store.health.services}
            before = services["delayedMessages"].last
            await until(lambda: services["delayedMessages"].last > before + 1.5)
            assert broker.state.store.watermarks.end == end
            assert broker.records(SCHEDULE_TOPIC)
            switch(broker, BrokerRole.ASYNC_MASTER, 0)
            await until(lambda: len(broker.records("Orders")) == 1)

    simulated.run(run())


def test_nothing_else_is_switched(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            with pytest.raises(StoreError, match="brokerId: 3 is a slave's"):
                switch(broker, BrokerRole.SYNC_MASTER, 3)
            assert broker.runtime.settings.broker_role is BrokerRole.ASYNC_MASTER

    simulated.run(run())


async def addresses(names: str) -> dict[int, str]:
    async with Cluster(names) as cluster:
        table = (await cluster.cluster_info()).broker_addr_table
    return table["broker-a"].broker_addrs
