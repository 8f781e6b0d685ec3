"""A cluster seen through its name servers, of which some are down and some know less."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.programs.ports import free_port
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs, body_crc
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import RegisterBrokerHeader, UnregisterBrokerHeader
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

TOPICS = {name: Topic(name, 4, 4) for name in ("orders", "returns")}
BODY = encode_body(RegisterBody(TopicConfigs(TOPICS, DataVersion(3, 0, 9))))
BROKER = RegisterBrokerHeader(
    broker_name="a",
    broker_addr="127.0.0.1:1",
    cluster_name="c",
    ha_server_addr="127.0.0.1:2",
    broker_id=0,
    body_crc32=body_crc(BODY),
)


@asynccontextmanager
async def name_server(*, knows: bool) -> AsyncIterator[str]:
    server = NameServer(NamesrvSettings(bind_address="127.0.0.1", listen_port=0))
    address = f"127.0.0.1:{await server.start()}"
    # A broker whose connection is closed is forgotten.
    async with Cluster(address) as broker:
        if knows:
            await broker.ask(address, RequestCode.REGISTER_BROKER, BROKER, BODY)
        yield address
    await server.stop()


def test_the_first_name_server_that_answers_is_believed() -> None:
    async def run() -> None:
        nobody = f"127.0.0.1:{free_port()}"
        async with name_server(knows=True) as address, Cluster(f"{nobody}; {address}") as cluster:
            assert [each.name for each in await cluster.brokers()] == ["a"]
            assert [each.address for each in await cluster.brokers_of("orders")] == ["127.0.0.1:1"]
            with pytest.raises(RemotingError) as refused:
                await cluster.route("payments")
            assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST

    asyncio.run(run())


def test_a_topic_whose_brokers_have_no_master_is_an_error() -> None:
    slave = msgspec.structs.replace(BROKER, broker_id=1, broker_addr="127.0.0.1:3")
    gone = UnregisterBrokerHeader("a", BROKER.broker_addr, "c", 0)

    async def run() -> None:
        async with name_server(knows=True) as address, Cluster(address) as cluster:
            await cluster.ask(address, RequestCode.REGISTER_BROKER, slave, BODY)
            assert (await cluster.broker_of("orders")).address == BROKER.broker_addr
            await cluster.ask(address, RequestCode.UNREGISTER_BROKER, gone)
            with pytest.raises(MqlakeError, match="none of its brokers has a master"):
                await cluster.broker_of("orders")

    asyncio.run(run())


def test_a_route_is_asked_of_all_until_one_knows_it() -> None:
    async def run() -> None:
        nobody = f"127.0.0.1:{free_port()}"
        async with (
            name_server(knows=False) as first,
            name_server(knows=True) as second,
            Cluster(f"{nobody};{first};{second}") as cluster,
        ):
            route = await cluster.route_known("orders")
            assert route is not None
            assert [data.broker_name for data in route.broker_datas] == ["a"]
            assert await cluster.route_known("payments") is None

    asyncio.run(run())


def test_a_name_server_that_says_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timeouts: list[float] = []

    def say_nothing(_client: RemotingClient, address: str, _asked: Command, limit: float) -> None:
        timeouts.append(limit)
        raise RequestTimeoutError(f"{address}: no answer within {limit} s")

    async def run() -> None:
        monkeypatch.setattr(RemotingClient, "call", say_nothing)
        async with Cluster("127.0.0.1:1;127.0.0.1:2") as cluster:
            assert await cluster.route_known("orders") is None

    asyncio.run(run())
    assert timeouts == [3.0, 3.0]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["a:9876", "b:9876"], "name servers are one string, such as .*, not \\['a:9876', "),
        ("a:9876,b:9876", "'a:9876,b:9876': addresses are separated by ;"),
        ("a", "'a' is not an address of the form host:port"),
    ],
)
def test_name_servers_that_are_given_in_another_form_are_one_line(given: Any, why: str) -> None:
    async def run() -> None:
        async with Cluster(given) as cluster:
            await cluster.cluster_info()

    with pytest.raises(MqlakeError, match=f"^{why}"):
        asyncio.run(run())


def test_no_name_server_answers() -> None:
    async def run() -> None:
        async with Cluster(f"127.0.0.1:{free_port()}") as cluster:
            with pytest.raises(ConnectionFailedError):
                await cluster.cluster_info()
        async with Cluster("") as cluster:
            with pytest.raises(MqlakeError, match="no name server is given"):
                await cluster.cluster_info()

    asyncio.run(run())


def test_a_client_needs_neither_numpy_nor_numba() -> None:
    code = (
        "import sys, mqlake.client.cluster;"
        "print({'numpy', 'numba', 'pyarrow', 'pyspark'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
