"""A name server and a client that asks it."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import RegisterBrokerHeader
from mqlake.remoting.client import RemotingClient

PATIENCE = 200.0
"""Seconds to wait for an answer."""

BODY = RegisterBody(
    TopicConfigs({name: Topic(name, 4, 4) for name in ("T", "a", "c")}, DataVersion(3, 0, 9))
)


class Clock:
    now = 1_000_000

    def milliseconds(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


class Asking:
    """A client of one name server."""

    def __init__(self, server: NameServer, address: str, clock: Clock) -> None:
        self.server, self.address, self.clock = server, address, clock
        self.client = RemotingClient(connect_timeout=PATIENCE)

    async def ask(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", version: int = 513
    ) -> Command:
        asked = request(code, fields, body)
        asked.version = version
        return await self.client.call(self.address, asked, PATIENCE)

    async def json(self, code: int, fields: dict[str, str] | None = None) -> Any:
        return json.loads(bytes((await self.ask(code, fields)).body))

    async def fails(self, code: int, fields: dict[str, str] | None = None) -> tuple[int, str]:
        with pytest.raises(RemotingError) as caught:
            await self.ask(code, fields)
        return caught.value.code, caught.value.remark

    async def register(
        self, *, compressed: bool = False, silently: bool = False, **more: object
    ) -> Command:
        """Register; `silently` compressed as releases 5.x do."""
        body = BODY.compress() if compressed or silently else BODY.encode()
        values = {
            "broker_name": "a", "broker_addr": "h:1", "cluster_name": "c", "broker_id": 0,
            "ha_server_addr": "h:2", "body_crc32": zlib.crc32(body) & 0x7FFFFFFF,
        }  # fmt: skip
        header = RegisterBrokerHeader(compressed=compressed, **(values | more))  # type: ignore[arg-type]
        asked = request(RequestCode.REGISTER_BROKER, header, body)
        return await self.client.call(self.address, asked, PATIENCE)


@asynccontextmanager
async def running(**settings: object) -> AsyncIterator[Asking]:
    clock = Clock()
    server = NameServer({"listenPort": 0, **settings}, clock)
    asking = Asking(server, f"127.0.0.1:{await server.start()}", clock)
    try:
        yield asking
    finally:
        await asking.client.close()
        await server.stop()
