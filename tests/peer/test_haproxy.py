"""Clients behind a real HAProxy: name servers and brokers know who they are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.client import ClientTls, Consumer, ConsumerSettings, Message, Producer
from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import make_namesrv_settings
from mqlake.programs.ports import free_port
from tests.broker.running import Running, next_port, running
from tests.peer.haproxy import SOURCE, HaproxyMissingError, program, proxying
from tests.tls.certificates import Authority
from tests.until import PATIENCE, until

pytestmark = pytest.mark.peer

SERVERS, PROXY = "127.0.0.1", "127.0.0.2"
FIRST = ConsumerSettings(consume_from="first", handover=0.1)


@pytest.fixture(autouse=True)
def haproxy() -> None:
    try:
        program()
    except HaproxyMissingError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("header", ["send-proxy", "send-proxy-v2"])
def test_servers_learn_the_clients_address(
    tmp_path: Path, authority: Authority, header: str, is_tls: bool
) -> None:
    settings: dict[str, object] = {"proxyProtocolAddresses": SOURCE}
    if is_tls:
        files = authority.sign("proxied", SERVERS, PROXY)
        settings |= authority.settings()
        settings |= {"tls.server.certPath": files.cert, "tls.server.keyPath": files.key}
    tls = ClientTls(ca=authority.ca) if is_tls else None
    port, listened = next_port(), free_port()

    async def use(server: NameServer, broker: Running, name_server: str) -> None:
        """Send a message through the proxy, and receive it."""
        async with Cluster(name_server, tls=tls) as cluster:
            await until(lambda: is_registered(cluster))
        async with (
            Producer(name_server, timeout=PATIENCE, tls=tls) as producer,
            Consumer(name_server, "behind", "TBW102", settings=FIRST, tls=tls) as consumer,
        ):
            await producer.send(Message(topic="TBW102", body=b"through a proxy"))
            message = await consumer.receive(PATIENCE)
            assert message is not None
            assert await message.ack()
            for peers in (broker.broker.peers, server.peers):
                hosts = {peer.address.partition(":")[0] for peer in peers if not peer.is_relayed}
                assert hosts - {SOURCE} == {SERVERS}  # HAProxy checks servers in its own name.
            assert message.born_host in {peer.address for peer in broker.broker.peers}

    async def run() -> None:
        server = NameServer(make_namesrv_settings({**settings, "listenPort": 0}))
        own = await server.start()
        names = f"{SERVERS}:{own}"
        for name in ("haproxy", "store"):
            (tmp_path / name).mkdir()
        servers = {(PROXY, listened): (SERVERS, own), (PROXY, port): (SERVERS, port)}
        more = {"namesrvAddr": names, "listenPort": port, "brokerIP1": PROXY}
        try:
            async with (
                running(tmp_path / "store", bindAddress=SERVERS, **more, **settings) as broker,
                proxying(tmp_path / "haproxy", servers, header),
            ):
                await use(server, broker, f"{PROXY}:{listened}")
        finally:
            await server.stop()

    asyncio.run(run())


async def is_registered(cluster: Cluster) -> bool:
    try:
        await cluster.brokers()
    except MqlakeError:
        return False
    return True
