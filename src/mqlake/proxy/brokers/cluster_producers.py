"""The proxy as a producer of all topics of its clients, so that brokers ask it about transactions.

Upstream: `ClusterTransactionService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice
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
_AT_ONCE: Final = 16
"""Routes that are requested at a time."""

_log: Final = logging.getLogger("mqlake.proxy")


class ClusterProducers:
    """Sends heartbeats to the brokers of the topics that clients publish.

    Args:
        client_id: the name of the proxy at brokers.
        client: its connections, over which brokers ask.
    """

    def __init__(self, client_id: str, client: RemotingClient, routes: ClusterRoutes) -> None:
        self._client_id, self._client, self._routes = client_id, client, routes
        self._groups: dict[str, int] = {}
        self._of_client: dict[str, set[str]] = {}

    @property
    def groups(self) -> frozenset[str]:
        """Return the groups that clients are in."""
        return frozenset(self._groups)

    def put(self, client_id: str, groups: set[str]) -> list[str]:
        """Note in which producer groups a client is, which have the names of their topics; brokers
        forget a group that is in no heartbeat any more.

        Returns:
            The groups that no client was in before.
        """
        old = self._of_client.pop(client_id, set[str]())
        if groups:
            self._of_client[client_id] = groups
        for group in old - groups:
            self._groups[group] -= 1
            if not self._groups[group]:
                del self._groups[group]
        added = groups - old
        new = [group for group in added if group not in self._groups]
        for group in added:
            self._groups[group] = self._groups.get(group, 0) + 1
        return new

    async def beat(self, topics: Iterable[str] | None = None) -> None:
        """Send heartbeats.

        Args:
            topics: only about these topics.
        """
        groups: dict[str, list[str]] = {}
        chosen = iter(list(self._groups) if topics is None else topics)
        while some := list(islice(chosen, _AT_ONCE)):
            found = await asyncio.gather(*map(self._brokers, some))
            for topic, addresses in zip(some, found, strict=True):
                for address in addresses:
                    groups.setdefault(address, []).append(topic)
        await asyncio.gather(*(self._beat(each, groups[each]) for each in sorted(groups)))

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
