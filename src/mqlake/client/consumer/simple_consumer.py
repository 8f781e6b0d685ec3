"""Pop messages, and acknowledge each of them at the broker.

Upstream: `MQClientAPIImpl.popMessageAsync`, `ackMessageAsync`, `changeInvisibleTimeAsync`.

The broker shares messages out, not queues: any number of consumers may read a topic, and each
message that is not acknowledged in time goes to another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Self

from mqlake.client.cluster import MASTER
from mqlake.client.consumer.subscriptions import ALL, Wanted
from mqlake.client.errors import BrokerError, ClientError, ClosedError, NoRouteError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages
from mqlake.client.routes import TopicRoute
from mqlake.errors import MqlakeError
from mqlake.formats.own_properties import POP_RECEIPT
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.pop import (
    AckHeader,
    ChangeInvisibleTimeAnswerHeader,
    ChangeInvisibleTimeHeader,
    PopAnswerHeader,
    PopHeader,
)
from mqlake.protocol.naming import group_fault
from mqlake.protocol.receipts import Receipt, parse_receipt
from mqlake.protocol.retry_topics import mark_of, marked, normal_topic
from mqlake.storage.clock import SystemClock

_ALL_QUEUES = -1
_ANY_REVIVE_QUEUE = 2**31
_FIRST, _LAST = 0, 1
_TIMEOUT = 3.0
_AGAIN = 0.2
_NOTHING = frozenset(
    (ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT, ResponseCode.POLLING_FULL)
)


_log = logging.getLogger(__name__)


class PoppedMessage(ReceivedMessage, kw_only=True, eq=False):
    """A message that nobody else gets for a while.

    Attributes:
        receipt: by which the broker knows it.
    """

    receipt: Receipt | None = None

    @property
    def invisible_until(self) -> int:
        """Return when another one may get it: milliseconds since 1970, by the broker's clock."""
        return self.receipt.pop_time + self.receipt.invisible_time if self.receipt else 0


