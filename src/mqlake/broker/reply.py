"""SEND_REPLY_MESSAGE (upstream: `ReplyMessageProcessor`).

A consumer replies to a request: the reply names the waiting client by a producer's id. It is pushed
to that client, and also stored if the settings say so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import count

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.checks import Header, SendChecks
from mqlake.broker.send.properties import allowed
from mqlake.broker.send.sizes import SendSizes
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.topics import any_queue
from mqlake.errors import MqlakeError
from mqlake.formats.properties import decode_properties, encode_pairs
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.reply import ReplyMessageHeader
from mqlake.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from mqlake.protocol.headers.send import SendMessageResponseHeader as Answer
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.slices import Job
from mqlake.store.append.message import Message

_REPLY_TO = "REPLY_TO_CLIENT"
_PUSHED = "PUSH_REPLY_TIME"
_TIMEOUT = 10.0

_log = logging.getLogger(__name__)


class Replies:
    """Pass replies to the clients that wait for them."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._checks, self._sizes = SendChecks(state, runtime), SendSizes(state)
        # The replies that are being pushed, by the topic in which they are stored afterwards.
        self._pushed: dict[str, set[int]] = {}
        self._numbers = count()
        state.endings.add(self)

    def topic_ended(self, topic: str) -> Job[None]:
        """Do not store the replies that are being pushed: their topic does not exist any more."""
        self._pushed.pop(topic, None)
        yield

    def group_ended(self, group: str) -> Job[None]:  # noqa: ARG002
        """Do nothing: a reply belongs to no group of consumers."""
        yield from ()

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.SEND_REPLY_MESSAGE, self._send, Permission.PUBLISH),
            Route(RequestCode.SEND_REPLY_MESSAGE_V2, self._send_v2, Permission.PUBLISH),
        )

    async def _send(self, peer: Peer, request: Command) -> Command:
        return await self._reply(peer, request, request.header(SendMessageHeader))

    async def _send_v2(self, peer: Peer, request: Command) -> Command:
        return await self._reply(peer, request, request.header(SendMessageHeaderV2))

    async def _reply(self, peer: Peer, asked: Command, header: Header) -> Command:
        topic = self._checks.topic(header, peer)
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = any_queue(max(1, topic.write_queue_nums))
        properties = (header.properties or "").encode("utf-8", "replace")
        self._sizes.check(properties, len(asked.body))
        pairs = decode_properties(properties)
        number = next(self._numbers)
        self._pushed.setdefault(header.topic, set()).add(number)
        try:
            failure = await self._push(peer, header, pairs, bytes(asked.body))
        finally:
            has_topic = self._leave(header.topic, number)
        msg_id, queue_offset = "0", 0
        if not has_topic:
            _log.warning("a reply was not stored: topic %s was deleted meanwhile", header.topic)
        elif self._runtime.settings.store_reply_message_enable:
            put = await self._store(peer, header, queue_id, bytes(asked.body))
            if put is not None:
                msg_id, queue_offset = put
        if failure is not None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, failure)
        fields = Answer(msg_id=msg_id, queue_id=queue_id, queue_offset=queue_offset)
        return response(asked, header=fields)

    def _leave(self, topic: str, number: int) -> bool:
        """Note that a reply was pushed; return whether its topic still exists since before that."""
        pushed = self._pushed.get(topic, set[int]())
        has_topic = number in pushed and topic in self._state.topics
        pushed.discard(number)
        if not pushed:
            self._pushed.pop(topic, None)
        return has_topic

    async def _push(
        self, peer: Peer, header: Header, pairs: Mapping[str, str], body: bytes
    ) -> str | None:
        """Push the reply to the waiting client; return why that failed, None on success."""
        client_id = pairs.get(_REPLY_TO)
        if client_id is None:
            return f"reply message properties[{_REPLY_TO}] is null"
        client = self._state.clients.producer_with_id(client_id)
        if client is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        now = self._state.store.clock.milliseconds()
        pushed = ReplyMessageHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            born_host=peer.address,
            store_host=self._runtime.settings.broker_address,
            store_timestamp=now,
            properties=encode_pairs({**pairs, _PUSHED: str(now)}).decode(),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
        )
        command = request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, pushed, body)
        try:
            answer = await client.peer.request(command, _TIMEOUT)
        except MqlakeError as error:
            return f"push reply message to {client_id} fail: {error}"
        if answer.code != ResponseCode.SUCCESS:
            return f"push reply message to {client_id} fail: {answer.code} {answer.remark}"
        return None

    async def _store(
        self, peer: Peer, header: Header, queue_id: int, body: bytes
    ) -> tuple[str, int] | None:
        """Put the reply; return its message id and its queue offset, None if it was refused.

        The client has the reply by then: a refusal is logged.
        """
        message = Message(
            topic=header.topic,
            body=body,
            queue_id=queue_id,
            flag=header.flag,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            born_host=peer.address,
            reconsume_times=header.reconsume_times or 0,
            encoded_properties=allowed(header.properties or "").encode("utf-8", "replace"),
        )
        store = self._state.store
        (result,) = await store.appends.confirm(store.appends.many([message]))
        if not result.count:
            _log.warning("a reply was not stored: %s: %s", result.status, result.reason)
            return None
        return result.message_id, result.queue_offset
