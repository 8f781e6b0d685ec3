"""A name server as a program, with its metrics."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from typing import Self

from mqlake.metrics.publishing import NOWHERE, publish_as_set
from mqlake.namesrv.metrics import ObservedNameServer
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings


class NameServerProgram:
    """A name server that publishes its metrics as its settings say.

    Attributes:
        names: the name server.
    """

    def __init__(self, settings: NamesrvSettings) -> None:
        self.names = NameServer(settings)
        self._published = NOWHERE
        self._serving: NameServer | None = None

    async def __aenter__(self) -> Self:
        settings = self.names.settings
        async with AsyncExitStack() as undo:
            await undo.enter_async_context(self.names)
            self._serving = self.names
            # The address may be that of all interfaces, and the port any free one.
            name = f"{socket.gethostname()}:{self.names.port}"
            observed = ObservedNameServer(settings, name, lambda: self._serving)
            self._published = await publish_as_set(
                settings, settings.bind_address, observed, undo, "mqlake-namesrv"
            )
            undo.push_async_callback(self._stop_publishing)
            self._undo = undo.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._undo.aclose()

    async def _stop_publishing(self) -> None:
        await self._published.finish()
        self._serving = None