class SimpleConsumer:
    """Pops messages; for the tasks of one event loop.

        async with SimpleConsumer("localhost:9876", "workers", "jobs") as consumer:
            for message in await consumer.receive():
                ...
                await consumer.ack(message)

    Needs brokers of RocketMQ 5, or mqlake's.

    Args:
        name_servers: "host:port", several separated by `;`.
        group: the consumer group.
        topics: an expression by topic, as for `Consumer`.
        invisible: seconds that a message is this consumer's.
        is_from_first: whether a new group begins at the first message of a queue.
        instance: a name that tells the clients of one machine apart.

    Raises:
        ClientError: the name of the group cannot be used.
    """

    def __init__(
        self,
        name_servers: str,
        group: str,
        topics: Mapping[str, str] | str,
        *,
        invisible: float = 60.0,
        is_from_first: bool = False,
        instance: str = DEFAULT_INSTANCE,
    ) -> None:
        if fault := group_fault(group):
            raise ClientError(fault)
        self.group, self._name_servers, self._instance_name = group, name_servers, instance
        wishes = {topics: ALL} if isinstance(topics, str) else topics
        self._wanted = [Wanted(topic, wish, 0) for topic, wish in wishes.items()]
        self._invisible, self._is_from_first = invisible, is_from_first
        self._turns = count()
        self._instance: ClientInstance | None = None

    async def __aenter__(self) -> Self:
        self._instance = share_instance(self._name_servers, self._instance_name, None)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections; what is not acknowledged comes to somebody else."""
        instance, self._instance = self._instance, None
        if instance is not None:
            await give_back(instance)

    async def receive(self, most: int = 32, wait: float = 15.0) -> Sequence[PoppedMessage]:
        """Return some messages of one topic on one broker; each call asks the next ones.

        Args:
            most: how many, 32 at most.
            wait: seconds to wait for messages, or for a name server to know the topic.

        Raises:
            ClientError: there is no broker of the topic, or it refuses.
        """
        instance, turn = self._require_open(), next(self._turns)
        wanted = self._wanted[turn % len(self._wanted)]
        route = await _route(instance, wanted.topic, wait)
        masters = [
            (name, addresses[MASTER])
            for name, addresses in sorted(route.addresses.items())
            if MASTER in addresses
        ]
        if not masters:
            raise NoRouteError(f"topic {wanted.topic}: no broker of it has a master now")
        broker_name, address = masters[turn // len(self._wanted) % len(masters)]
        header = PopHeader(
            consumer_group=self.group,
            topic=wanted.topic,
            queue_id=_ALL_QUEUES,
            max_msg_nums=most,
            invisible_time=int(self._invisible * 1000),
            poll_time=int(wait * 1000),
            init_mode=_FIRST if self._is_from_first else _LAST,
            born_time=SystemClock().milliseconds(),
            exp_type=wanted.expression_type,
            exp=wanted.expression,
        )
        command = request(RequestCode.POP_MESSAGE, header)
        answer = await instance.cluster.client.request(address, command, wait + _TIMEOUT)
        if answer.code == ResponseCode.POLLING_FULL:
            await asyncio.sleep(_AGAIN)  # the broker could not let this request wait
        if answer.code in _NOTHING:
            return ()
        _require_success(answer, address)
        messages = list(_with_receipts(answer, broker_name, self.group))
        mine = [message for message in messages if wanted.takes(message)]
        for message in messages:
            if message not in mine:  # an equal hash of another tag
                await self._ack_unwanted(message)
        return mine

    async def _ack_unwanted(self, message: PoppedMessage) -> None:
        try:
            await self.ack(message)
        except MqlakeError as error:
            _log.debug("message %s comes again, unwanted: %s", message.message_id, error)

    async def ack(self, message: PoppedMessage) -> None:
        """Say that a message is done.

        Raises:
            ClientError: the broker does not know it (any more): somebody else gets it.
        """
        receipt = _receipt_of(message)
        header = AckHeader(
            consumer_group=self.group,
            topic=message.queue.topic,
            queue_id=message.queue.queue_id,
            extra_info=receipt.text,
            offset=message.queue_offset,
        )
        await self._ask(message, RequestCode.ACK_MESSAGE, header)

    async def change_invisible(self, message: PoppedMessage, seconds: float) -> None:
        """Have a message come again after so many seconds from now, to whoever asks then.

        Raises:
            ClientError: the broker does not know it (any more).
        """
        receipt = _receipt_of(message)
        header = ChangeInvisibleTimeHeader(
            consumer_group=self.group,
            topic=message.queue.topic,
            queue_id=message.queue.queue_id,
            extra_info=receipt.text,
            offset=message.queue_offset,
            invisible_time=int(seconds * 1000),
        )
        answer = await self._ask(message, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        changed = answer.header(ChangeInvisibleTimeAnswerHeader)
        message.receipt = receipt._replace(
            start_offset=message.queue_offset,
            pop_time=changed.pop_time,
            invisible_time=changed.invisible_time,
            revive_queue_id=changed.revive_qid,
        )

    async def _ask(self, message: PoppedMessage, code: RequestCode, header: Header) -> Command:
        instance = self._require_open()
        address = instance.routes.master(message.queue.broker_name)
        if address is None:
            raise NoRouteError(f"broker {message.queue.broker_name} has no master now")
        answer = await instance.cluster.client.request(address, request(code, header), _TIMEOUT)
        _require_success(answer, address)
        return answer

    def _require_open(self) -> ClientInstance:
        if self._instance is None:
            raise ClosedError("the consumer is closed, or was not started")
        return self._instance


async def _route(instance: ClientInstance, topic: str, seconds: float) -> TopicRoute:
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await instance.routes.of(topic)
        except NoRouteError:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            await asyncio.sleep(_AGAIN)


def _with_receipts(answer: Command, broker_name: str, group: str) -> Iterator[PoppedMessage]:
    header = answer.header(PopAnswerHeader)
    starts: dict[tuple[str, str], int] = {}
    for part in (header.start_offset_info or "").split(";"):
        mark, _, rest = part.partition(" ")
        queue_id, _, start = rest.partition(" ")
        if start.isascii() and start.isdigit():
            starts[mark, queue_id] = int(start)
    for message in decode_messages(answer.body, broker_name, PoppedMessage):
        given = _given_receipt(message, header.pop_time)
        if given is not None:
            topic = marked(given.mark, normal_topic(message.topic, group), group)
            message.queue = MessageQueue(topic, broker_name, given.queue_id)
            message.receipt, message.queue_offset = given, given.queue_offset
            yield message
            continue
        queue, mark = message.queue, mark_of(message.queue.topic)
        message.receipt = Receipt(
            starts.get((mark, str(queue.queue_id)), message.queue_offset),
            header.pop_time,
            header.invisible_time,
            header.revive_qid,
            mark,
            broker_name,
            queue.queue_id,
            message.queue_offset,
        )
        yield message


def _given_receipt(message: PoppedMessage, pop_time: int) -> Receipt | None:
    """Return the receipt that the broker of RocketMQ 5 adds to a retried message.

    It gives such a message its original topic, and the receipt says where the message is. A receipt
    of an earlier pop is ignored.
    """
    text = message.properties.get(POP_RECEIPT)
    if text is None:
        return None
    try:
        receipt = parse_receipt(text, _ANY_REVIVE_QUEUE)
    except RemotingError:
        return None
    return receipt if receipt.pop_time == pop_time else None


def _receipt_of(message: PoppedMessage) -> Receipt:
    if message.receipt is None:
        raise ClientError(f"message {message.message_id} was not popped")
    return message.receipt


def _require_success(answer: Command, address: str) -> None:
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark or f"{address}: code {answer.code}")
