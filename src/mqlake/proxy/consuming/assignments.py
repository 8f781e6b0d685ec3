"""QueryAssignment (upstream: `RouteActivity.queryAssignment`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from mqlake.formats.config.topics import PERM_READ, PERM_WRITE
from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Assignment,
    Broker,
    Code,
    MessageQueue,
    Permission,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
)
from mqlake.protocol.bodies.route import QueueData
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.errors import OK, StatusError
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.state import ProxyState
from mqlake.proxy.topic_queues import AT_ONCE, ListTurns, endpoints_of, queues_of

_ALL_QUEUES: Final = -1
_MASTER: Final = 0
_BIND_TOPIC: Final = "lite.bind.topic"


class AssignedQueues:
    """Serves calls of push consumers, which receive from each queue that they are assigned."""

    def __init__(self, state: ProxyState) -> None:
        self._state, self._turns = state, ListTurns()

    async def query(
        self, call: Call, caller: Caller, request: QueryAssignmentRequest
    ) -> QueryAssignmentResponse:
        """Return all queues of each broker as one; to groups in order, each queue."""
        name = topic_of(request.topic)
        group = await self._state.brokers.group(group_of(request.group), caller)
        is_ordered = group is not None and group.consume_message_orderly
        if group is not None and group.attributes.get(_BIND_TOPIC):
            is_ordered = False  # Lite topics are in order by themselves.
        route = await self._state.brokers.route(name, caller)
        masters = {data.broker_name for data in route.broker_datas if _MASTER in data.broker_addrs}
        endpoints = endpoints_of(request.endpoints, call)
        found = QueryAssignmentResponse(status=OK.status)
        listed = [data for data in route.queue_datas if data.broker_name in masters]
        async with self._turns.of(listed if is_ordered else ()):
            for data in listed:
                broker = Broker(name=data.broker_name, id=_MASTER, endpoints=endpoints)
                for number, permission in _assigned(data, is_ordered=is_ordered):
                    if not (len(found.assignments) + 1) % AT_ONCE:
                        await asyncio.sleep(0)
                    queue = MessageQueue(
                        topic=request.topic, id=number, permission=permission, broker=broker
                    )
                    found.assignments.append(Assignment(message_queue=queue))
        if not found.assignments:
            raise StatusError(Code.FORBIDDEN, "no readable queue")
        return found


def _assigned(data: QueueData, *, is_ordered: bool) -> Iterator[tuple[int, Permission]]:
    if not data.perm & PERM_READ or data.read_queue_nums <= 0:
        return
    if not is_ordered:
        is_writable = data.perm & PERM_WRITE
        yield _ALL_QUEUES, Permission.READ_WRITE if is_writable else Permission.READ
        return
    for number, permission in queues_of(data):
        if permission in (Permission.READ, Permission.READ_WRITE):
            yield number, permission
