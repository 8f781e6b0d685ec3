"""Pop messages, and acknowledge each of them at the broker.

The broker shares messages out, not queues: any number of consumers may read a topic, and each
message that is not acknowledged in time goes to another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Self

from mqlake.client.cluster import MASTER
from mqlake.client.consumer.pop_calls import PopCalls, PopWish
from mqlake.client.consumer.subscriptions import ALL, Wanted
from mqlake.client.errors import ClientError, ClosedError, NoRouteError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.message import ReceivedMessage
from mqlake.client.routes import TopicRoute
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.namespace import Namespace
from mqlake.protocol.naming import group_fault
from mqlake.protocol.receipts import Receipt
from mqlake.protocol.strategies import ALL_QUEUES

_AGAIN = 0.2

_log = logging.getLogger(__name__)


class PoppedMessage(ReceivedMessage, eq=False):
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
        namespace: to which its topics and its group belong, as for `Consumer`.

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
        namespace: str = "",
    ) -> None:
        self._namespace = Namespace(namespace)
        group = self._namespace.wrap(group)
        if fault := group_fault(group):
            raise ClientError(fault)
        self.group, self._name_servers, self._instance_name = group, name_servers, instance
        wishes = {topics: ALL} if isinstance(topics, str) else topics
        self._wanted = [
            Wanted(self._namespace.wrap(topic), wish, 0) for topic, wish in wishes.items()
        ]
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
        broker_name, _ = masters[turn // len(self._wanted) % len(masters)]
        queue = MessageQueue(wanted.topic, broker_name, ALL_QUEUES)
        wish = PopWish(most, self._invisible, wait, self._is_from_first)
        pops = PopCalls(instance, self.group)
        popped, is_refused = await pops.pop(queue, wanted, wish, PoppedMessage)
        if is_refused:
            await asyncio.sleep(_AGAIN)  # the broker could not let this request wait
        for message, receipt in popped:
            message.receipt = receipt
        messages = [message for message, _ in popped]
        mine = [message for message in messages if wanted.takes(message)]
        for message in messages:
            message.topic = self._namespace.unwrap(message.topic)
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
        receipt, pops = _receipt_of(message), PopCalls(self._require_open(), self.group)
        await pops.ack(message.queue, message.queue_offset, receipt)

    async def change_invisible(self, message: PoppedMessage, seconds: float) -> None:
        """Have a message come again after so many seconds from now, to whoever asks then.

        Raises:
            ClientError: the broker does not know it (any more).
        """
        receipt, pops = _receipt_of(message), PopCalls(self._require_open(), self.group)
        message.receipt = await pops.change_invisible(
            message.queue, message.queue_offset, receipt, seconds
        )

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


def _receipt_of(message: PoppedMessage) -> Receipt:
    if message.receipt is None:
        raise ClientError(f"message {message.message_id} was not popped")
    return message.receipt
