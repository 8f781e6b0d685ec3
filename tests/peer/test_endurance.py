"""Stock clients behind a network that cuts, while the broker is killed: with SYNC_FLUSH nothing
that was acknowledged is lost, consumers go on, and each queue keeps its order.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import MqlakeError
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.routes import RouteTable
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from tests.chaos.proxy import Proxy, Way
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import Clients
from tests.programs.forked import ForkedBroker

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

TOPIC = "Endured"
QUEUES = 4
KILLS = [(160,), pytest.param((80, 160, 240), marks=pytest.mark.nightly)]
"""Messages after which the broker is killed."""


def detour(address: str) -> Callable[[RouteTable, str, NamesrvSettings], TopicRouteData | None]:
    """Return `RouteTable.find` with another address for all brokers."""
    find = RouteTable.find

    def find_detour(
        routes: RouteTable, topic: str, settings: NamesrvSettings
    ) -> TopicRouteData | None:
        route = find(routes, topic, settings)
        for data in route.broker_datas if route else ():
            data.broker_addrs = dict.fromkeys(data.broker_addrs, address)
        return route

    return find_detour


async def stored(address: str) -> int:
    """Return how many messages the topic has; -1 where nobody answers."""
    client, there = RemotingClient(), 0
    try:
        for queue in range(QUEUES):
            fields = {"topic": TOPIC, "queueId": str(queue)}
            asked = request(RequestCode.GET_MAX_OFFSET, fields)
            there += int((await client.call(address, asked)).fields["offset"])
    except MqlakeError:
        return -1
    finally:
        await client.close()
    return there


async def kill(process: ForkedBroker, kills: Sequence[int]) -> None:
    for count in kills:
        while await stored(process.address) < count:  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0.02)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)


@pytest.mark.parametrize("kills", KILLS)
def test_nothing_is_lost_and_order_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: Sequence[int]
) -> None:
    try:
        clients = Clients(tmp_path, rebalance=1000)
    except JavaMissingError as reason:
        pytest.skip(f"without the real clients: {reason}")

    async def run() -> dict[str, Any]:
        async with NameServer({"listenPort": 0}) as names:
            address = f"127.0.0.1:{names.port}"
            settings = {"flushDiskType": "SYNC_FLUSH", "namesrvAddr": address}
            process = await asyncio.to_thread(
                ForkedBroker, tmp_path / "store", tmp_path / "log", settings
            )
            try:
                return await endure(address, process)
            finally:
                process.kill()

    async def endure(names: str, process: ForkedBroker) -> dict[str, Any]:
        make = f"updateTopic -b {process.address} -t {TOPIC} -r {QUEUES} -w {QUEUES}"
        (said,) = await asyncio.to_thread(clients.mqadmin, names, [make.split()])
        assert "success" in said
        async with Proxy(process.address, [Way.CUT], seed=5, share=0.008) as proxy:
            monkeypatch.setattr(RouteTable, "find", detour(proxy.address))
            killing = asyncio.create_task(kill(process, kills))
            answer = await asyncio.to_thread(clients.features, names, {"endure": TOPIC})
            killing.cancel()  # it is over long ago, unless the clients failed
            await asyncio.gather(killing, return_exceptions=True)
            assert proxy.seen[Way.CUT]
        return answer["endure"]

    endured = asyncio.run(run())
    clients.close()
    assert "failure" not in endured, endured
    check(endured)


def check(endured: dict[str, Any]) -> None:
    """See that each queue's messages came, and at first in their order."""
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for message in endured["consumed"]:
        queue, number = map(int, message["body"].split())
        assert queue == message["queue"]
        found[queue].setdefault(number, message["offset"])
    for numbers in found.values():
        assert list(numbers) == list(range(endured["each"]))
        assert sorted(numbers.values()) == list(numbers.values())
    assert len(found) == QUEUES
    assert endured["tries"] > QUEUES * endured["each"]
