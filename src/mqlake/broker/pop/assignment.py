"""QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE.

Upstream: `QueryAssignmentProcessor`, `MessageRequestModeManager`.
"""

from __future__ import annotations

import msgspec

from mqlake.broker.parts import Parts
from mqlake.broker.pop.kept_table import KeptTable
from mqlake.formats import fastjson
from mqlake.formats.config import MessageRequestModes
from mqlake.formats.config.message_request_mode import MessageRequestMode
from mqlake.formats.config.topics import PERM_READ
from mqlake.protocol.bodies.heartbeat import BROADCASTING
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import Assignment, AssignmentQuery, Assignments, RequestMode
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.naming import RETRY_PREFIX
from mqlake.protocol.strategies import STRATEGIES, share
from mqlake.remoting.connection import Peer

POP = "POP"
PULL = "PULL"

_KNOWN_FOR = 10.0
"""Seconds after which a name server is asked again."""


class AssignmentRequests:
    """Says which queues are a consumer's, and whether it pulls or pops them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._file = KeptTable[MessageRequestModes](parts, MessageRequestModes, self._table)
        self._modes = self._file.found.message_request_mode_map
        self._routes = _Routes(parts)

    async def query(self, _peer: Peer, request: Command) -> Command:
        """Answer which queues of a topic are a consumer's."""
        asked = decode_body(AssignmentQuery, request.body)
        mode = self._mode(asked.topic, asked.consumer_group)
        queues = self._share(asked, mode, await self._queues(asked.topic))
        assignments = None
        if queues is not None:
            assignments = [Assignment(queue, mode.mode) for queue in dict.fromkeys(queues)]
        return response(request, body=encode_body(Assignments(assignments)))

    def set_mode(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        """Note whether a group is to pull or to pop a topic."""
        wanted = decode_body(RequestMode, request.body)
        topic, group = wanted.topic, wanted.consumer_group
        if topic.startswith(RETRY_PREFIX):
            reason = "retry topic is not allowed to set mode"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        if topic not in self._parts.topics:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        if self._parts.groups.get_or_make(group) is None:
            reason = "subscription group does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        mode = MessageRequestMode(topic, group, wanted.mode, wanted.pop_share_queue_num)
        self._modes.setdefault(topic, {})[group] = mode
        self._file.change()
        return response(request)

    def all_modes(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        """Answer all modes that were set."""
        table = msgspec.to_builtins(self._table())
        return response(request, body=fastjson.dumps(table, pretty=False).encode())

    def _table(self) -> MessageRequestModes:
        return MessageRequestModes(self._modes)

    def _mode(self, topic: str, group: str) -> MessageRequestMode:
        found = self._modes.get(topic, {}).get(group)
        if found is not None:
            return found
        settings = self._parts.settings
        is_pop = settings.default_message_request_mode == POP and not topic.startswith(RETRY_PREFIX)
        if not is_pop:
            return MessageRequestMode(topic, group, PULL)
        return MessageRequestMode(topic, group, POP, settings.default_pop_share_queue_num)

    def _share(
        self, asked: AssignmentQuery, mode: MessageRequestMode, queues: list[MessageQueue] | None
    ) -> list[MessageQueue] | None:
        """Return a consumer's queues; None where that cannot be said: it goes on as before."""
        if queues is None or asked.message_model == BROADCASTING:
            return queues
        members = self._parts.clients.consumers.get(asked.consumer_group)
        strategy = STRATEGIES.get(asked.strategy_name)
        if members is None or strategy is None:
            return None
        clients = sorted(members.client_ids)
        if mode.mode == POP:
            others = mode.pop_share_queue_num
            return share(strategy, asked.client_id, queues, clients, others)
        return strategy(asked.client_id, queues, clients)

    async def _queues(self, name: str) -> list[MessageQueue] | None:
        """Return all queues of a topic, of this broker and of others that have it; in order."""
        route = await self._routes.of(name)
        if route is not None:
            return sorted(_of_route(name, route), key=_place)
        topic = self._parts.topics.get(name)
        if topic is None or not topic.perm & PERM_READ:
            return None
        broker = self._parts.settings.broker_name
        return [MessageQueue(name, broker, number) for number in range(topic.read_queue_nums)]


class _Routes:
    """Where topics are, as name servers said lately."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._now = parts.store.core.clock.monotonic
        self._known: dict[str, tuple[float, TopicRouteData | None]] = {}

    async def of(self, topic: str) -> TopicRouteData | None:
        until, route = self._known.get(topic, (0.0, None))
        if self._now() < until:
            return route
        route = await self._parts.names.route(topic)
        now = self._now()
        self._known = {name: known for name, known in self._known.items() if known[0] > now}
        self._known[topic] = now + _KNOWN_FOR, route
        return route


def _of_route(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    return [
        MessageQueue(topic, data.broker_name, number)
        for data in route.queue_datas
        if data.perm & PERM_READ
        for number in range(data.read_queue_nums)
    ]


def _place(queue: MessageQueue) -> tuple[str, int]:
    return queue.broker_name, queue.queue_id
