"""QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE.

Upstream: `QueryAssignmentProcessor`, `MessageRequestModeManager`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from mqlake.broker.pop.kept_table import KeptTable, Members
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config import MessageRequestModes
from mqlake.formats.config.message_request_mode import MessageRequestMode
from mqlake.formats.config.topics import PERM_READ
from mqlake.protocol.bodies.heartbeat import BROADCASTING
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import (
    POP,
    PULL,
    Assignment,
    AssignmentQuery,
    Assignments,
    RequestMode,
)
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body, Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.slaves import TablePartHeader
from mqlake.protocol.naming import RETRY_PREFIX, topic_fault
from mqlake.protocol.strategies import STRATEGIES, share
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer
from mqlake.remoting.slices import Job
from mqlake.replication.table_answers import read_members, request_modes
from mqlake.replication.table_parts import requested

_MODE = 100
"""Approximate bytes of the text of a mode, without its names."""
_KNOWN_FOR = 10.0
"""Seconds after which a name server is asked again."""
_MOST_KNOWN = 1000
"""Maximum number of cached routes; the oldest one is dropped first."""


class AssignmentRequests:
    """Decides which queues a consumer owns, and whether it pulls or pops them."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._file = KeptTable[MessageRequestModes](
            state, runtime, MessageRequestModes, self._gather
        )
        self._modes = self._file.found.message_request_mode_map
        self._count = sum(map(len, self._modes.values()))
        self._routes = _RouteCache(state)
        state.followed[RequestCode.GET_ALL_MESSAGE_REQUEST_MODE] = self._follow

    async def query(self, _peer: Peer, request: Command) -> Command:
        """Answer which queues of a topic a consumer owns."""
        asked = decode_body(AssignmentQuery, request.body)
        mode = self._mode(asked.topic, asked.consumer_group)
        queues = self._share(asked, mode, await self._queues(asked.topic))
        assignments = None
        if queues is not None:
            assignments = [Assignment(queue, mode.mode) for queue in dict.fromkeys(queues)]
        return response(request, body=encode_body(Assignments(assignments)))

    def set_mode(self, peer: Peer, request: Command) -> Command:
        """Set whether a group pulls or pops a topic."""
        wanted = decode_body(RequestMode, request.body)
        topic, group = wanted.topic, wanted.consumer_group
        if topic.startswith(RETRY_PREFIX):
            reason = "retry topic is not allowed to set mode"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        if topic not in self._state.topics:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        if self._state.groups.get_or_make(group, peer.address) is None:
            reason = "subscription group does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if group not in self._modes.get(topic, ()):
            self._check_room(topic, group)
            self._count += 1
        mode = MessageRequestMode(topic, group, wanted.mode, wanted.pop_share_queue_num)
        self._modes.setdefault(topic, {})[group] = mode
        self._file.change()
        return response(request)

    def _check_room(self, topic: str, group: str) -> None:
        most = self._runtime.settings.max_answer_entries
        if self._count >= most:
            reason = (
                f"the mode of group {group} in topic {topic} is not stored: there are {most} "
                "modes (maxAnswerEntries); raise the setting"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def all_modes(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer all modes that were set."""
        return self._runtime.slices.serve(peer, self._all_modes(request))

    def _all_modes(self, request: Command) -> Job[Answer]:
        part = yield from requested(request.header(TablePartHeader), self._size())
        topics: list[bytes] = []
        for topic in list(self._modes):
            groups: list[bytes] = []
            for group, mode in list(self._modes.get(topic, {}).items()):
                key = encode_body(group)
                if part is None or part.has(encode_body(topic) + key):
                    groups.append(key + b":" + encode_body(mode))
                yield
            if groups:
                topics.append(encode_body(topic) + b":{" + b",".join(groups) + b"}")
        header = TablePartHeader(parts=part.parts) if part is not None else None
        body = b'{"messageRequestModeMap":{' + b",".join(topics) + b"}}"
        return response(request, header=header, body=body)

    def _size(self) -> Job[int]:
        """Return the approximate bytes of all modes as JSON."""
        size = 0
        for topic in list(self._modes):
            for group in list(self._modes.get(topic, ())):
                size += 2 * (len(topic) + len(group)) + _MODE
                yield
        return size

    def _follow(self, bodies: Sequence[Body]) -> Job[None]:
        """Replace all modes by those of a master, which come in parts and have no version."""
        modes: dict[str, dict[str, MessageRequestMode]] = {}
        for body in bodies:
            members = yield from read_members(body)
            part = yield from request_modes(members)
            for topic, groups in part.items():
                if groups:
                    modes.setdefault(topic, {}).update(groups)
                yield
        if modes != self._modes:
            self._modes, self._count = modes, sum(map(len, modes.values()))
            self._file.change()

    def topic_ended(self, topic: str) -> Job[None]:
        """Forget how groups consume a topic."""
        found = self._modes.pop(topic, None)
        if found is not None:
            self._count -= len(found)
            self._file.change()
        yield

    def group_ended(self, group: str) -> Job[None]:
        """Forget how a group consumes its topics."""
        for topic in list(self._modes):
            if self._modes.get(topic, {}).pop(group, None) is not None:
                self._count -= 1
                self._file.change()
            yield

    def _gather(self) -> Job[Members]:
        table: dict[str, dict[str, object]] = {}
        for topic in list(self._modes):
            modes = table[topic] = {}
            for group, mode in list(self._modes.get(topic, {}).items()):
                modes[group] = msgspec.to_builtins(mode)
                yield
        return {"messageRequestModeMap": table}

    def _mode(self, topic: str, group: str) -> MessageRequestMode:
        found = self._modes.get(topic, {}).get(group)
        if found is not None:
            return found
        settings = self._runtime.settings
        is_pop = settings.default_message_request_mode == POP and not topic.startswith(RETRY_PREFIX)
        if not is_pop:
            return MessageRequestMode(topic, group, PULL)
        return MessageRequestMode(topic, group, POP, settings.default_pop_share_queue_num)

    def _share(
        self, asked: AssignmentQuery, mode: MessageRequestMode, queues: list[MessageQueue] | None
    ) -> list[MessageQueue] | None:
        """Return a consumer's queues; None if they are unknown, and the consumer keeps those that
        it has.
        """
        if queues is None or asked.message_model == BROADCASTING:
            return queues
        members = self._state.clients.consumers.get(asked.consumer_group)
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
        topic = self._state.topics.get(name)
        if topic is None or not topic.perm & PERM_READ:
            return None
        broker = self._runtime.settings.broker_name
        return [MessageQueue(name, broker, number) for number in range(topic.read_queue_nums)]


class _RouteCache:
    """The routes of topics, as name servers answered recently."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._now = state.store.clock.monotonic
        # The time until which each route is valid, in the order of arrival.
        self._known: dict[str, tuple[float, TopicRouteData | None]] = {}

    async def of(self, topic: str) -> TopicRouteData | None:
        """Return a topic's route, None if no name server knows it or no topic can have the name."""
        if topic_fault(topic) is not None:
            # A name server closes the connection of a request that is too long, which would be this
            # broker's own.
            return None
        until, route = self._known.get(topic, (0.0, None))
        if self._now() < until:
            return route
        route = await self._state.names.route(topic)
        self._keep(topic, route)
        return route

    def _keep(self, topic: str, route: TopicRouteData | None) -> None:
        now, known = self._now(), self._known
        known.pop(topic, None)
        while known:
            oldest = next(iter(known))
            if known[oldest][0] > now and len(known) < _MOST_KNOWN:
                break
            del known[oldest]
        known[topic] = now + _KNOWN_FOR, route


def _of_route(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    return [
        MessageQueue(topic, data.broker_name, number)
        for data in route.queue_datas
        if data.perm & PERM_READ
        for number in range(data.read_queue_nums)
    ]


def _place(queue: MessageQueue) -> tuple[str, int]:
    return queue.broker_name, queue.queue_id
