"""The requests to brokers about one delivery of a message.

Upstream: `ConsumerProcessor`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.grpc.messages import Code
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.pop import (
    AckHeader,
    ChangeInvisibleTimeAnswerHeader,
    ChangeInvisibleTimeHeader,
)
from mqlake.protocol.headers.send import SendBackHeader
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.consuming.message_handle import UNKNOWN_OFFSET, MessageHandle
from mqlake.proxy.errors import StatusError, check
from mqlake.proxy.state import ProxyState

_PATIENCE: Final = 3.0
"""Seconds within which a broker must answer."""
_DEAD: Final = -1
"""Delay level that stands for the dead-letter topic."""


class GroupDelivery(NamedTuple):
    """One delivery of a message.

    Attributes:
        caller: the client that received it.
        group: the consumer group.
        topic: the topic that was requested.
        message_id: the id of the message.
        handle: its newest handle.
        lite_topic: the lite topic that the message is in, None for no lite topic.
    """

    caller: Caller
    group: str
    topic: str
    message_id: str
    handle: MessageHandle
    lite_topic: str | None = None


class Deliveries:
    """Asks brokers. All functions raise `StatusError`, and what `BrokerPort` raises."""

    def __init__(self, state: ProxyState) -> None:
        self._brokers, self._now = state.brokers, state.now

    async def acknowledge(self, delivery: GroupDelivery) -> None:
        """Acknowledge a message."""
        self._check_invisible(delivery.handle)
        receipt = delivery.handle.receipt
        header = AckHeader(
            consumer_group=delivery.group,
            topic=delivery.handle.real_topic(delivery.topic, delivery.group),
            queue_id=receipt.queue_id,
            extra_info=receipt.text,
            offset=receipt.queue_offset,
            lite_topic=delivery.lite_topic,
        )
        await self._ask(delivery, RequestCode.ACK_MESSAGE, header)

    async def change_invisible(
        self, delivery: GroupDelivery, invisible: int, *, is_suspended: bool = False
    ) -> MessageHandle:
        """Let a message become visible so many milliseconds from now; return its new handle.

        Args:
            is_suspended: whether the redelivery is not counted.
        """
        self._check_invisible(delivery.handle)
        receipt = delivery.handle.receipt
        header = ChangeInvisibleTimeHeader(
            consumer_group=delivery.group,
            topic=delivery.handle.real_topic(delivery.topic, delivery.group),
            queue_id=receipt.queue_id,
            extra_info=receipt.text,
            offset=receipt.queue_offset,
            invisible_time=invisible,
            suspend=True if is_suspended else None,
            lite_topic=delivery.lite_topic,
        )
        answer = await self._ask(delivery, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        changed = answer.header(ChangeInvisibleTimeAnswerHeader)
        new = receipt._replace(
            start_offset=receipt.queue_offset,
            pop_time=changed.pop_time,
            invisible_time=changed.invisible_time,
            revive_queue_id=changed.revive_qid,
        )
        return delivery.handle._replace(receipt=new)

    async def forward_to_dead_letters(self, delivery: GroupDelivery) -> None:
        """Put a message into the dead-letter topic of its group, then acknowledge it."""
        if delivery.handle.physical_offset == UNKNOWN_OFFSET:
            reason = "the receipt handle lacks the physical offset of the message"
            raise StatusError(Code.INVALID_RECEIPT_HANDLE, reason)
        header = SendBackHeader(
            offset=delivery.handle.physical_offset,
            group=delivery.group,
            delay_level=_DEAD,
            origin_msg_id=delivery.message_id,
            origin_topic=delivery.handle.real_topic(delivery.topic, delivery.group),
            max_reconsume_times=0,
        )
        await self._ask(delivery, RequestCode.CONSUMER_SEND_MSG_BACK, header)
        await self.acknowledge(delivery)

    def _check_invisible(self, handle: MessageHandle) -> None:
        if handle.is_expired(self._now()):
            raise StatusError(Code.INVALID_RECEIPT_HANDLE, "receipt handle is expired")

    async def _ask(self, delivery: GroupDelivery, code: RequestCode, header: Header) -> Command:
        broker = delivery.handle.receipt.broker_name
        command = request(code, header)
        return check(await self._brokers.request(broker, command, delivery.caller, _PATIENCE))
