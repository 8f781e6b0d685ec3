"""Requests whose answer includes every message that was acknowledged before them."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.store.port import Store

AFTER_DISPATCH = frozenset(
    {
        RequestCode.GET_BROKER_CONSUME_STATS,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.GET_TOPIC_STATS_INFO,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUME_QUEUE,
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        RequestCode.QUERY_CORRECTION_OFFSET,
        RequestCode.QUERY_MESSAGE,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    }
)
"""Codes of requests that ask once how long a queue is, or what an index finds.

Upstream answers these from what is dispatched, so that who sends a message and then asks may miss
it. Pulls and pops are not among them: they wait for messages, or come again.
"""


def after_dispatch(route: Route, store: Store) -> Route:
    """Return a route that dispatches what is confirmed before it serves one of these requests.

    For at most one turn: a store that is far behind shows what it has dispatched.
    """
    if route.code not in AFTER_DISPATCH:
        return route

    def serve(peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        store.dispatching.catch_up()
        return route.handler(peer, request)

    return replace(route, handler=serve)
