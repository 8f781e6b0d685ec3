"""Brokers of one name whose slaves may act for the master, and their name server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.errors import RemotingError
from tests.broker.running import PATIENCE, Running, running
from tests.broker.slave.pairs import SLAVE, registered
from tests.namesrv.asking import Asking, Clock

ACTS: Final[dict[str, object]] = {
    "enableSlaveActingMaster": True,
    "brokerHeartbeatInterval": 20,
    "syncBrokerMemberGroupPeriod": 20,
    "flushConsumerOffsetInterval": 20,
}


class Group:
    """The brokers of a name."""

    def __init__(self, path: Path, names: Asking) -> None:
        self._path, self.names = path, names

    def master(self, **settings: object) -> AbstractAsyncContextManager[Running]:
        """Run the master; its store is the one that it had before."""
        known: dict[str, object] = {"namesrvAddr": self.names.address}
        return running(self._path / "master", **(known | ACTS | settings))

    def slave(self, broker_id: int = 1, **settings: object) -> AbstractAsyncContextManager[Running]:
        """Run a slave."""
        known: dict[str, object] = {**SLAVE, "namesrvAddr": self.names.address}
        known |= ACTS | {"brokerId": broker_id} | settings
        return running(self._path / f"slave{broker_id}", **known)

    async def route(self, topic: str) -> tuple[dict[int, str], int]:
        """Return the addresses of the name by id as clients see them, and a topic's permission.

        Wait until the topic is registered.
        """
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(RemotingError):
                    asked = {"topic": topic}
                    answer = await self.names.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, asked)
                    break
                await asyncio.sleep(0.01)
        route = decode_answer(TopicRouteData, answer.body)
        return route.broker_datas[0].broker_addrs, route.queue_datas[0].perm


@asynccontextmanager
async def group(path: Path, **settings: object) -> AsyncIterator[Group]:
    """Run a name server under which slaves may act."""
    known: dict[str, object] = {"listenPort": 0, "supportActingMaster": True}
    clock = Clock()
    async with NameServer(known | settings, clock) as server:
        names = Asking(server, f"127.0.0.1:{server.port}", clock)
        try:
            with registered():
                yield Group(path, names)
        finally:
            await names.client.close()
