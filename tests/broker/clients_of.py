"""A client that a broker knows, and that answers its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData, Subscription
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request, response
from mqlake.protocol.header import Header
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer
from tests.broker.running import PATIENCE, Running


class KnownClient:
    """A producer and consumer that has sent a heartbeat.

    Attributes:
        asked: what the broker asked, of the codes that it was to answer.
    """

    def __init__(self, broker: Running, codes: Mapping[Any, int]) -> None:
        self._broker, self._codes = broker, codes
        self.asked: asyncio.Queue[Command] = asyncio.Queue()
        self._client = RemotingClient(dict.fromkeys(codes, self._answer), connect_timeout=PATIENCE)

    def _answer(self, _peer: Peer, asked: Command) -> Command | Coroutine[Any, Any, Command]:
        self.asked.put_nowait(asked)
        return response(asked, self._codes[asked.code])

    async def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Return the response to a request, whatever its code."""
        asked = request(code, header, body)
        return await self._client.request(self._broker.address, asked, PATIENCE)

    async def beat(self, client_id: str, producers: str = "", consumers: str = "") -> None:
        """Say who this is."""
        beat = Heartbeat(client_id)
        if producers:
            beat.producer_data_set = [ProducerData(producers)]
        if consumers:
            subscriptions = [Subscription("Orders", "*")]
            beat.consumer_data_set = [ConsumerData(consumers, subscription_data_set=subscriptions)]
        answer = await self.ask(RequestCode.HEART_BEAT, None, encode_body(beat))
        assert answer.code == ResponseCode.SUCCESS

    async def next(self) -> Command:
        """Return what the broker asks next."""
        return await asyncio.wait_for(self.asked.get(), PATIENCE)

    async def close(self) -> None:
        """Leave."""
        await self._client.close()


@asynccontextmanager
async def known_client(
    broker: Running,
    codes: Mapping[Any, int],
    client_id: str,
    producers: str = "p",
    groups: str = "",
) -> AsyncIterator[KnownClient]:
    """Let a client be known to a broker; it answers requests of these codes, so."""
    client = KnownClient(broker, codes)
    try:
        await client.beat(client_id, producers, groups)
        yield client
    finally:
        await client.close()
