"""A broker: one store, the request families, two ports, the name servers.

Upstream: `BrokerController`. Everything runs on one event loop; what waits for the disk does so in
the store's own threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

from mqlake.broker.parts import Parts
from mqlake.broker.settings import FAST_PORT_DISTANCE, BrokerSettings
from mqlake.remoting.server import Handler, RemotingServer
from mqlake.store.message_store import MessageStore


class Family(Protocol):
    """What answers one family of requests; made with a broker's `Parts`."""

    def __init__(self, parts: Parts) -> None: ...

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        ...


FAMILIES: tuple[type[Family], ...] = ()
"""Every family that a broker has, in the order in which they are made."""


class Broker:
    """A broker on one store directory. `async with Broker(settings) as broker:` runs it.

    Attributes:
        parts: what the request families share; there while it runs.
    """

    parts: Parts

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Open the store, listen, and register.

        Raises:
            StoreError: the store cannot be opened.
            OSError: a port cannot be listened on.
        """
        settings = self.settings
        store = MessageStore.open(settings.store_path, settings)
        async with store:
            self.parts = Parts(settings, store)
            handlers: dict[int, Handler] = {}
            for family in FAMILIES:
                handlers.update(family(self.parts).handlers())
            self._server = RemotingServer(handlers)
            address, port = settings.listen_address, settings.listen_port
            await self._server.start(address, port)
            await self._server.start(address, port - FAST_PORT_DISTANCE)

    async def stop(self) -> None:
        """Answer nobody any more, and leave the store in good order.

        Raises:
            DiskError: the disk failed; the next start recovers.
        """
        for function in self.parts.on_stop:
            function()
        self.parts.repeating.stop()
        await self._server.stop()
        await self.parts.store.close()
