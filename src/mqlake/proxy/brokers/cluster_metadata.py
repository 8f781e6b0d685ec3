"""Settings of topics and groups that the service needs, as brokers have them.

Upstream: `ClusterMetadataService`.
"""

from __future__ import annotations

from mqlake.client.cluster import MASTER, Cluster
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import MESSAGE_TYPE, Topic
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import GroupNameHeader, TopicNameHeader
from mqlake.proxy.brokers.cluster_routes import ClusterRoutes
from mqlake.proxy.brokers.recent_values import RecentValues


class ClusterMetadata:
    """The settings of topics and groups.

    Args:
        cluster: asks brokers, as the proxy itself.
    """

    def __init__(self, cluster: Cluster, routes: ClusterRoutes) -> None:
        self._cluster, self._routes = cluster, routes
        self._types = RecentValues(self._message_type)
        self._groups = RecentValues(self._group)

    async def message_type(self, topic: str) -> str:
        """Return the attribute `message.type` of a topic; "" if it has none."""
        return await self._types.get(topic) or ""

    async def group(self, name: str) -> SubscriptionGroup | None:
        """Return the settings of a consumer group; None if no broker knows it."""
        return await self._groups.get(name)

    async def close(self) -> None:
        """End what is running."""
        await self._types.close()
        await self._groups.close()

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
