"""mqlake's name server with the real broker, clients and mqadmin; its broker with the real one.

One JVM is RocketMQ's servers, another one its clients.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.broker import Broker
from mqlake.broker.settings import BrokerSettings
from mqlake.formats import fastjson
from mqlake.namesrv.name_server import NameServer
from mqlake.programs.ports import free_port
from mqlake.protocol.bodies.route import BrokerData, ClusterInfo, TopicRouteData
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import Clients
from tests.peer.rocketmq_cluster import Cluster
from tests.until import PATIENCE

pytestmark = [pytest.mark.peer]


class Names:
    """mqlake's name server on a thread of its own."""

    def __init__(self, settings: dict[str, object]) -> None:
        self._loop = asyncio.new_event_loop()
        self._server = NameServer(settings)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.address = f"127.0.0.1:{self._run(self._server.start())}"

    def stop(self) -> None:
        self._run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, doing: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result()


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Names]:
    place = tmp_path_factory.mktemp("names")
    settings = {
        "listenPort": 0,
        "kvConfigPath": place / "kv.json",
        "configStorePath": place / "namesrv.conf",
        "orderMessageEnable": True,
    }
    server = Names({name: str(value) for name, value in settings.items()})
    yield server
    server.stop()


@pytest.fixture(scope="module")
def cluster(names: Names, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The real servers; their broker is registered at mqlake's name server too."""
    place = tmp_path_factory.mktemp("cluster")
    try:
        servers = Cluster(place, place / "store", {}, also=names.address)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    servers.start()
    asyncio.run(registered(names.address, "broker-a"))
    yield servers
    servers.kill()


async def brokers(client: RemotingClient, name_server: str) -> dict[str, BrokerData]:
    """Return the brokers that a name server knows."""
    answer = await client.call(name_server, request(RequestCode.GET_BROKER_CLUSTER_INFO))
    return decode_body(ClusterInfo, answer.body).broker_addr_table


async def registered(name_server: str, broker: str) -> None:
    """Return once a broker is registered: at each of its name servers it is at another time."""
    client = RemotingClient()
    async with asyncio.timeout(PATIENCE):
        while broker not in await brokers(client, name_server):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.1)
    await client.close()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    try:
        jvm = Clients(tmp_path_factory.mktemp("clients"))
    except JavaMissingError as reason:
        pytest.skip(f"without the real clients: {reason}")
    yield jvm
    jvm.close()


def test_real_clients_find_the_real_broker(
    names: Names, cluster: Cluster, clients: Clients
) -> None:
    make = "updateTopic -c DefaultCluster -t Sent -r 4 -w 4"
    (said,) = clients.mqadmin(names.address, [make.split()])
    assert f"create topic to {cluster.broker} success." in said
    sent = clients.features(names.address, {"send": "Sent"})["send"]
    assert {each["status"] for each in sent["sync"]} == {"SEND_OK"}
    assert len(sent["consumed"]) == 5 * 8 + 1


def test_real_mqadmin_asks_and_changes(names: Names, cluster: Cluster, clients: Clients) -> None:
    def run(*commands: str) -> list[str]:
        return clients.mqadmin(names.address, [command.split() for command in commands])

    def route() -> Any:
        return fastjson.loads(run("topicRoute -t Ordered")[0].encode())

    clusters, system, settings = run("clusterList", "topicList -c", "getNamesrvConfig")
    assert cluster.broker in clusters
    assert "BenchmarkTest" in system
    assert "orderMessageEnable" in settings
    made, kept = run(
        "updateTopic -c DefaultCluster -t Ordered -r 2 -w 2 -o true",
        "updateKvConfig -s MINE -k key -v value",
    )
    assert "set cluster orderConf. isOrder=true" in made
    assert "create or update kv config to namespace success." in kept
    assert route()["orderTopicConf"] == "broker-a:2"
    (wiped,) = run("wipeWritePerm -b broker-a")
    assert "OK" in wiped
    assert route()["queueDatas"][0]["perm"] == 4
    (added,) = run("addWritePerm -b broker-a")
    assert "OK" in added
    assert route()["queueDatas"][0]["perm"] == 6
    run("updateNamesrvConfig -k waitSecondsForService -v 9", "deleteKvConfig -s MINE -k key")
    assert "waitSecondsForService" in run("getNamesrvConfig")[0]
    run("deleteTopic -c DefaultCluster -t Ordered")
    assert "No topic route info" in run("topicRoute -t Ordered")[0]


def test_mqlakes_broker_registers_at_the_real_name_server(cluster: Cluster, tmp_path: Path) -> None:
    async def run() -> None:
        client = RemotingClient()
        settings = BrokerSettings(
            broker_name="broker-m",
            listen_port=free_port(-2),
            namesrv_addr=cluster.names,
            store_path_root_dir=str(tmp_path),
        )

        async with Broker(settings):
            data = (await brokers(client, cluster.names))["broker-m"]
            assert data.broker_addrs == {0: settings.broker_address}
            asked = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"})
            answer = await client.call(cluster.names, asked)
            route = decode_body(TopicRouteData, answer.body)
            assert {data.broker_name for data in route.queue_datas} == {"broker-a", "broker-m"}
        # It answers before it has removed the broker.
        async with asyncio.timeout(PATIENCE):
            while "broker-m" in await brokers(client, cluster.names):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.05)
        await client.close()

    asyncio.run(run())
