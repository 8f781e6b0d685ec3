"""Answer slaves that request tables, and clients that request replication progress.

GET_ALL_CONSUMER_OFFSET, GET_ALL_DELAY_OFFSET, GET_TIMER_CHECK_POINT, GET_TIMER_METRICS,
GET_BROKER_HA_STATUS. Upstream: `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.slave.following import TableSync
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config import DelayOffsets, TimerMetrics
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.slaves import TablePartHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job
from mqlake.replication.table_parts import requested

_OFFSET = 20
"""Approximate bytes of the text of a queue and its offset."""


class SlaveTables:
    """The tables for slaves that no other family serves; and the copying on a slave."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._config = state, runtime, state.store.config
        self._sync = TableSync(state, runtime)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.GET_ALL_CONSUMER_OFFSET, self._consumer_offsets, Permission.LIST),
            Route(RequestCode.GET_ALL_DELAY_OFFSET, self._delay_offsets, Permission.LIST),
            Route(RequestCode.GET_TIMER_CHECK_POINT, self._timer, Permission.READ),
            Route(RequestCode.GET_TIMER_METRICS, self._timer_metrics, Permission.READ),
            Route(RequestCode.GET_BROKER_HA_STATUS, self._ha_status, Permission.READ),
        )

    def _consumer_offsets(
        self, peer: Peer, request: Command
    ) -> Answer | Coroutine[Any, Any, Answer]:
        return self._runtime.slices.serve(peer, self._all_consumer_offsets(request))

    def _all_consumer_offsets(self, request: Command) -> Job[Answer]:
        # If something changes meanwhile, the version is the older one: the slave copies again.
        version = encode_body(self._config.consumer_offsets.version)
        header = request.header(TablePartHeader)
        part = yield from requested(header, self._size_of_offsets())
        texts = Members()
        for name, queues in self._config.consumer_offsets.committed():
            key = encode_body(name)
            if part is None or part.has(key):
                texts.append(key + b":" + encode_body(queues))
            yield
        body = b"".join((b'{"offsetTable":{', b",".join(texts), b'},"dataVersion":', version, b"}"))
        yield
        answer = TablePartHeader(parts=part.parts) if part is not None else None
        return response(request, header=answer, body=body)

    def _size_of_offsets(self) -> Job[int]:
        size = 0
        for key, queues in self._config.consumer_offsets.committed():
            size += len(key) + _OFFSET * len(queues)
            yield
        return size

    def _delay_offsets(self, _peer: Peer, request: Command) -> Command:
        known = self._config.delay_offsets
        body = encode_body(DelayOffsets(dict(known.items()), known.version))
        return response(request, body=body)

    def _timer(self, _peer: Peer, request: Command) -> Command:
        self._check_timer("The checkpoint is null")
        return response(request, body=self._state.store.timers.checkpoint())

    def _timer_metrics(self, _peer: Peer, request: Command) -> Command:
        """Waiting messages are not counted by topic here."""
        self._check_timer("The timer message store is null")
        return response(request, body=encode_body(TimerMetrics()))

    def _check_timer(self, reason: str) -> None:
        if not self._runtime.settings.timer_wheel_enable:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def _ha_status(self, _peer: Peer, request: Command) -> Command:
        return response(request, body=encode_body(self._state.replication.status()))
