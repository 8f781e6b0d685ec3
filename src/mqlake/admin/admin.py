"""Requests of an administrator (upstream: `DefaultMQAdminExt`)."""

from __future__ import annotations

from mqlake.admin.each_broker import change_each
from mqlake.client.cluster import Cluster, MasterBroker
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.header import Header


class Admin(Cluster):
    """Manages a cluster. `async with Admin(name_servers) as admin:` closes it."""

    async def tell_names(self, code: RequestCode, header: Header) -> list[Command]:
        """Return the answer of every name server. They are asked at the same time.

        Raises:
            PartialChangeError: some name servers answered, and others refused or did not.
            MqlakeError: no name server did what it was asked.
        """
        servers = [MasterBroker("", "", address) for address in self.name_servers]
        answers = await change_each(servers, lambda each: self.ask(each.address, code, header))
        return [answer for _, answer in answers]
