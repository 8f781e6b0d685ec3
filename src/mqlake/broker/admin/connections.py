"""List connected clients, and forward requests to consumers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.clients.members import Client
from mqlake.errors import FormatError
from mqlake.formats.message_id import decode_message_id
from mqlake.protocol.bodies.connections import ClientConnection, ProducerInfo
from mqlake.protocol.bodies.queue_tables import encode_array, encode_with_table, join_queues
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body, Command, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    ConsumerConnectionsHeader,
    ConsumerHeader,
    ConsumerStatusHeader,
    ProducerConnectionsHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once if it is short."""

_PATIENCE = 10.0
"""Seconds within which a consumer must answer (upstream: `Broker2Client.callClient`)."""
_AT_ONCE = 16
"""Consumers that are asked for their offsets at the same time."""
_MOST_BYTES = 8 << 20
"""Maximum bytes of the offsets of all consumers of a group."""

_log = logging.getLogger(__name__)


class ConnectionAdmin:
    """Answers requests about clients."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.GET_CONSUMER_CONNECTION_LIST, self._consumers, Permission.READ),
            Route(RequestCode.GET_PRODUCER_CONNECTION_LIST, self._producers, Permission.READ),
            Route(RequestCode.GET_ALL_PRODUCER_INFO, self._all_producers, Permission.READ),
            Route(RequestCode.GET_CONSUMER_RUNNING_INFO, self._running_info, Permission.READ),
            Route(RequestCode.CONSUME_MESSAGE_DIRECTLY, self._consume, Permission.SUBSCRIBE),
            Route(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, self._status, Permission.READ),
        )

    def _consumers(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._consumers_of(request))

    def _consumers_of(self, request: Command) -> Job[Command]:
        name = request.header(ConsumerConnectionsHeader).consumer_group
        group = self._state.clients.consumers.get(name)
        if group is None:
            reason = f"the consumer group[{name}] not online"
            raise RemotingError(ResponseCode.CONSUMER_NOT_ONLINE, reason)
        subscriptions = encode_body(group.subscriptions)
        body = {
            "connectionSet": (yield from self._connections(group)),
            "subscriptionTable": msgspec.Raw(subscriptions),
            "consumeType": group.consume_type,
            "messageModel": group.message_model,
            "consumeFromWhere": group.consume_from_where,
        }
        return response(request, body=encode_with_table(body))

    def _producers(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._producers_of(request))

    def _producers_of(self, request: Command) -> Job[Command]:
        name = request.header(ProducerConnectionsHeader).producer_group
        group = self._state.clients.producers.get(name)
        if group is None:
            reason = f"the producer group[{name}] not exist"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        connections = yield from self._connections(group)
        return response(request, body=encode_with_table({"connectionSet": connections}))

    def _connections(self, clients: Iterable[Client]) -> Job[msgspec.Raw]:
        found = Members()
        for each in list(clients):
            self._check_room(len(found))
            one = ClientConnection(each.client_id, each.peer.address, each.language, each.version)
            found.append(encode_body(one))
            yield
        return encode_array(found)

    def _check_room(self, entries: int) -> None:
        most = self._runtime.settings.max_answer_entries
        if entries >= most:
            reason = f"the answer would list more than {most} clients (maxAnswerEntries)"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def _all_producers(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._every_producer(request))

    def _every_producer(self, request: Command) -> Job[Command]:
        table, count, producers = Members(), 0, self._state.clients.producers
        for name in list(producers):
            found = Members()
            for each in list(producers.get(name, ())):
                self._check_room(count)
                count += 1
                address = f"/{each.peer.address}"
                one = ProducerInfo(each.client_id, address, each.language, each.version, each.seen)
                found.append(encode_body(one))
                yield
            if len(found):
                table.append(encode_body(name) + b":" + bytes(encode_array(found)))
        return response(request, body=encode_with_table({"data": join_queues(table)}))

    async def _running_info(self, _peer: Peer, request: Command) -> Command:
        return await self._ask(request, request.header(ConsumerHeader))

    async def _consume(self, _peer: Peer, request: Command) -> Command:
        """Have one consumer consume one message, whatever it has consumed before."""
        header = request.header(ConsumerHeader)
        try:
            _, physical_offset = decode_message_id(header.msg_id or "")
        except FormatError as error:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        message = self._state.store.reads.raw_at(physical_offset)
        if message is None:
            reason = f"there is no message {header.msg_id} on this broker"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        fields = {"brokerName": self._runtime.settings.broker_name}
        return await self._ask(request, header, message, fields)

    async def _ask(
        self,
        asked: Command,
        header: ConsumerHeader,
        body: Body = b"",
        fields: Mapping[str, str] | None = None,
    ) -> Command:
        group, client_id = header.consumer_group, header.client_id
        client = self._state.clients.consumer(group, client_id)
        if client is None:
            reason = f"The Consumer <{group}> <{client_id}> not online"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        question = request(asked.code, {**asked.fields, **(fields or {})}, body)
        try:
            answer = await client.peer.request(question, _PATIENCE)
        except RequestTimeoutError as error:
            reason = f"consumer <{group}> <{client_id}> Timeout: {error}"
            raise RemotingError(ResponseCode.CONSUME_MSG_TIMEOUT, reason) from None
        except ConnectionFailedError as error:
            reason = f"invoke consumer <{group}> <{client_id}> Exception: {error}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason) from None
        return response(asked, answer.code, answer.fields, answer.body, answer.remark)

    async def _status(self, _peer: Peer, asked: Command) -> Command:
        """Ask the consumers of a group for their offsets in a topic's queues."""
        header = asked.header(ConsumerStatusHeader)
        group = self._state.clients.consumers.get(header.group)
        if group is None:
            reason = f"No Any Consumer online in the consumer group: [{header.group}]"
            raise RemotingError(ResponseCode.CONSUMER_NOT_ONLINE, reason)
        wanted = header.client_addr
        clients = [each for each in group if not wanted or each.client_id == wanted]
        self._check_room(len(clients) - 1)
        fields, parts, size = {"topic": header.topic, "group": header.group}, list[bytes](), 0
        end = asyncio.get_running_loop().time() + _PATIENCE
        for at in range(0, len(clients), _AT_ONCE):
            seconds = end - asyncio.get_running_loop().time()
            if seconds <= 0:
                break
            asks = (_offsets_of(each, fields, seconds) for each in clients[at : at + _AT_ONCE])
            found = [part for part in await asyncio.gather(*asks) if part is not None]
            parts += found
            size += sum(map(len, found))
            if size > _MOST_BYTES:
                reason = f"the answer would have more than {_MOST_BYTES} bytes: name one client"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(asked, body=b'{"consumerTable":{%s}}' % b",".join(parts))


async def _offsets_of(client: Client, fields: dict[str, str], seconds: float) -> bytes | None:
    """Return a consumer's offsets as a member of a table; None if it does not answer in time, or
    has none.
    """
    question = request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields)
    try:
        answer = await client.peer.request(question, seconds)
    except (RequestTimeoutError, ConnectionFailedError) as error:
        _log.info("consumer %s does not say its offsets: %s", client.client_id, error)
        return None
    if answer.code != ResponseCode.SUCCESS or not answer.body:
        return None
    return encode_body(client.client_id) + b":" + _queues_of(answer.body)


def _queues_of(body: Body) -> bytes:
    """Return the table of queues in a consumer's answer, unchanged."""
    text = bytes(body)
    start = text.find(b'"messageQueueTable":')
    return text[start + len(b'"messageQueueTable":') : text.rfind(b"}")] if start >= 0 else b"{}"
