"""Routes and lists of topics, and topics that are registered or deleted one by one."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final

from msgspec import UNSET

from mqlake.namesrv.kv_config import ORDERED_TOPICS
from mqlake.namesrv.routes import LONGEST_TOPIC
from mqlake.namesrv.state import NameServerState
from mqlake.namesrv.topic_table import UNIT, UNIT_SUBSCRIPTION
from mqlake.protocol.bodies.route import TopicList, TopicRouteData
from mqlake.protocol.body import decode_body, encode_body, encode_unquoted
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import (
    DeleteTopicInNamesrvHeader,
    GetRouteInfoHeader,
    GetTopicsByClusterHeader,
    TopicHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once if it is short."""

MAX_ROUTE: Final = 1 << 20
MAX_LENIENT: Final = 16_384
"""Maximum length in bytes of a body that may be other than strict JSON."""
V4_9_4: Final = 401
"""The version from which clients read integer keys in quotes."""
_ANY_CLIENT: Final = Permission.PUBLISH | Permission.SUBSCRIBE | Permission.READ


_PIECE = 1000
"""Names of topics that are encoded in a single call."""


class TopicRequests:
    """Serves requests about topics."""

    def __init__(self, state: NameServerState) -> None:
        self._state = state
        self._routes = state.routes
        self._topics = state.routes.topics

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.GET_ROUTEINFO_BY_TOPIC, self._route, _ANY_CLIENT),
            Route(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, self._all, Permission.LIST),
            Route(RequestCode.GET_TOPICS_BY_CLUSTER, self._by_cluster, Permission.LIST),
            Route(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, self._system, Permission.LIST),
            Route(RequestCode.GET_UNIT_TOPIC_LIST, self._unit, Permission.LIST),
            Route(
                RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, self._unit_subscription, Permission.LIST
            ),
            Route(
                RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
                self._unit_subscription_only,
                Permission.LIST,
            ),
            Route(RequestCode.REGISTER_TOPIC_IN_NAMESRV, self._register, Permission.UPDATE),
            Route(RequestCode.DELETE_TOPIC_IN_NAMESRV, self._delete, Permission.UPDATE),
        )

    def _route(self, _: Peer, request: Command) -> Command:
        header, settings = request.header(GetRouteInfoHeader), self._state.settings
        age = self._state.clock.milliseconds() - self._state.started
        if settings.need_wait_for_service and age < settings.wait_seconds_for_service * 1000:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "name server not ready")
        route = self._routes.find(header.topic, settings)
        if route is None:
            raise RemotingError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"No topic route info in name server for the topic: {header.topic}",
            )
        if settings.order_message_enable:
            route.order_topic_conf = self._state.kv.get(ORDERED_TOPICS, header.topic) or UNSET
        quoted = request.version >= V4_9_4 or header.accept_standard_json_only
        return response(request, body=encode_body(route) if quoted else encode_unquoted(route))

    def _all(self, peer: Peer, request: Command) -> Later:
        if not self._state.settings.enable_all_topic_list:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "disable")

        return self._state.slices.serve(peer, _list(request, self._topics.queues))

    def _by_cluster(self, peer: Peer, request: Command) -> Later:
        self._check_lists()
        cluster = request.header(GetTopicsByClusterHeader).cluster
        names = self._routes.brokers.clusters.get(cluster, set())
        return self._chosen(peer, request, self._topics.on(names))

    def _chosen(self, peer: Peer, request: Command, topics: Job[list[str]]) -> Later:
        def answer() -> Job[Command]:
            return (yield from _list(request, (yield from topics)))

        return self._state.slices.serve(peer, answer())

    def _system(self, _: Peer, request: Command) -> Command:
        """Answer the names that brokers use as topics: clusters and broker names."""
        brokers = self._routes.brokers
        names: list[str] = []
        for cluster, on in brokers.clusters.items():
            names += cluster, *sorted(on)
        addresses = (a for data in brokers.by_name.values() for a in data.broker_addrs.values())
        return response(request, body=encode_body(TopicList(names, next(addresses, UNSET))))

    def _unit(self, peer: Peer, request: Command) -> Later:
        self._check_lists()
        return self._chosen(peer, request, self._topics.flagged(UNIT))

    def _unit_subscription(self, peer: Peer, request: Command) -> Later:
        self._check_lists()
        return self._chosen(peer, request, self._topics.flagged(UNIT_SUBSCRIPTION))

    def _unit_subscription_only(self, peer: Peer, request: Command) -> Later:
        self._check_lists()
        return self._chosen(peer, request, self._topics.flagged(UNIT_SUBSCRIPTION, UNIT))

    def _register(self, peer: Peer, request: Command) -> Command:
        topic = request.header(TopicHeader).topic
        if request.body:
            if len(topic) > LONGEST_TOPIC or len(request.body) > MAX_ROUTE:
                reason = (
                    f"a topic's name may have at most {LONGEST_TOPIC} characters, a route "
                    f"{MAX_ROUTE} bytes"
                )
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
            route = decode_body(TopicRouteData, request.body, MAX_LENIENT)
            more = sum(not self._topics.has(topic, each.broker_name) for each in route.queue_datas)
            self._routes.check_room(f"topic {topic}", more, peer, self._state.settings)
            self._routes.register_topic(topic, route.queue_datas, peer)
        return response(request)

    def _delete(self, _: Peer, request: Command) -> Command:
        header = request.header(DeleteTopicInNamesrvHeader)
        if header.cluster_name:
            for name in self._routes.brokers.clusters.get(header.cluster_name, set()):
                self._topics.forget(header.topic, name)
        else:
            self._topics.delete(header.topic)
        return response(request)

    def _check_lists(self) -> None:
        if not self._state.settings.enable_topic_list:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "disable")


def _list(request: Command, topics: Iterable[str]) -> Job[Command]:
    names, pieces = list(topics), list[bytes]()
    for at in range(0, len(names), _PIECE):
        pieces.append(encode_body(names[at : at + _PIECE])[1:-1])
        yield
    return response(request, body=b"".join((b'{"topicList":[', b",".join(pieces), b"]}")))
