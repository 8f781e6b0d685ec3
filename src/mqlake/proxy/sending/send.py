"""SendMessage (upstream: `SendMessageActivity`, `ProducerProcessor`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.topic_names import OF_GROUPS
from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Code,
    Message,
    MessageType,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
)
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.proxy.brokers.port import BrokerPort, Caller
from mqlake.proxy.errors import OK, CallStatus, StatusError, check
from mqlake.proxy.names import topic_of
from mqlake.proxy.sending.checks import MessageChecks
from mqlake.proxy.sending.outgoing_properties import Prepared, prepared
from mqlake.proxy.sending.plain_messages import PlainMessages
from mqlake.proxy.sending.queue_choice import ChosenQueue, TargetChoice
from mqlake.proxy.sending.send_request import SendCommand
from mqlake.proxy.sending.transactions import OpenTransactions, TransactionKey
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.state import ProxyState
from mqlake.proxy.topic_queues import MIXED
from mqlake.remoting.shares import owner_of

_AT_ONCE: Final = 64
"""Messages of a batch that are checked in one round of the loop."""
_IN_BATCHES: Final = (MessageType.NORMAL, MessageType.FIFO)
_STORED: Final = {
    int(ResponseCode.SUCCESS): OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): CallStatus(
        Code.MASTER_PERSISTENCE_TIMEOUT, "the message is stored, but not yet on the disk"
    ),
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): CallStatus(
        Code.SLAVE_PERSISTENCE_TIMEOUT, "the message is stored, but not yet by a slave"
    ),
    int(ResponseCode.SLAVE_NOT_AVAILABLE): CallStatus(
        Code.HA_NOT_AVAILABLE, "the message is stored, but slaves are missing"
    ),
}
"""What the answers mean with which a broker has stored a message."""


class SendCalls:
    """Sends messages.

    Args:
        transactions: notes the half messages that are sent.
    """

    def __init__(self, state: ProxyState, transactions: OpenTransactions) -> None:
        self._state, self._brokers, self._transactions = state, state.brokers, transactions
        self._checks, self._choice = MessageChecks(state.settings), TargetChoice()
        self._plain = PlainMessages(state.settings)

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        return (ServedMethod("SendMessage", self._send, begins_at_once=True),)

    async def _send(
        self, call: Call, caller: Caller, request: SendMessageRequest
    ) -> SendMessageResponse:
        messages = request.messages
        if not messages:
            raise StatusError(Code.MESSAGE_CORRUPTED, "no message to send")
        topic = topic_of(messages[0].topic)
        sent = await self._prepared(messages, topic, caller)
        first = sent[0]
        check_may_send(self._brokers, topic, caller)
        target = await self._brokers.destination(topic)
        if self._state.settings.enable_topic_message_type_check:
            _check_type(first.type, target.message_type, topic)
        queue = self._choice.choose(target, first.group)
        asked = SendCommand(topic, queue.queue_id, sent)
        seconds = self._state.patience(call)
        answer = await self._brokers.request(queue.broker, asked, caller, seconds)
        return self._response(answer, topic, queue, sent, caller)

    async def _prepared(
        self, messages: Sequence[Message], topic: str, caller: Caller
    ) -> tuple[Prepared, ...]:
        """Check messages, some in each round of the event loop; return them as a broker gets them.

        Raises:
            StatusError: one cannot be sent, or not together with the others.
        """
        most = self._state.settings.max_batch_messages
        if len(messages) > most:
            reason = f"a call may send {most} messages, not {len(messages)}"
            raise StatusError(Code.MESSAGE_BODY_TOO_LARGE, reason)
        size = sum([len(message.body) for message in messages])
        if size > self._state.settings.max_message_size and len(messages) > 1:
            raise StatusError(Code.MESSAGE_BODY_TOO_LARGE, f"the bodies have {size} bytes together")
        host, now = caller.address.rpartition(":")[0].strip("[]"), self._state.now()
        sent: list[Prepared] = []
        for start in range(0, len(messages), _AT_ONCE):
            if start:
                await asyncio.sleep(0)
            some = messages[start : start + _AT_ONCE]
            _check_topic(messages[0], some[0])
            found = self._plain.prepared(some, topic, host, now)
            if found is not None:
                sent += found
                _check_together(sent[0], found[0])
                continue
            for message in some:
                _check_topic(messages[0], message)
                sent.append(prepared(message, topic, host, self._checks, now))
                if len(messages) > 1:
                    _check_together(sent[0], sent[-1])
        return tuple(sent)

    def _response(
        self,
        answer: Command,
        topic: str,
        queue: ChosenQueue,
        sent: Sequence[Prepared],
        caller: Caller,
    ) -> SendMessageResponse:
        outcome = _STORED.get(answer.code)
        if outcome is None:
            check(answer)
            raise AssertionError
        header, status = answer.header(SendMessageResponseHeader), outcome.status
        if sent[0].type is MessageType.TRANSACTION:
            self._note_half(topic, queue.broker, header, caller)
        found = SendMessageResponse(status=status)
        # One entry for all takes a third of the time: it is copied.
        entry = SendResultEntry(
            status=status,
            transaction_id=header.transaction_id,
            recall_handle=header.recall_handle,
        )
        for number, each in enumerate(sent):
            entry.message_id, entry.offset = each.message_id, header.queue_offset + number
            found.entries.append(entry)
        return found

    def _note_half(
        self, topic: str, broker: str, header: SendMessageResponseHeader, caller: Caller
    ) -> None:
        """Note where a half message is, so that its transaction can be ended."""
        _, physical_offset = decode_message_id(header.msg_id)
        positions = broker, header.queue_offset, physical_offset
        owner, now = owner_of(caller.address), self._state.now()
        key = TransactionKey(topic, header.transaction_id or "", caller.client_id)
        self._transactions.put(key, positions, owner, now)


def check_may_send(brokers: BrokerPort, topic: str, caller: Caller) -> None:
    """Refuse a caller who may not send to a topic, before it learns whether the topic exists.

    Raises:
        RemotingError: NO_PERMISSION.
    """
    if brokers.is_authenticating:
        asked = request(RequestCode.SEND_MESSAGE_V2, {"a": topic, "b": topic})
        brokers.check(asked, caller)


def _check_topic(first: Message, other: Message) -> None:
    if other is not first and other.topic != first.topic:
        raise StatusError(Code.MESSAGE_CORRUPTED, "the messages are of different topics")


def _check_together(first: Prepared, other: Prepared) -> None:
    """Refuse messages that cannot be in one batch: its queue and its flags are those of the first.

    Brokers ignore all other properties of the messages of a batch.
    """
    if first.type not in _IN_BATCHES or other.type not in _IN_BATCHES:
        reason = f"several messages in one call are NORMAL or FIFO, not {other.type.name}"
    elif (first.type, first.group) != (other.type, other.group):
        reason = "the messages are of different types or groups"
    elif first.sys_flag != other.sys_flag:
        reason = "the bodies have different encodings"
    else:
        return
    raise StatusError(Code.MESSAGE_CORRUPTED, reason)


def _check_type(found: MessageType, expected: str, topic: str) -> None:
    """Refuse a message that its topic is not for."""
    if topic.startswith(OF_GROUPS) or expected == MIXED or found.name == (expected or "NORMAL"):
        return
    reason = (
        f"TopicMessageType validate failed, the expected type is {expected or 'NORMAL'}, "
        f"but actual type is {found.name}"  # UNSPECIFIED: the topic does not exist.
    )
    raise StatusError(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, reason)
