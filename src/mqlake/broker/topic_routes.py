"""GET_ROUTEINFO_BY_TOPIC: the route of a topic as far as it is on this broker.

RocketMQ's clients ask name servers for routes. The gRPC service of a broker's own process asks the
broker, as RocketMQ's proxy does in local mode (upstream: `LocalTopicRouteService`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route

_ANY_CLIENT = Permission.PUBLISH | Permission.SUBSCRIBE | Permission.READ


class TopicRoutes:
    """Answers which queues of a topic this broker has."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._topics, self._live = state.topics, runtime.live

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (Route(RequestCode.GET_ROUTEINFO_BY_TOPIC, self._route, _ANY_CLIENT),)

    def _route(self, _peer: Peer, request: Command) -> Command:
        name, settings = request.header(GetRouteInfoHeader).topic, self._live.now
        topic = self._topics.get(name)
        if topic is None:
            reason = f"No topic route info on this broker for the topic: {name}"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        queues = QueueData(
            settings.broker_name,
            topic.read_queue_nums,
            topic.write_queue_nums,
            topic.perm & settings.broker_permission,
            topic.topic_sys_flag,
        )
        addresses = {settings.broker_id: settings.broker_address}
        broker = BrokerData(settings.broker_cluster_name, settings.broker_name, addresses)
        return response(request, body=encode_body(TopicRouteData([queues], [broker])))
