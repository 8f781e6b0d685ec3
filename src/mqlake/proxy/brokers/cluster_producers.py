"""The proxy as a producer of all topics of its clients, so that brokers ask it about transactions.

Upstream: `ClusterTransactionService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from mqlake.client.cluster import MASTER
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.heartbeat import Heartbeat, ProducerData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.proxy.brokers.cluster_routes import ClusterRoutes
from mqlake.remoting.client import RemotingClient

PERIOD: Final = 20.0
"""Seconds between heartbeats."""
_PATIENCE: Final = 3.0

_log: Final = logging.getLogger("mqlake.proxy")


class ClusterProducers:
    """Sends heartbeats to the brokers of the topics that clients publish.

    Args:
        client_id: the name of the proxy at brokers.
        client: its connections, over which brokers ask.
    """

    def __init__(self, client_id: str, client: RemotingClient, routes: ClusterRoutes) -> None:
        self._client_id, self._client, self._routes = client_id, client, routes
        self._groups: dict[str, set[str]] = {}

    async def add(self, client_id: str, groups: Iterable[str]) -> None:
        """Note that a client is in producer groups, which have the names of their topics."""
        new = [group for group in groups if group not in self._groups]
        for group in groups:
            self._groups.setdefault(group, set()).add(client_id)
        if new:
            await self.beat(new)

    def remove(self, client_id: str, groups: Iterable[str]) -> None:
        """Note that a client has left; brokers forget a group that is in no heartbeat any more."""
        for group in groups:
            members = self._groups.get(group)
            if members is not None:
                members.discard(client_id)
                if not members:
                    del self._groups[group]

    async def beat(self, topics: Iterable[str] | None = None) -> None:
        """Send heartbeats.

        Args:
            topics: only to the brokers of these topics.
        """
        groups: dict[str, list[str]] = {}
        chosen = set(self._groups if topics is None else topics)
        addresses: set[str] = set()
        for topic in list(self._groups):
            for address in await self._brokers(topic):
                groups.setdefault(address, []).append(topic)
                if topic in chosen:
                    addresses.add(address)
        await asyncio.gather(*(self._beat(each, groups[each]) for each in sorted(addresses)))

    async def _brokers(self, topic: str) -> list[str]:
        try:
            route = await self._routes.of(topic)
        except MqlakeError as error:
            _log.debug("topic %s: no heartbeat to its brokers: %s", topic, error)
            return []
        masters = (data.broker_addrs.get(MASTER) for data in route.broker_datas)
        return [address for address in masters if address is not None]

    async def _beat(self, address: str, groups: list[str]) -> None:
        beat = Heartbeat(
            client_id=self._client_id,
            producer_data_set=[ProducerData(group) for group in sorted(groups)],
        )
        command = request(RequestCode.HEART_BEAT, body=encode_body(beat))
        try:
            await self._client.call(address, command, _PATIENCE)
        except MqlakeError as error:
            _log.warning("no heartbeat to %s: %s", address, error)
