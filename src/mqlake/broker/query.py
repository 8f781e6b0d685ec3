"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID. Messages are answered as they are in the log."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.query import (
    QueryMessageAnswerHeader,
    QueryMessageHeader,
    ViewMessageHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.slices import Job
from mqlake.store.results import QueryBudget

_UNIQUE_KEYS = 32
"""Maximum number of messages with one unique key in an answer (`defaultQueryMaxNum`)."""

_UNIQUE_KEY_TYPE = "U"
_MOST_BYTES = 8 << 20
"""Maximum bytes of the messages in one answer, unless the newest one alone has more."""


class QueryRequests:
    """Finds messages."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._runtime = runtime
        self._reads = state.store.reads

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.QUERY_MESSAGE, self._query, Permission.SUBSCRIBE | Permission.READ),
            Route(RequestCode.VIEW_MESSAGE_BY_ID, self._view, Permission.READ),
        )

    def _query(self, peer: Peer, request: Command) -> Command | Coroutine[Any, Any, Command]:
        return self._runtime.slices.serve(peer, self._find(request), size=len(request.body))

    def _find(self, request: Command) -> Job[Command]:
        header = request.header(QueryMessageHeader)
        is_unique = header.is_unique_key or header.index_type == _UNIQUE_KEY_TYPE
        wanted = _UNIQUE_KEYS if is_unique else header.max_num
        settings = self._runtime.settings
        budget = QueryBudget(settings.max_query_entries, settings.max_query_scan_size)
        offsets, is_truncated = yield from self._reads.search(
            header.topic,
            header.key,
            begin=header.begin_timestamp,
            end=header.end_timestamp,
            max=max(1, min(wanted, settings.max_msgs_num_batch)),
            index_type=header.index_type,
            budget=budget,
        )
        timestamp, offset = self._reads.index_end
        answer = QueryMessageAnswerHeader(
            index_last_update_timestamp=timestamp, index_last_update_phyoffset=offset
        )
        pieces = yield from self._pieces(offsets)
        remarks = [_stopped(budget, settings)] if budget.is_exceeded else []
        body = b"".join(pieces)
        if not body:
            reason = "can not find message, maybe time range not correct"
            remark = "; ".join([reason, *remarks])
            return response(request, ResponseCode.QUERY_NOT_FOUND, answer, remark=remark)
        if is_truncated or len(pieces) < len(offsets):
            remarks.insert(
                0, f"only the newest {len(pieces)} messages are returned; ask for a range of time"
            )
        return response(request, header=answer, body=body, remark="; ".join(remarks) or None)

    def _pieces(self, offsets: list[int]) -> Job[list[memoryview]]:
        """Return the bytes of messages; only of the newest ones if all would be too many."""
        pieces: list[memoryview] = []
        room = _MOST_BYTES
        for offset in reversed(offsets):
            # The search has checked it; only a removed one is missing.
            piece = self._reads.raw_at(offset, crc=False)
            if piece is None:
                continue
            if pieces and len(piece) > room:
                break
            pieces.append(piece)
            room -= len(piece)
            yield
        return pieces[::-1]

    def _view(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        offset = request.header(ViewMessageHeader).offset
        raw = self._reads.raw_at(offset)
        if raw is None:
            reason = f"can not find message by the offset, {offset}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(request, body=raw)


def _stopped(budget: QueryBudget, settings: BrokerSettings) -> str:
    """Return why a query has not looked at everything."""
    if budget.size <= 0:
        most = f"{settings.max_query_scan_size} bytes of the log (maxQueryScanSize)"
        return f"the index does not answer this query, and only the newest {most} were searched"
    most = f"{settings.max_query_entries} index entries (maxQueryEntries)"
    return f"only the newest {most} were searched"
