"""Bring a producer's messages to their queues: in order, within limits, and traced.

Upstream: `DefaultMQProducerImpl.sendSelectImpl`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import msgspec

from mqlake.client.errors import ClientError
from mqlake.client.message import Message
from mqlake.client.producer.flow import FlowControl
from mqlake.client.producer.outgoing import Outgoing, Outgoings, are_plain
from mqlake.client.producer.queue_choice import by_sharding_key, require_queues
from mqlake.client.producer.result import SendResult
from mqlake.client.producer.send_trace import SendTrace
from mqlake.client.producer.sending import Sending
from mqlake.client.producer.statistics import SendStatistics
from mqlake.client.routes import ClientRoutes
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.namespace import Namespace

ChooseQueue = Callable[[Sequence[MessageQueue]], MessageQueue]
"""Chooses one of the queues of a topic, which are sorted by broker name and queue id."""


class MessageSender:
    """Sends messages whose topics have the cluster's names.

    Queues in arguments and results have the topics that the program uses, without the namespace.

    Args:
        timeout: seconds for a send, all tries together, unless the call has its own.
    """

    def __init__(
        self,
        *,
        routes: ClientRoutes,
        namespace: Namespace,
        outgoings: Outgoings,
        sending: Sending,
        in_flight: FlowControl,
        trace: SendTrace | None,
        timeout: float,
        statistics: SendStatistics,
    ) -> None:
        self._statistics, self._loop = statistics, asyncio.get_running_loop()
        self._routes, self._namespace = routes, namespace
        self._outgoings, self._sending = outgoings, sending
        self._in_flight, self._trace, self._timeout = in_flight, trace, timeout

    async def send(
        self,
        outgoing: Outgoing,
        message: Message,
        queue: MessageQueue | ChooseQueue | None,
        timeout: float | None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store a message, or a batch that begins with it; return a result for each message.

        Raises:
            ClientError: no broker has acknowledged it.
        """
        seconds = self._timeout if timeout is None else timeout
        await self._in_flight.enter(size := outgoing.size)
        begin = self._loop.time()
        try:
            if queue is not None or message.sharding_key is not None:
                queue = await self._chosen(message, queue)
            began = self._trace.now() if self._trace else 0
            results = await self._sending.send(outgoing, seconds, queue)
        except ClientError as error:
            self._statistics.failed(outgoing.topic, error)
            raise
        finally:
            self._in_flight.leave(size)
        self._statistics.sent(outgoing.topic, len(results), size, self._loop.time() - begin)
        if self._trace is not None:
            self._trace.sent(outgoing, message, results, began)
        if not self._namespace.name:
            return results
        return [msgspec.structs.replace(each, queue=self._as_seen(each.queue)) for each in results]

    async def send_oneway(
        self, outgoing: Outgoing, message: Message, queue: MessageQueue | ChooseQueue | None
    ) -> None:
        """Send a message without an acknowledgement.

        Raises:
            ClientError: the message was not sent.
        """
        await self._in_flight.enter(size := outgoing.size)
        try:
            chosen = await self._chosen(message, queue)
            await self._sending.oneway(outgoing, chosen, self._timeout)
        finally:
            self._in_flight.leave(size)

    async def send_many(
        self,
        messages: Sequence[Message],
        most: int,
        timeout: float | None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages of any topics, in batches if possible; return a result for each.

        Messages of one topic and sharding key are stored in their order.

        Args:
            most: the maximum size of a batch, in bytes.

        Raises:
            FormatError: a message can never be sent.
            ClientError: no broker has acknowledged a message; others may be stored.
        """
        if not messages:
            return []
        if are_plain(messages):
            return await self._send_all(self._outgoings.plain_groups(messages, most), timeout)
        lanes = _lanes(messages)
        if len(lanes) == 1:
            return await self._send_all(self._outgoings.groups(messages, most), timeout)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        self.send_many([messages[number] for number in lane], most, timeout)
                    )
                    for lane in lanes
                ]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        results: dict[int, SendResult] = {}
        for lane, task in zip(lanes, tasks, strict=True):
            results.update(zip(lane, task.result(), strict=True))
        return [results[number] for number in range(len(messages))]

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic that accept messages, by broker name and queue id.

        Args:
            topic: with the cluster's name.

        Raises:
            NoRouteError: no name server knows the topic.
        """
        found = require_queues(await self._routes.to_publish(topic))
        return [self._as_seen(queue) for queue in found] if self._namespace.name else found

    async def _send_all(
        self,
        groups: Iterable[tuple[Message, Outgoing]],
        timeout: float | None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages that were put together in their order; return a result for each."""
        sent: list[Sequence[SendResult]] = []
        for first, outgoing in groups:
            sent.append(await self.send(outgoing, first, None, timeout))
        return sent[0] if len(sent) == 1 else [*chain.from_iterable(sent)]

    async def _chosen(
        self, message: Message, queue: MessageQueue | ChooseQueue | None
    ) -> MessageQueue | None:
        if isinstance(queue, MessageQueue):
            return self._as_named(queue)
        if queue is not None:
            return self._as_named(queue(await self.queues(message.topic)))
        if message.sharding_key is None:
            return None
        queues = require_queues(await self._routes.to_publish(message.topic))
        return by_sharding_key(queues, message.sharding_key)

    def _as_seen(self, queue: MessageQueue) -> MessageQueue:
        return msgspec.structs.replace(queue, topic=self._namespace.unwrap(queue.topic))

    def _as_named(self, queue: MessageQueue) -> MessageQueue:
        if not self._namespace.name:
            return queue
        return msgspec.structs.replace(queue, topic=self._namespace.wrap(queue.topic))


def _lanes(messages: Sequence[Message]) -> list[list[int]]:
    """Return the numbers of the messages that keep an order: those of one topic and sharding
    key.
    """
    lanes: dict[tuple[str, str | None], list[int]] = {}
    for number, message in enumerate(messages):
        lanes.setdefault((message.topic, message.sharding_key), []).append(number)
    return [*lanes.values()]
