"""A broker that is registered with a name server and never answers."""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.namesrv import RegisterBrokerHeader
from mqlake.remoting.client import RemotingClient
from tests.accepted import Accepted
from tests.until import PATIENCE

NAME = "broker-b"
_VERSIONS = itertools.count(1)
"""A name server refuses a registration that is not newer than the one it knows."""


@asynccontextmanager
async def silent_broker(
    name_server: str, *topics: str, is_gone: bool = False
) -> AsyncIterator[str]:
    """Register a broker of these topics; yield its address.

    Args:
        is_gone: whether it refuses connections; otherwise it accepts them.
    """

    async def hear(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass

    accepted = Accepted(hear)
    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    if is_gone:
        server.close()
        await server.wait_closed()
    client = RemotingClient(connect_timeout=PATIENCE)
    configs = {name: Topic(name, 1, 1) for name in topics}
    body = RegisterBody(TopicConfigs(configs, DataVersion(1, next(_VERSIONS), 1))).encode()
    header = RegisterBrokerHeader(
        broker_name=NAME,
        broker_addr=address,
        cluster_name="DefaultCluster",
        broker_id=0,
        ha_server_addr="",
        body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        compressed=False,
    )
    try:
        await client.call(name_server, request(RequestCode.REGISTER_BROKER, header, body), PATIENCE)
        yield address
    finally:
        await client.close()  # The name server forgets the broker.
        server.close()
        await accepted.end()
