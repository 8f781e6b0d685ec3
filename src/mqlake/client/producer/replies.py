"""Requests that wait for a reply (upstream: `RequestFutureHolder`, `MessageUtil`)."""

from __future__ import annotations

import asyncio
import uuid

from mqlake.client.errors import ClientError, NoReplyError
from mqlake.client.message import Message, ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.host import encode_host
from mqlake.formats.own_properties import CLUSTER
from mqlake.formats.properties import decode_properties
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Command
from mqlake.protocol.headers.reply import ReplyMessageHeader
from mqlake.protocol.messages.body_compression import decompress
from mqlake.protocol.naming import REPLY_SUFFIX

CORRELATION_ID = "CORRELATION_ID"
_REPLY_TO = "REPLY_TO_CLIENT"
_TTL = "TTL"
_KIND = "MSG_TYPE"
_REPLY = "reply"


class AwaitedReplies:
    """The replies that a client waits for.

    Args:
        client_id: the client that the replies go to.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._waiting: dict[str, asyncio.Future[ReceivedMessage]] = {}

    def properties(self, seconds: float) -> dict[str, str]:
        """Return the properties of a request whose reply is awaited for so long."""
        correlation_id = str(uuid.uuid4())
        self._waiting[correlation_id] = asyncio.get_running_loop().create_future()
        return {
            CORRELATION_ID: correlation_id,
            _REPLY_TO: self._client_id,
            _TTL: str(int(seconds * 1000)),
        }

    async def wait(self, correlation_id: str, seconds: float) -> ReceivedMessage:
        """Return the reply.

        Raises:
            NoReplyError: no reply arrived in time.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._waiting[correlation_id]
        except TimeoutError:
            raise NoReplyError(f"no reply within {seconds:g} s") from None

    def forget(self, correlation_id: str) -> None:
        """Stop waiting."""
        if (future := self._waiting.pop(correlation_id, None)) is not None:
            future.cancel()

    def take(self, command: Command) -> bool:
        """Accept a reply; return whether a caller waits for it."""
        header = command.header(ReplyMessageHeader)
        encoded = (header.properties or "").encode("utf-8", "replace")
        properties = decode_properties(encoded)
        future = self._waiting.get(properties.get(CORRELATION_ID, ""))
        if future is None or future.done():
            return False
        future.set_result(_message(header, encoded, bytes(command.body)))
        return True


def reply_to(request: ReceivedMessage, body: bytes) -> Message:
    """Return the message that replies to a request.

    Raises:
        ClientError: the message is not a request.
    """
    properties = request.properties
    if not all(properties.get(name) for name in (CORRELATION_ID, _REPLY_TO, CLUSTER)):
        raise ClientError(
            f"message {request.message_id} is not a request: nobody waits for a reply to it"
        )
    found = {name: properties[name] for name in (CORRELATION_ID, _REPLY_TO)}
    found[_TTL] = properties.get(_TTL, "")
    found[_KIND] = _REPLY
    wanted = {name: value for name, value in found.items() if value}
    return Message(topic=properties[CLUSTER] + REPLY_SUFFIX, body=body, properties=wanted)


def _message(header: ReplyMessageHeader, properties: bytes, body: bytes) -> ReceivedMessage:
    fault = None
    try:
        body = decompress(body, header.sys_flag)
    except FormatError as error:
        fault = str(error)
    return ReceivedMessage(
        topic=header.topic,
        body=body,
        queue=MessageQueue(header.topic, "", header.queue_id),
        queue_offset=0,
        physical_offset=-1,
        encoded_properties=properties,
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        born_address=_address(header.born_host),
        store_timestamp=header.store_timestamp,
        store_address=_address(header.store_host),
        reconsume_times=header.reconsume_times or 0,
        body_fault=fault,
    )


def _address(text: str) -> bytes:
    """Return the bytes of "address:port" or "/address:port"; empty if the text is something
    else.
    """
    try:
        return encode_host(text.removeprefix("/"))
    except FormatError:
        return b""
