"""Pop messages, and acknowledge each of them at the broker.

The broker shares messages out, not queues: any number of consumers may read a topic, and a message
that is not acknowledged in time is delivered again, to any of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Self

from mqlake.client.cluster import MASTER
from mqlake.client.consumer.pop.calls import PopCalls, PopWish
from mqlake.client.consumer.statistics import POPPED, Statistics
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.client.errors import ClientError, ClosedError, NoRouteError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.message import ReceivedMessage
from mqlake.client.routes import TopicRoute
from mqlake.errors import MqlakeError
from mqlake.metrics.metric import Sample
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.handles.receipts import Receipt
from mqlake.protocol.namespace import Namespace
from mqlake.protocol.naming import group_fault
from mqlake.protocol.retry_topics import normal_topic
from mqlake.protocol.signature import Credentials
from mqlake.protocol.strategies import ALL_QUEUES
from mqlake.remoting.tls.options import ClientTls

_AGAIN = 0.2

_log = logging.getLogger(__name__)


class PoppedMessage(ReceivedMessage, eq=False):
    """A message that no other consumer gets for a while.

    Attributes:
        receipt: identifies the message to the broker.
        received_at: when it was received, in seconds of the event loop's clock.
    """

    receipt: Receipt | None = None
    received_at: float = 0.0

    @property
    def invisible_until(self) -> int:
        """Return when it is delivered again if it is not acknowledged: milliseconds since 1970,
        by the broker's clock.
        """
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
        topics: an expression for each topic, as for `Consumer`.
        invisible: seconds for which a message is invisible to other consumers.
        is_from_first: whether a new group begins at the first message of a queue.
        instance: a name that tells the clients of one machine apart.
        namespace: the namespace of its topics and its group, as for `Consumer`.
        tls: how its connections use TLS; None for clear text.
        credentials: sign its requests; None for brokers without authentication.

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
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._tls, self._credentials = tls, credentials
        self._namespace = Namespace(namespace)
        group = self._namespace.wrap(group)
        if fault := group_fault(group):
            raise ClientError(fault)
        self.group, self._name_servers, self._instance_name = group, name_servers, instance
        wishes = {topics: ALL} if isinstance(topics, str) else topics
        self._wanted = [
            SelectedTopic(self._namespace.wrap(topic), wish, 0) for topic, wish in wishes.items()
        ]
        self._invisible, self._is_from_first = invisible, is_from_first
        self._turns = count()
        self._instance: ClientInstance | None = None
        self._statistics: Statistics | None = None

    def samples(self) -> Sequence[Sample]:
        """Return its metrics, for `mqlake.client.metrics.ClientMetrics`: none before it starts."""
        found = self._statistics
        return () if found is None else found.samples(self.group, POPPED)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        # Totals count from the first start.
        self._statistics = self._statistics or Statistics(self._loop.time)
        self._instance = share_instance(
            self._name_servers,
            self._instance_name,
            None,
            tls=self._tls,
            credentials=self._credentials,
        )
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; messages that are not acknowledged go to other consumers.

        In a forked child this does nothing: the client belongs to the parent.
        """
        instance, self._instance = self._instance, None
        if instance is not None and not instance.fork_guard.is_child:
            await give_back(instance)

    async def receive(self, most: int = 32, wait: float = 15.0) -> Sequence[PoppedMessage]:
        """Return messages of one topic on one broker; each call asks the next topic and broker.

        Args:
            most: the maximum number, up to 32.
            wait: seconds to wait for messages, or until a name server knows the topic.

        Raises:
            ClientError: the topic has no broker, or the broker refuses.
        """
        instance, statistics = self._require_open()
        turn = next(self._turns)
        wanted = self._wanted[turn % len(self._wanted)]
        route = await _route(instance, wanted.topic, wait)
        masters = [
            (name, addresses[MASTER])
            for name, addresses in sorted(route.addresses.items())
            if MASTER in addresses
        ]
        if not masters:
            raise NoRouteError(f"topic {wanted.topic}: none of its brokers has a master now")
        broker_name, _ = masters[turn // len(self._wanted) % len(masters)]
        queue = MessageQueue(wanted.topic, broker_name, ALL_QUEUES)
        wish = PopWish(most, self._invisible, wait, self._is_from_first)
        pops = PopCalls(instance, self.group)
        asked = self._loop.time()
        popped, is_refused = await pops.pop(queue, wanted, wish, PoppedMessage)
        if is_refused:
            await asyncio.sleep(_AGAIN)  # The broker was unable to hold this request.
        now = self._loop.time()
        for message, receipt in popped:
            message.receipt, message.received_at = receipt, now
        messages = [message for message, _ in popped]
        mine = [message for message in messages if wanted.takes(message)]
        statistics.pulled(wanted.topic, len(mine), now - asked)
        for message in messages:
            message.topic = self._namespace.unwrap(message.topic)
            if message not in mine:  # The hash of another tag is equal.
                await self._ack_unwanted(message)
        return mine

    async def _ack_unwanted(self, message: PoppedMessage) -> None:
        try:
            await self._ack(message)
        except MqlakeError as error:
            _log.debug(
                "message %s, which has another tag, is redelivered: %s", message.message_id, error
            )

    async def ack(self, message: PoppedMessage) -> None:
        """Acknowledge a message.

        Raises:
            ClientError: the broker does not know it (any more): it is delivered again.
        """
        _, statistics = self._require_open()
        await self._ack(message)
        topic = normal_topic(message.queue.topic, self.group)
        statistics.finished(topic, self._loop.time() - message.received_at)

    async def _ack(self, message: PoppedMessage) -> None:
        instance, _ = self._require_open()
        receipt = _receipt_of(message)
        await PopCalls(instance, self.group).ack(message.queue, message.queue_offset, receipt)

    async def change_invisible(self, message: PoppedMessage, seconds: float) -> None:
        """Have a message redelivered after so many seconds from now, to any consumer.

        Raises:
            ClientError: the broker does not know the message (any more).
        """
        instance, _ = self._require_open()
        receipt, pops = _receipt_of(message), PopCalls(instance, self.group)
        message.receipt = await pops.change_invisible(
            message.queue, message.queue_offset, receipt, seconds
        )

    def _require_open(self) -> tuple[ClientInstance, Statistics]:
        if self._instance is None or self._statistics is None:
            raise ClosedError(
                "the consumer is closed, or was not started: use it inside `async with`"
            )
        self._instance.fork_guard.check()
        return self._instance, self._statistics


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
        raise ClientError(
            f"message {message.message_id} was not popped: only popped messages can be acknowledged"
        )
    return message.receipt
