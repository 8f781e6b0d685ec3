"""The one place where requests for logic queues are translated (docs/static-topics.md).

A family serves requests for this broker's queues, and knows no others. Its handlers are wrapped
here: a request for a logic queue becomes one for a queue of this broker, and its answer is
translated back; or it is answered by asking the brokers that have the stretches. Requests for other
topics reach the family as they arrived. Runs of frames do not pass here: a family reads frames only
of topics that need no translation (`Topics.direct`).
Upstream: `rewriteRequestForStaticTopic`, `rewriteResponseForStaticTopic` of several processors.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, cast

from mqlake.broker.logic_queues.offsets import LogicOffsets
from mqlake.broker.logic_queues.pulls import LogicPulls
from mqlake.broker.logic_queues.sends import serve_send
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.static_topics import LogicQueue
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.header import wire_name
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Handler, Route

SENDS = frozenset(
    (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)

Translation = Callable[[Peer, Command, LogicQueue, Handler], Answer | Coroutine[Any, Any, Answer]]
"""Serves a request for a logic queue, perhaps by the handler of its code."""


class LogicQueueRoutes:
    """Wraps the routes of all requests that may be for logic queues."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._static_topics = state.static_topics
        pulls, offsets = LogicPulls(state, runtime), LogicOffsets(state)
        self._translations: dict[int, Translation] = {
            **dict.fromkeys(SENDS, serve_send),
            RequestCode.PULL_MESSAGE: pulls.serve,
            RequestCode.LITE_PULL_MESSAGE: pulls.serve,
            RequestCode.QUERY_CONSUMER_OFFSET: offsets.query,
            RequestCode.UPDATE_CONSUMER_OFFSET: offsets.update,
            RequestCode.GET_MAX_OFFSET: offsets.max,
            RequestCode.GET_MIN_OFFSET: offsets.min,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offsets.search,
            RequestCode.GET_EARLIEST_MSG_STORETIME: offsets.earliest,
        }

    def wrap(self, route: Route) -> Route:
        """Return a route that translates requests for logic queues, or the same one."""
        translate = self._translations.get(route.code)
        if translate is None:
            return route
        return replace(route, handler=self._wrapped(route, translate))

    def _wrapped(self, route: Route, translate: Translation) -> Handler:
        serve, kind, names = route.handler, cast("Any", route.header), self._static_topics.names
        field = wire_name(kind, "topic")
        find = self._static_topics.to_send if route.code in SENDS else self._static_topics.led

        def serve_any(peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
            # Written out, because every request that is served by itself passes here.
            fields = request.known_fields
            if fields is not None:
                topic = fields.get(field)
            else:
                header = cast("Any", request.raw_fields)
                topic = (header if type(header) is kind else request.header(kind)).topic
            return (serve if topic not in names else serve_static)(peer, request)

        def serve_static(peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
            header = request.header(kind)
            queue_id = -1 if header.queue_id is None else header.queue_id
            queue = find(header.topic, queue_id, header.lo)
            if queue is None:
                return serve(peer, request)
            return translate(peer, request, queue, serve)

        return serve_any
