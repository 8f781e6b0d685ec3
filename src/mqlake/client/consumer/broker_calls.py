"""The requests of a consumer to brokers: pull messages, read and commit offsets.

Upstream: `MQClientAPIImpl`, `PullAPIWrapper`.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mqlake.client.cluster import MASTER
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.retried import send_to_retry_topic
from mqlake.client.errors import BrokerError, NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_run, in_logic_queue
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body, Command, oneway, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.protocol.headers.pull import COMMITS_OFFSET, PullAnswerHeader, PullHeader
from mqlake.protocol.headers.send import SendBackHeader
from mqlake.protocol.logic_queues.mapping import is_logical
from mqlake.protocol.namespace import Namespace
from mqlake.remoting.errors import ConnectionFailedError

_TIMEOUT = 5.0
_PULL_TIMEOUT = 30.0


class PullStatus(Enum):
    """How a pull ended."""

    FOUND = 1
    NO_NEW = 2
    NO_MATCHED = 3
    OFFSET_ILLEGAL = 4


_PULL_STATUS: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


class Pulled(NamedTuple):
    """The answer to a pull.

    Attributes:
        data: the records, consecutively.
        next_offset: the offset of the next pull.
        min_offset, max_offset: the offsets of the queue.
    """

    status: PullStatus
    data: Body
    next_offset: int
    min_offset: int
    max_offset: int


class BrokerCalls:
    """The requests of one consumer of one group.

    Args:
        namespace: the prefix that is removed from the topics of messages.

    Attributes:
        group: the name, as brokers know it.
    """

    def __init__(self, instance: ClientInstance, group: str, namespace: Namespace) -> None:
        self._instance, self.group, self._namespace = instance, group, namespace
        self._read_from: dict[MessageQueue, int] = {}

    async def pull(self, queue: MessageQueue, header: PullHeader) -> Pulled:
        """Read a queue; wait for messages if the header says so.

        Raises:
            MqlakeError: the broker does not answer, refuses, or sends an invalid answer.
        """
        address = await self._to_read(queue)
        if address != self._instance.routes.master_of(queue):
            # Offsets are committed by their own requests, because a slave may lag.
            header.sys_flag &= ~COMMITS_OFFSET
        command = request(RequestCode.PULL_MESSAGE, header)
        try:
            answer = await self._instance.cluster.client.request(address, command, _PULL_TIMEOUT)
        except ConnectionFailedError:
            await self._lost(queue)
            raise
        status = _PULL_STATUS.get(answer.code)
        if status is None:
            # A slave refuses to serve the pull: the next pull goes to the master.
            self._read_from.pop(queue, None)
            await self._note_leader(queue, answer.code)
            raise BrokerError(answer.code, answer.remark or f"{address}: code {answer.code}")
        found = answer.header(PullAnswerHeader)
        self._read_from[queue] = found.suggest_which_broker_id
        data = answer.body if status is PullStatus.FOUND else b""
        if found.offset_delta is not None and is_logical(queue.broker_name):
            data = in_logic_queue(data, queue.queue_id, found.offset_delta)
        return Pulled(status, data, found.next_begin_offset, found.min_offset, found.max_offset)

    def decode(
        self, data: Body, queue: MessageQueue, first: int
    ) -> tuple[list[ConsumedMessage], int | None]:
        """Return the messages of a pull up to the first bytes that are not a record.

        The second value is the queue offset of the last of them if there are such bytes, else None.

        Args:
            first: the queue offset that was requested. Messages of an inner batch that come before
                it are left out.

        Raises:
            FormatError: there are such bytes, and no message before them.
        """
        messages, end = decode_run(data, queue.broker_name, ConsumedMessage, first)
        if self._namespace.name:
            for message in messages:
                message.topic = self._namespace.unwrap(message.topic)
        return messages, messages[-1].queue_offset if end < len(data) else None

    async def _lost(self, queue: MessageQueue) -> None:
        """Find another broker of the same name: the one that was asked does not answer."""
        self._read_from.pop(queue, None)
        await self._instance.routes.load(queue.topic)

    async def _to_read(self, queue: MessageQueue) -> str:
        routes, broker_id = self._instance.routes, self._read_from.get(queue, MASTER)
        address = routes.to_read(queue, broker_id)
        if address is None:
            await routes.load(queue.topic)
            address = routes.to_read(queue, broker_id)
        if address is None:
            raise NoRouteError(
                f"broker {queue.broker_name} is not in the route of topic {queue.topic}"
            )
        return address

    def knows(self, queue: MessageQueue) -> bool:
        """Return whether the address of a queue's broker is known."""
        return self._instance.routes.to_read(queue, MASTER) is not None

    # Offsets

    async def offset_of_group(self, queue: MessageQueue) -> int | None:
        """Return the offset that a group has committed for a queue, None if the broker has none.

        Raises:
            MqlakeError: the broker does not answer. That means neither offset 0 nor no offset.
        """
        header = QueryConsumerOffsetHeader(
            consumer_group=self.group, topic=queue.topic, queue_id=queue.queue_id
        )
        try:
            answer = await self._ask_any(queue, RequestCode.QUERY_CONSUMER_OFFSET, header)
        except RemotingError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return answer.header(OffsetHeader).offset

    async def note_offset(self, queue: MessageQueue, offset: int) -> None:
        """Commit an offset without waiting for an acknowledgement.

        Raises:
            MqlakeError: the request cannot be sent.
        """
        command = oneway(RequestCode.UPDATE_CONSUMER_OFFSET, self._commit(queue, offset))
        await self._instance.cluster.client.oneway(self._any(queue), command)

    async def commit_offset(self, queue: MessageQueue, offset: int) -> None:
        """Commit an offset; return once the broker has acknowledged it.

        Raises:
            MqlakeError: the broker does not acknowledge it.
        """
        header = self._commit(queue, offset)
        await self._ask_any(queue, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    def _commit(self, queue: MessageQueue, offset: int) -> UpdateConsumerOffsetHeader:
        return UpdateConsumerOffsetHeader(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )

    async def end_of(self, queue: MessageQueue) -> int:
        """Return the next queue offset of a queue."""
        header = QueueHeader(topic=queue.topic, queue_id=queue.queue_id)
        answer = await self._ask_any(queue, RequestCode.GET_MAX_OFFSET, header)
        return answer.header(OffsetHeader).offset

    async def start_of(self, queue: MessageQueue) -> int:
        """Return the first queue offset that is still in a queue."""
        header = QueueHeader(topic=queue.topic, queue_id=queue.queue_id)
        answer = await self._ask_any(queue, RequestCode.GET_MIN_OFFSET, header)
        # RocketMQ reports -1 as the first offset of a batch consume queue without messages.
        return max(0, answer.header(OffsetHeader).offset)

    async def offset_at(self, queue: MessageQueue, milliseconds: int) -> int:
        """Return the queue offset of the first message stored at a time or later."""
        header = SearchOffsetHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=milliseconds
        )
        answer = await self._ask_any(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return answer.header(OffsetHeader).offset

    # Messages

    async def send_back(self, message: ReceivedMessage, delay_level: int, most: int) -> None:
        """Have a message redelivered later through the group's retry topic.

        Args:
            delay_level: 0 for delays that grow, below 0 for the dead-letter topic.
            most: the maximum number of redeliveries before the message becomes a dead letter.

        Raises:
            MqlakeError: the broker has not accepted it.
        """
        if is_logical(message.queue.broker_name):
            await send_to_retry_topic(self._instance, self.group, message, delay_level, most)
            return
        header = SendBackHeader(
            offset=message.physical_offset,
            group=self.group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=message.queue.topic,
            max_reconsume_times=most,
        )
        await self._ask_master(message.queue, RequestCode.CONSUMER_SEND_MSG_BACK, header)

    async def _ask(self, address: str, code: RequestCode, header: Header) -> Command:
        return await self._instance.cluster.ask(address, code, header, b"", _TIMEOUT)

    async def _ask_master(self, queue: MessageQueue, code: RequestCode, header: Header) -> Command:
        try:
            return await self._ask(self._master(queue), code, header)
        except RemotingError as error:
            await self._note_leader(queue, error.code)
            raise

    async def _ask_any(self, queue: MessageQueue, code: RequestCode, header: Header) -> Command:
        """Ask a queue's master; without one, a slave of its name.

        A slave passes accepted offsets to its master when the master is back.
        """
        try:
            return await self._ask(self._any(queue), code, header)
        except ConnectionFailedError:
            await self._lost(queue)
            raise
        except RemotingError as error:
            await self._note_leader(queue, error.code)
            raise

    async def _note_leader(self, queue: MessageQueue, code: int) -> None:
        """Request the route of a logic queue again, because another broker leads it now."""
        if code == ResponseCode.NOT_LEADER_FOR_QUEUE:
            await self._instance.routes.load(queue.topic)

    def _any(self, queue: MessageQueue) -> str:
        address = self._instance.routes.to_read(queue, MASTER)
        if address is None:
            raise NoRouteError(
                f"broker {queue.broker_name} is not in the route of topic {queue.topic}"
            )
        return address

    def _master(self, queue: MessageQueue) -> str:
        routes = self._instance.routes
        name = routes.broker_of(queue)
        address = routes.master(name)
        if address is None:
            raise NoRouteError(f"broker {name} has no master now")
        return address
