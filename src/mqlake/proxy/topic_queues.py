"""QueryRoute: the queues of a topic (upstream: `RouteActivity`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import count
from typing import Final

from mqlake.formats.config.topics import PERM_READ, PERM_WRITE
from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Address,
    AddressScheme,
    Broker,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    QueryRouteRequest,
    QueryRouteResponse,
)
from mqlake.protocol.bodies.route import QueueData
from mqlake.proxy.brokers.port import UNSPECIFIED, Caller
from mqlake.proxy.errors import OK, StatusError
from mqlake.proxy.names import topic_of
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.state import ProxyState
from mqlake.store.bounds import LAST_PORT

AT_ONCE: Final = 64
"""Queues that are described in one round of the loop."""
_LARGEST: Final = 1024
"""Bytes of the endpoints that a client names: each queue in a response has them."""
_LONGEST_AUTHORITY: Final = 255
_PORT: Final = re.compile("[0-9]{1,5}", re.ASCII)
_MIXED: Final = (
    MessageType.NORMAL,
    MessageType.FIFO,
    MessageType.DELAY,
    MessageType.TRANSACTION,
)
MIXED: Final = "MIXED"
"""The value of `message.type` of a topic for messages of several types."""


class QueryRoutes:
    """Answers where the queues of topics are: always where the client is connected to."""

    def __init__(self, state: ProxyState) -> None:
        self._brokers, self._turns = state.brokers, ListTurns()

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        return (ServedMethod("QueryRoute", self._route),)

    async def _route(
        self, call: Call, caller: Caller, request: QueryRouteRequest
    ) -> QueryRouteResponse:
        name = topic_of(request.topic)
        route = await self._brokers.route(name, caller)
        types = accepted_types(await self._brokers.message_type(name))
        endpoints = endpoints_of(request.endpoints, call)
        ids = {data.broker_name: sorted(data.broker_addrs) for data in route.broker_datas}
        found, counted = QueryRouteResponse(status=OK.status), list[tuple[Broker, QueueData]]()
        for data in route.queue_datas:
            for broker_id in ids.get(data.broker_name, ()):
                broker = Broker(name=data.broker_name, id=broker_id, endpoints=endpoints)
                counted.append((broker, data))
        async with self._turns.of(data for _, data in counted):
            for broker, data in counted:
                for number, permission in queues_of(data):
                    if not (len(found.message_queues) + 1) % AT_ONCE:
                        await asyncio.sleep(0)
                    queue = MessageQueue(
                        topic=request.topic,
                        id=number,
                        permission=permission,
                        broker=broker,
                        accept_message_types=types,
                    )
                    found.message_queues.append(queue)
        return found


class ListTurns:
    """Lets one call at a time list many queues: the lists of many calls together would take far
    more memory than the calls, and are not counted before they are sent.
    """

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    def of(self, listed: Iterable[QueueData]) -> AbstractAsyncContextManager[object]:
        """Return the turn of a call; it need not wait if it lists few queues."""
        count = sum(max(data.read_queue_nums, data.write_queue_nums) for data in listed)
        return self._one if count >= AT_ONCE else nullcontext()


def accepted_types(attribute: str) -> Sequence[MessageType]:
    """Return the types of messages that a topic accepts, by its attribute `message.type`."""
    if attribute == MIXED:
        return _MIXED
    if attribute == UNSPECIFIED:
        return (MessageType.MESSAGE_TYPE_UNSPECIFIED,)
    known = MessageType.__members__.get(attribute)
    return (MessageType.NORMAL if known is None else known,)


def queues_of(data: QueueData) -> Iterator[tuple[int, Permission]]:
    """Yield the ids of a topic's queues on one broker name, with their permissions.

    Those that can only be read come first, then those that can only be written.
    """
    read = data.read_queue_nums if data.perm & PERM_READ else 0
    write = data.write_queue_nums if data.perm & PERM_WRITE else 0
    both, ids = min(read, write), count()
    if not read and not write:
        for _ in range(max(1, data.read_queue_nums, data.write_queue_nums)):
            yield next(ids), Permission.NONE
    for _ in range(read - both):
        yield next(ids), Permission.READ
    for _ in range(write - both):
        yield next(ids), Permission.WRITE
    for _ in range(both):
        yield next(ids), Permission.READ_WRITE


def endpoints_of(asked: Endpoints, call: Call) -> Endpoints:
    """Return where a client finds all queues: where it has found this service."""
    if asked.addresses:
        are_ports = all(0 < each.port <= LAST_PORT for each in asked.addresses)
        if asked.ByteSize() > _LARGEST or not are_ports:
            reason = f"the endpoints have more than {_LARGEST} bytes, or a port is no port"
            raise StatusError(Code.ILLEGAL_ACCESS_POINT, reason)
        return asked
    named = call.authority
    if not named or len(named) > _LONGEST_AUTHORITY:
        named = call.local
    host, colon, port = named.rpartition(":")
    if not colon or named.endswith("]"):
        host, port = named, call.local.rpartition(":")[2]
    is_v6 = host.startswith("[")
    is_v4 = host.replace(".", "").isdigit()
    scheme = AddressScheme.DOMAIN_NAME
    if is_v6 or is_v4:
        scheme = AddressScheme.IPv6 if is_v6 else AddressScheme.IPv4
    address = Address(host=host.strip("[]"), port=int(port) if _PORT.fullmatch(port) else 0)
    return Endpoints(scheme=scheme, addresses=[address])
