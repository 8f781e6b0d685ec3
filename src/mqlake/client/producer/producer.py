"""Send messages to a cluster (upstream: `DefaultMQProducer`, `TransactionMQProducer`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Self

import msgspec

from mqlake.client.closing import Closing
from mqlake.client.cluster import MASTER
from mqlake.client.errors import ClientError, ClosedError, NotStoredError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.message import Message, ReceivedMessage
from mqlake.client.producer.flow import InFlight
from mqlake.client.producer.outgoing import Compression, Outgoing, Outgoings
from mqlake.client.producer.queue_choice import QueueChoice, by_sharding_key, require_queues
from mqlake.client.producer.replies import CORRELATION_ID, Replies, reply_to
from mqlake.client.producer.result import SendResult, SendStatus
from mqlake.client.producer.send_trace import SendTrace
from mqlake.client.producer.sending import Sending, Tries
from mqlake.client.producer.transactions import Check, Checks, Transaction
from mqlake.client.trace.opening import open_tracer
from mqlake.errors import FormatError
from mqlake.formats.properties import PGROUP, TRAN_MSG
from mqlake.formats.sys_flag import TRANSACTION_PREPARED
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.transactions import CheckTransactionHeader
from mqlake.protocol.namespace import Namespace
from mqlake.storage.clock import SystemClock

DEFAULT_GROUP = "mqlake_producers"
MAX_MESSAGE_SIZE = 4 * 1024 * 1024
_BATCH_SIZE = 1024 * 1024

ChooseQueue = Callable[[Sequence[MessageQueue]], MessageQueue]
"""Returns one of the queues of a topic, which come by broker name and queue id."""


class Producer:
    """Sends messages; for the tasks of one event loop.

        async with Producer("localhost:9876") as producer:
            result = await producer.send(Message(topic="orders", body=b"..."))

    A message is acknowledged once `send` returns. If it was not, `send` raises a `ClientError`:
    `NotStoredError` and `PerhapsStoredError` tell whether it may be stored all the same. A message
    that can never be sent, because it is too long, say, raises `FormatError`.

    Args:
        name_servers: "host:port", several separated by `;`.
        group: the producer group; counts for transactions only.
        instance: a name that tells the clients of one machine apart.
        unit: upstream's `unitName`.
        namespace: to which its topics and its group belong.
        timeout: seconds that a send has, all tries together.
        tries: how often a message is sent again.
        compression: which bodies are compressed; None for none.
        max_message_size: bytes that a message, or a batch, may have.
        max_in_flight, max_in_flight_bytes: how much may be under way before others wait.
        avoids_slow_brokers: whether brokers that answer late are left out for a while.
        check: says what has become of half messages whose end a broker has not heard of.
        trace: whether each message is noted in RocketMQ's trace topic, or the topic for that.
    """

    def __init__(
        self,
        name_servers: str,
        *,
        group: str = DEFAULT_GROUP,
        instance: str = DEFAULT_INSTANCE,
        unit: str | None = None,
        namespace: str = "",
        timeout: float = 3.0,
        tries: Tries | None = None,
        compression: Compression | None = Compression(),  # noqa: B008 (immutable)
        max_message_size: int = MAX_MESSAGE_SIZE,
        max_in_flight: int = 1024,
        max_in_flight_bytes: int = 100 * 1024 * 1024,
        avoids_slow_brokers: bool = False,
        check: Check | None = None,
        trace: bool | str = False,
    ) -> None:
        self._namespace = Namespace(namespace)
        self.group = self._namespace.wrap(group)
        self._name_servers, self._instance_name, self._unit = name_servers, instance, unit
        self._timeout, self._tries = timeout, tries or Tries()
        self._compression, self._most = compression, max_message_size
        self._most_in_flight = max_in_flight, max_in_flight_bytes
        self._avoids_slow_brokers, self._check_handler = avoids_slow_brokers, check
        self._wants_trace = trace
        self._instance: ClientInstance | None = None
        self._closing = Closing()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Be ready to send; `async with` does it."""
        instance = share_instance(self._name_servers, self._instance_name, self._unit)
        clock = SystemClock()
        self._instance = instance
        self._outgoings = Outgoings(
            instance.unique_keys, clock.milliseconds, self._compression, self._most
        )
        choice = QueueChoice(clock.monotonic, avoids_slow_brokers=self._avoids_slow_brokers)
        self._sending = Sending(instance, self.group, choice, self._tries)
        self._in_flight = InFlight(*self._most_in_flight)
        tracer = open_tracer(instance, self._wants_trace)
        self._trace = tracer and SendTrace(
            tracer, self.group, self._namespace, instance.routes.master, clock.milliseconds
        )
        self._checks = Checks(
            instance, self.group, self._namespace, self._check_handler, self._trace
        )
        self._replies = Replies(instance.client_id)
        instance.members.add_producer(self)

    async def close(self) -> None:
        """Wait for what is under way, and let go of the connections."""
        if self._instance is not None:
            await self._closing.run(self._close)

    async def _close(self) -> None:
        instance, self._instance = self._instance, None
        if instance is None:
            return
        try:
            await self._in_flight.drained()
            await self._checks.close()
            if self._trace is not None:
                await self._trace.close()
            await instance.remove(self)
        finally:
            await give_back(instance)

    # Send

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | ChooseQueue | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (a budget for all tries)
    ) -> SendResult:
        """Store a message; return once a broker has acknowledged it.

        Args:
            queue: to which it goes, or what chooses it. Without it, the queue of its sharding key,
                else any. A message for a given queue is not sent to another one.
            timeout: seconds for all tries; the producer's own if it is None.

        Raises:
            FormatError: it cannot be sent at all.
            ClientError: no broker has acknowledged it.
        """
        self._require_open()
        message = self._named(message)
        return (await self._send(self._outgoings.single(message), message, queue, timeout))[0]

    async def send_many(
        self,
        messages: Sequence[Message],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages of any topics, in batches where they allow it; return a result for each.

        Messages of one topic that have no delay are stored in their order. If it raises, some of
        them may be stored.

        Raises:
            FormatError, ClientError: as `send`.
        """
        self._require_open()
        most = min(self._most, _BATCH_SIZE)
        messages = [*map(self._named, messages)]
        lanes = _lanes(messages)
        if len(lanes) == 1:
            return await self._send_lane(messages, most, timeout)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        self._send_lane([messages[number] for number in lane], most, timeout)
                    )
                    for lane in lanes
                ]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        results: dict[int, SendResult] = {}
        for lane, task in zip(lanes, tasks, strict=True):
            results.update(zip(lane, task.result(), strict=True))
        return [results[number] for number in range(len(messages))]

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | ChooseQueue | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages of one topic in one queue, all or none; return a result for each.

        Raises:
            FormatError: they do not go into one batch, or are too long together.
            ClientError: no broker has acknowledged them.
        """
        self._require_open()
        messages = [*map(self._named, messages)]
        batch = self._outgoings.batch(messages)
        return await self._send(batch, messages[0], queue, timeout)

    async def send_oneway(
        self, message: Message, *, queue: MessageQueue | ChooseQueue | None = None
    ) -> None:
        """Send a message without an acknowledgement: it may be lost without a word.

        Raises:
            FormatError: it cannot be sent at all.
            ClientError: it was not sent.
        """
        self._require_open()
        message = self._named(message)
        outgoing = self._outgoings.single(message)
        await self._in_flight.enter(size := outgoing.size)
        try:
            chosen = await self._chosen(message, queue)
            await self._sending.oneway(outgoing, chosen, self._timeout)
        finally:
            self._in_flight.leave(size)

    async def transaction(self, message: Message) -> Transaction:
        """Store a half message; what is returned commits it or rolls it back.

            async with await producer.transaction(message):
                ...  # raises: rolled back

        Raises:
            FormatError, ClientError: as `send`; or the producer has no `check`.
        """
        instance = self._require_open()
        if self._check_handler is None:
            raise ClientError(
                "a transaction needs `check`: if the broker does not hear how the transaction"
                " ended, it asks the producer"
            )
        if message.is_delayed:
            raise FormatError("a message of a transaction cannot be delayed")
        message = self._named(message)
        half = self._outgoings.single(
            message, {TRAN_MSG: "true", PGROUP: self.group}, TRANSACTION_PREPARED
        )
        result = (await self._send(half, message, None, None))[0]
        transaction = Transaction(instance, self.group, message, result, self._trace)
        if result.status is not SendStatus.SEND_OK:
            # It may be lost, and nobody would ask for it then.
            await transaction.rollback()
            raise NotStoredError(f"the half message was rolled back: {result.status}")
        return transaction

    async def request(
        self,
        message: Message,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ReceivedMessage:
        """Send a message and return the reply of whoever consumes it (`reply`).

        Raises:
            FormatError, ClientError: as `send`.
            NoReplyError: nobody replied in time.
        """
        instance, message = self._require_open(), self._named(message)
        seconds = self._timeout if timeout is None else timeout
        deadline = asyncio.get_running_loop().time() + seconds
        more = self._replies.properties(seconds)
        correlation_id = more[CORRELATION_ID]
        try:
            # The broker that gets the request must know this client, to push the reply to it.
            route = await instance.routes.to_publish(message.topic)
            masters = [each[MASTER] for each in route.addresses.values() if MASTER in each]
            await instance.introduce(masters, seconds / 2)
            await self._send(self._outgoings.single(message, more), message, None, seconds)
            left = deadline - asyncio.get_running_loop().time()
            return await self._replies.wait(correlation_id, max(0.0, left))
        finally:
            self._replies.forget(correlation_id)

    async def reply(self, request: ReceivedMessage, body: bytes) -> None:
        """Reply to a request that a consumer has received.

        Raises:
            ClientError: it is no request, or no broker took the reply.
        """
        message = reply_to(request, body)
        instance = self._require_open()
        outgoing = self._outgoings.single(message)
        outgoing.code = RequestCode.SEND_REPLY_MESSAGE_V2
        # The broker that had the request knows who waits for the reply.
        await instance.routes.of(request.queue.topic)
        queue = MessageQueue(message.topic, request.queue.broker_name, 0)
        await self._send(outgoing, message, queue, None)

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic that take messages, by broker name and queue id.

        Raises:
            NoRouteError: nobody knows the topic.
        """
        found = await self._queues(self._namespace.wrap(topic))
        return [self._as_seen(queue) for queue in found] if self._namespace.name else found

    # How

    async def _queues(self, topic: str) -> Sequence[MessageQueue]:
        return require_queues(await self._require_open().routes.to_publish(topic))

    def _named(self, message: Message) -> Message:
        """Return a message whose topic has the name that it has on the cluster."""
        if not self._namespace.name:
            return message
        return msgspec.structs.replace(message, topic=self._namespace.wrap(message.topic))

    def _as_seen(self, queue: MessageQueue) -> MessageQueue:
        return msgspec.structs.replace(queue, topic=self._namespace.unwrap(queue.topic))

    def _as_is(self, queue: MessageQueue) -> MessageQueue:
        return msgspec.structs.replace(queue, topic=self._namespace.wrap(queue.topic))

    async def _send(
        self,
        outgoing: Outgoing,
        message: Message,
        queue: MessageQueue | ChooseQueue | None,
        timeout: float | None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        seconds = self._timeout if timeout is None else timeout
        await self._in_flight.enter(size := outgoing.size)
        try:
            if queue is not None or message.sharding_key is not None:
                queue = await self._chosen(message, queue)
            began = self._trace.now() if self._trace else 0
            results = await self._sending.send(outgoing, seconds, queue)
        finally:
            self._in_flight.leave(size)
        if self._trace is not None:
            self._trace.sent(outgoing, message, results, began)
        if not self._namespace.name:
            return results
        return [msgspec.structs.replace(each, queue=self._as_seen(each.queue)) for each in results]

    async def _send_lane(
        self,
        messages: Sequence[Message],
        most: int,
        timeout: float | None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages of one topic and sharding key in their order."""
        sent: list[Sequence[SendResult]] = []
        for first, outgoing in self._outgoings.groups(messages, most):
            sent.append(await self._send(outgoing, first, None, timeout))
        return sent[0] if len(sent) == 1 else [*chain.from_iterable(sent)]

    async def _chosen(
        self, message: Message, queue: MessageQueue | ChooseQueue | None
    ) -> MessageQueue | None:
        if isinstance(queue, MessageQueue):
            return self._as_is(queue) if self._namespace.name else queue
        if queue is None and message.sharding_key is None:
            return None
        queues = await self._queues(message.topic)
        if queue is not None:
            if not self._namespace.name:
                return queue(queues)
            return self._as_is(queue([self._as_seen(each) for each in queues]))
        return by_sharding_key(queues, message.sharding_key or "")

    def _require_open(self) -> ClientInstance:
        if self._instance is None:
            raise ClosedError("the producer is closed, or was not started")
        return self._instance

    # What its instance asks of it

    @property
    def can_check(self) -> bool:
        """Whether it can tell how transactions ended."""
        return self._check_handler is not None

    def check(self, half: ReceivedMessage, header: CheckTransactionHeader, address: str) -> None:
        """Answer a broker that asks for a half message."""
        self._checks.take(half, header, address)

    def take_reply(self, reply: Command) -> bool:
        """Take a reply; return whether somebody waits for it."""
        return self._replies.take(reply)


def _lanes(messages: Sequence[Message]) -> list[Sequence[int]]:
    """Return the numbers of the messages that keep an order: of one topic and sharding key."""
    if not messages:
        return []
    topic, key = messages[0].topic, messages[0].sharding_key
    if all(message.topic == topic and message.sharding_key == key for message in messages):
        return [range(len(messages))]
    lanes: dict[tuple[str, str | None], list[int]] = {}
    for number, message in enumerate(messages):
        lanes.setdefault((message.topic, message.sharding_key), []).append(number)
    return [*lanes.values()]
