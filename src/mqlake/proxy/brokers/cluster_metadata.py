"""Settings of topics and groups that the service needs, as brokers have them.

Upstream: `ClusterMetadataService`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from mqlake.client.cluster import MASTER, Cluster
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import MESSAGE_TYPE, Topic
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import GroupNameHeader, TopicNameHeader
from mqlake.proxy.brokers.cluster_routes import ClusterRoutes

_KEPT: Final = 20.0
"""Seconds for which settings are used before they are requested again."""
_UNKNOWN: Final = 1.0
"""Seconds for which a group that does not exist is not requested again."""
_MOST: Final = 20_000

V = TypeVar("V")


class ClusterMetadata:
    """The settings of topics and groups.

    Args:
        cluster: asks brokers, as the proxy itself.
    """

    def __init__(self, cluster: Cluster, routes: ClusterRoutes) -> None:
        self._cluster, self._routes = cluster, routes
        self._types = _RecentValues(self._message_type)
        self._groups = _RecentValues(self._group)

    async def message_type(self, topic: str) -> str:
        """Return the attribute `message.type` of a topic; "" if it has none."""
        return await self._types.get(topic)

    async def group(self, name: str) -> SubscriptionGroup | None:
        """Return the settings of a consumer group; None if no broker knows it."""
        return await self._groups.get(name)

    async def _message_type(self, topic: str) -> str:
        route = await self._routes.of(topic)
        addresses = [
            data.broker_addrs[MASTER] for data in route.broker_datas if MASTER in data.broker_addrs
        ]
        failure: MqlakeError | None = None
        for address in addresses:
            try:
                header = TopicNameHeader(topic=topic)
                answer = await self._cluster.ask(address, RequestCode.GET_TOPIC_CONFIG, header)
                return decode_answer(Topic, answer.body).attributes.get(MESSAGE_TYPE, "")
            except MqlakeError as error:
                failure = error
        if failure is not None:
            raise failure
        return ""

    async def _group(self, name: str) -> SubscriptionGroup | None:
        failure: MqlakeError | None = None
        code, header = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupNameHeader(group=name)
        for address in await self._routes.masters():
            try:
                answer = await self._cluster.ask(address, code, header)
                return decode_answer(SubscriptionGroup, answer.body)
            except RemotingError as error:
                if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                    failure = error
            except MqlakeError as error:
                failure = error
        if failure is not None:
            raise failure
        return None


class _RecentValues(Generic[V]):
    """Values by name, which are requested again after a while."""

    def __init__(self, request: Callable[[str], Awaitable[V]]) -> None:
        self._request, self._now = request, asyncio.get_running_loop().time
        self._known: dict[str, tuple[float, V]] = {}

    async def get(self, name: str) -> V:
        """Return a value; the last known one if brokers do not answer."""
        known = self._known.get(name)
        if known is not None and self._now() < known[0]:
            return known[1]
        try:
            found = await self._request(name)
        except MqlakeError as error:
            is_refused = isinstance(error, RemotingError)
            if known is None or is_refused:
                raise
            found = known[1]
        self._known.pop(name, None)
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        kept = _UNKNOWN if found is None else _KEPT
        self._known[name] = self._now() + kept, found
        return found
