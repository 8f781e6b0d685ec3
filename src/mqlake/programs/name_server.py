"""A name server as a program, with its metrics."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Self

from mqlake.metrics.exporting.options import publishing
from mqlake.metrics.publishing import Published, publish
from mqlake.namesrv.metrics import ObservedNameServer
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings


class NameServerProgram:
    """A name server that publishes its metrics as its settings say.

    Attributes:
        names: the name server.
        published: how it publishes metrics; None if it does not, or before it has started.
    """

    def __init__(self, settings: NamesrvSettings) -> None:
        self.names = NameServer(settings)
        self.published: Published | None = None
        self._serving: NameServer | None = None

    async def __aenter__(self) -> Self:
        settings = self.names.settings
        async with AsyncExitStack() as undo:
            if (how := publishing(settings, settings.bind_address)) is not None:
                name = f"{settings.bind_address}:{settings.listen_port}"
                observed = ObservedNameServer(settings, name, lambda: self._serving)
                self.published = await publish(how, observed, undo, "mqlake-namesrv")
            await undo.enter_async_context(self.names)
            self._serving = self.names
            self._undo = undo.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self.published is not None:
            await self.published.finish()
        self._serving = None
        await self._undo.aclose()
