"""Pop messages, acknowledge them, and change their invisible time.

Upstream: `MQClientAPIImpl.popMessageAsync`, `ackMessageAsync`, `changeInvisibleTimeAsync`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from mqlake.client.consumer.pop.popped_receipts import with_receipts
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.errors import BrokerError, NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.handles.receipts import Receipt
from mqlake.protocol.header import Header
from mqlake.protocol.headers.pop import (
    AckHeader,
    ChangeInvisibleTimeAnswerHeader,
    ChangeInvisibleTimeHeader,
    PopAnswerHeader,
    PopHeader,
)
from mqlake.storage.clock import SystemClock

_FIRST, _LAST = 0, 1
_TIMEOUT = 3.0
_NOTHING = frozenset(
    (ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT, ResponseCode.POLLING_FULL)
)

M = TypeVar("M", bound=ReceivedMessage)


class PopWish(NamedTuple):
    """The parameters of each pop.

    Attributes:
        most: the maximum number of messages, up to 32.
        invisible: seconds for which no other consumer gets them.
        wait: seconds to wait for messages.
        is_from_first: whether a new group begins at the first message of a queue.
    """

    most: int
    invisible: float
    wait: float
    is_from_first: bool


class PopCalls:
    """The requests of one consumer of one group. Topics are as brokers know them."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance, self._group = instance, group

    async def pop(
        self, queue: MessageQueue, wanted: SelectedTopic, wish: PopWish, kind: type[M]
    ) -> tuple[list[tuple[M, Receipt]], bool]:
        """Return messages with their receipts, and whether the broker was unable to hold the
        request.

        Args:
            queue: with the id ALL_QUEUES, all queues of its broker.
            kind: `ReceivedMessage`, or a subclass of it.

        Raises:
            MqlakeError: the broker does not answer, refuses, or sends an invalid answer.
        """
        header = PopHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=wish.most,
            invisible_time=int(wish.invisible * 1000),
            poll_time=int(wish.wait * 1000),
            init_mode=_FIRST if wish.is_from_first else _LAST,
            born_time=SystemClock().milliseconds(),
            exp_type=wanted.expression_type,
            exp=wanted.expression,
        )
        address, command = self._master(queue), request(RequestCode.POP_MESSAGE, header)
        client = self._instance.cluster.client
        answer = await client.request(address, command, wish.wait + _TIMEOUT)
        if answer.code in _NOTHING:
            return [], answer.code == ResponseCode.POLLING_FULL
        _require_success(answer, address)
        found = decode_messages(answer.body, queue.broker_name, kind)
        fields = answer.header(PopAnswerHeader)
        return list(with_receipts(fields, found, queue.broker_name, self._group)), False

    async def ack(self, queue: MessageQueue, offset: int, receipt: Receipt) -> None:
        """Acknowledge a message of a queue.

        Raises:
            MqlakeError: the broker does not answer, or does not know the message (any more).
        """
        header = AckHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            extra_info=receipt.text,
            offset=offset,
        )
        await self._ask(queue, RequestCode.ACK_MESSAGE, header)

    async def change_invisible(
        self, queue: MessageQueue, offset: int, receipt: Receipt, seconds: float
    ) -> Receipt:
        """Have a message redelivered after so many seconds; return its new receipt.

        Raises:
            MqlakeError: the broker does not answer, or does not know the message (any more).
        """
        header = ChangeInvisibleTimeHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            extra_info=receipt.text,
            offset=offset,
            invisible_time=int(seconds * 1000),
        )
        answer = await self._ask(queue, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        changed = answer.header(ChangeInvisibleTimeAnswerHeader)
        return receipt._replace(
            start_offset=offset,
            pop_time=changed.pop_time,
            invisible_time=changed.invisible_time,
            revive_queue_id=changed.revive_qid,
        )

    async def _ask(self, queue: MessageQueue, code: RequestCode, header: Header) -> Command:
        address = self._master(queue)
        command = request(code, header)
        answer = await self._instance.cluster.client.request(address, command, _TIMEOUT)
        _require_success(answer, address)
        return answer

    def _master(self, queue: MessageQueue) -> str:
        address = self._instance.routes.master(queue.broker_name)
        if address is None:
            raise NoRouteError(f"broker {queue.broker_name} has no master now")
        return address


def _require_success(answer: Command, address: str) -> None:
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark or f"{address}: code {answer.code}")
