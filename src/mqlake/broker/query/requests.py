"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID. Messages are answered as they are in the log."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.parts import Parts
from mqlake.formats.record import Record
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

_UNIQUE_KEYS = 32
"""Maximum number of messages with one unique key in an answer (`defaultQueryMaxNum`)."""

_UNIQUE_KEY_TYPE = "U"
_MOST_BYTES = 8 << 20
"""Maximum bytes of the messages in one answer, unless the newest one alone has more."""


class QueryRequests:
    """Finds messages."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._reads = parts.store.reads

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.QUERY_MESSAGE, self._query, Permission.SUBSCRIBE | Permission.READ),
            Route(RequestCode.VIEW_MESSAGE_BY_ID, self._view, Permission.READ),
        )

    def _query(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        header = request.header(QueryMessageHeader)
        is_unique = header.is_unique_key or header.index_type == _UNIQUE_KEY_TYPE
        wanted = _UNIQUE_KEYS if is_unique else header.max_num
        most = self._parts.settings.max_msgs_num_batch
        found = self._reads.by_key(
            header.topic,
            header.key,
            header.begin_timestamp,
            header.end_timestamp,
            max(1, min(wanted, most)),
            header.index_type,
        )
        timestamp, offset = self._reads.index_end
        answer = QueryMessageAnswerHeader(
            index_last_update_timestamp=timestamp, index_last_update_phyoffset=offset
        )
        pieces = self._pieces(found.records)
        body = b"".join(pieces)
        if not body:
            reason = "can not find message, maybe time range not correct"
            return response(request, ResponseCode.QUERY_NOT_FOUND, answer, remark=reason)
        is_cut = found.truncated or len(pieces) < len(found.records)
        remark = (
            f"only the newest {len(pieces)} messages are returned; ask for a range of time"
            if is_cut
            else None
        )
        return response(request, header=answer, body=body, remark=remark)

    def _pieces(self, records: list[Record]) -> list[bytes | memoryview]:
        """Return the bytes of messages; only of the newest ones if all would be too many."""
        pieces: list[bytes | memoryview] = []
        room = _MOST_BYTES
        for record in reversed(records):
            piece = self._raw(record)
            if pieces and len(piece) > room:
                break
            pieces.append(piece)
            room -= len(piece)
        return pieces[::-1]

    def _raw(self, record: Record) -> bytes | memoryview:
        return self._reads.raw_at(record.physical_offset) or b""

    def _view(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        offset = request.header(ViewMessageHeader).offset
        raw = self._reads.raw_at(offset)
        if raw is None:
            reason = f"can not find message by the offset, {offset}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(request, body=raw)
