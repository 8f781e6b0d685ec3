"""Requests of an administrator (upstream: `DefaultMQAdminExt`)."""

from __future__ import annotations

from mqlake.client.cluster import Cluster
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body, Command
from mqlake.protocol.header import Header


class Admin(Cluster):
    """Manages a cluster. `async with Admin(name_servers) as admin:` closes it."""

    async def tell_names(
        self, code: RequestCode, header: Header, body: Body = b""
    ) -> list[Command]:
        """Return the answer of every name server.

        Raises:
            MqlakeError: a name server refuses, or does not answer.
        """
        return [await self.ask(address, code, header, body) for address in self.name_servers]
