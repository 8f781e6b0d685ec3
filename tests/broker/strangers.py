"""Clients of other addresses of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mqlake.remoting.client import RemotingClient, split_address
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.request_router import RequestRouter
from mqlake.remoting.shared import Shared
from tests.broker.running import PATIENCE, Running


class ClientFrom(RemotingClient):
    """A client whose connections come from one address."""

    def __init__(self, host: str) -> None:
        super().__init__(connect_timeout=PATIENCE)
        self._host, self._opened_peers = host, dict[str, Peer]()

    async def connect(self, address: str) -> Peer:
        found = self._opened_peers.get(address)
        if found is None or found.is_closed:
            loop, limits = asyncio.get_running_loop(), Limits(idle=0)
            shared, served = Shared(loop, limits, is_server=False), RequestRouter([], limits)
            _, found = await loop.create_connection(
                lambda: Peer(served, shared),
                *split_address(address),
                local_addr=(self._host, 0),
            )
            self._opened_peers[address] = found
        return found

    async def close(self) -> None:
        for peer in self._opened_peers.values():
            peer.close()
        await super().close()


@asynccontextmanager
async def from_address(broker: Running, host: str) -> AsyncIterator[Running]:
    """Connect to a broker from another address of this machine."""
    found = Running(broker.broker)
    await found.client.close()
    found.client = ClientFrom(host)
    try:
        yield found
    finally:
        await found.client.close()
