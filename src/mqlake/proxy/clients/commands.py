"""Requests of brokers to clients, as commands over their Telemetry streams.

Upstream: `GrpcClientChannel`, `ProxyClientRemotingProcessor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Final

from mqlake.client.message import ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.grpc.messages import (
    Code,
    Message,
    NotifyUnsubscribeLiteCommand,
    PrintThreadStackTraceCommand,
    RecoverOrphanedTransactionCommand,
    Status,
    TelemetryCommand,
    VerifyMessageCommand,
)
from mqlake.protocol.bodies.queue_tables import encode_with_table
from mqlake.protocol.bodies.running_info import DirectResult
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body, Command, response
from mqlake.protocol.headers.admin import ConsumerHeader
from mqlake.protocol.headers.lite import NotifyUnsubscribeLiteHeader
from mqlake.protocol.headers.transactions import CheckTransactionHeader
from mqlake.proxy.clients.client import CommandStream, GrpcClient
from mqlake.proxy.consuming.outgoing import decode_stored, outgoing_message
from mqlake.proxy.sending.transactions import OpenTransactions, TransactionKey
from mqlake.proxy.state import ProxyState

_PATIENCE: Final = 9.0
"""Seconds within which a client must answer: the broker waits for 10."""
_LARGE: Final = 1 << 16
"""Bytes of a body."""
_RESULTS: Final = {
    int(Code.OK): "CR_SUCCESS",
    int(Code.FAILED_TO_CONSUME_MESSAGE): "CR_LATER",
    int(Code.MESSAGE_CORRUPTED): "CR_RETURN_NULL",
}
"""Results of a consumer by the code of its answer."""


_OK: Final = Status(code=Code.OK, message=Code.OK.name)
_Serve = Callable[[Command, GrpcClient, CommandStream], Awaitable[Body]]


class ClientCommands:
    """Passes requests of brokers on to clients.

    Args:
        transactions: notes the half messages that brokers ask about.
    """

    def __init__(self, state: ProxyState, transactions: OpenTransactions) -> None:
        self._state, self._clients, self._transactions = state, state.clients, transactions
        self._nonces = count(1)

    async def serve(self, command: Command, client_id: str | None) -> Command | None:
        """Serve a request of a broker; return the response, None to send none.

        Args:
            client_id: the client that is meant; None for any one of the group in the request.
        """
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            await self._check_transaction(command, client_id)
        elif command.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            return await self._answered(command, self._consume)
        elif command.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            return await self._answered(command, self._running_info)
        elif command.code == RequestCode.NOTIFY_UNSUBSCRIBE_LITE:
            self._notify_unsubscribe_lite(command)
        elif not command.is_oneway:
            remark = "clients of the gRPC service do not serve this request"
            return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        return None

    def _notify_unsubscribe_lite(self, command: Command) -> None:
        """Tell a consumer that another one has taken over a lite topic."""
        header = command.header(NotifyUnsubscribeLiteHeader)
        client = self._clients.get(header.client_id)
        if client is not None and client.stream is not None:
            asked = NotifyUnsubscribeLiteCommand(lite_topic=header.lite_topic)
            client.stream.send(TelemetryCommand(status=_OK, notify_unsubscribe_lite_command=asked))

    # Transactions

    async def _check_transaction(self, command: Command, client_id: str | None) -> None:
        """Ask a producer how the transaction of a half message ended; without a producer, the
        broker asks again.
        """
        header = command.header(CheckTransactionHeader)
        message = _message_of(command)
        transaction_id = header.transaction_id or message.message_id
        producer = self._producer(message.topic, client_id)
        stream = None if producer is None else producer.stream
        if producer is None or stream is None:
            return
        positions = (
            header.broker_name or "",
            header.tran_state_table_offset,
            header.commit_log_offset,
        )
        now, owner = self._state.now(), producer.owner
        key = TransactionKey(message.topic, transaction_id, producer.client_id)
        self._transactions.put(key, positions, owner, now)
        asked = RecoverOrphanedTransactionCommand(
            message=await _outgoing(message, now), transaction_id=transaction_id
        )
        stream.send(TelemetryCommand(status=_OK, recover_orphaned_transaction_command=asked))

    def _producer(self, topic: str, client_id: str | None) -> GrpcClient | None:
        """Return the producer that is meant, or another one if it cannot be reached."""
        found = None if client_id is None else self._clients.get(client_id)
        if found is not None and found.stream is not None:
            return found
        return self._clients.producer_of(topic)

    # Requests of administrators

    async def _answered(self, command: Command, serve: _Serve) -> Command:
        """Return the response to a request to a consumer that must answer it itself."""
        header = command.header(ConsumerHeader)
        client = self._clients.get(header.client_id)
        if client is None or client.stream is None:
            remark = f"the consumer <{header.client_id}> has no Telemetry stream"
            return response(command, ResponseCode.SYSTEM_ERROR, remark=remark)
        try:
            async with asyncio.timeout(_PATIENCE):
                body = await serve(command, client, client.stream)
        except TimeoutError:
            remark = f"the consumer <{header.client_id}> has not answered within {_PATIENCE:g} s"
            return response(command, ResponseCode.CONSUME_MSG_TIMEOUT, remark=remark)
        return response(command, body=body)

    async def _consume(self, command: Command, _client: GrpcClient, stream: CommandStream) -> Body:
        """Have a consumer consume one message."""
        begin, nonce, message = self._state.now(), self._nonce(), _message_of(command)
        asked = VerifyMessageCommand(nonce=nonce, message=await _outgoing(message, begin))
        answer = await stream.ask(TelemetryCommand(status=_OK, verify_message_command=asked), nonce)
        result = _RESULTS.get(answer.status.code, "CR_THROW_EXCEPTION")
        took = self._state.now() - begin
        return encode_body(DirectResult(result, answer.status.message or None, took))

    async def _running_info(
        self, command: Command, client: GrpcClient, stream: CommandStream
    ) -> Body:
        """Describe a consumer; its threads only if that is requested."""
        (data,) = client.heartbeat.consumer_data_set
        settings, caller = client.settings, client.caller
        info: dict[str, object] = {
            "properties": {
                "PROP_CONSUME_TYPE": data.consume_type,
                "PROP_CLIENT_VERSION": settings.user_agent.version,
                "PROP_CONSUMEORDERLY": str(settings.subscription.fifo).lower(),
                "consumerGroup": data.group_name,
                "clientAddress": caller.address,
            },
            "subscriptionSet": data.subscription_data_set,
            "mqTable": {},
            "mqPopTable": {},
            "statusTable": {},
            "userConsumerInfo": {},
        }
        if command.header(ConsumerHeader).jstack_enable:
            nonce = self._nonce()
            asked = PrintThreadStackTraceCommand(nonce=nonce)
            answer = await stream.ask(
                TelemetryCommand(status=_OK, print_thread_stack_trace_command=asked), nonce
            )
            info["jstack"] = answer.thread_stack_trace.thread_stack_trace
        return encode_with_table(info)

    def _nonce(self) -> str:
        return str(next(self._nonces))


async def _outgoing(message: ReceivedMessage, now: int) -> Message:
    """Return a message as a client gets it; a large one is made in another thread."""
    make = partial(outgoing_message, message, None, now, message.topic)
    is_large = len(message.body) > _LARGE or bool(message.sys_flag & COMPRESSED)
    return await asyncio.to_thread(make) if is_large else make()


def _message_of(command: Command) -> ReceivedMessage:
    """Return the message in the body of a request.

    Raises:
        FormatError: the body is not one record.
    """
    found = next(decode_stored(command.body, ""), None)
    if found is None:
        raise FormatError(f"request {command.code} of a broker has no message")
    return found
