"""Send messages to a cluster.

Upstream: `DefaultMQProducer`, `TransactionMQProducer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

import msgspec

from mqlake.client.closing import Closing
from mqlake.client.cluster import MASTER
from mqlake.client.errors import ClientError, ClosedError, NotStoredError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.message import Message, ReceivedMessage
from mqlake.client.producer.delivery import ChooseQueue, MessageSender
from mqlake.client.producer.flow import FlowControl
from mqlake.client.producer.outgoing import Compression, Outgoings
from mqlake.client.producer.queue_choice import QueueChoice
from mqlake.client.producer.replies import CORRELATION_ID, AwaitedReplies, reply_to
from mqlake.client.producer.result import SendResult, SendStatus
from mqlake.client.producer.send_trace import SendTrace
from mqlake.client.producer.sending import Sending, Tries
from mqlake.client.producer.statistics import SendStatistics
from mqlake.client.producer.transactions import Check, Checks, Transaction
from mqlake.client.trace.opening import open_tracer
from mqlake.errors import FormatError
from mqlake.formats.properties import PGROUP, TRAN_MSG
from mqlake.formats.sys_flag import TRANSACTION_PREPARED
from mqlake.metrics.metric import Sample
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.transactions import CheckTransactionHeader
from mqlake.protocol.namespace import Namespace
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.clock import SystemClock

DEFAULT_GROUP = "mqlake_producers"
MAX_MESSAGE_SIZE = 4 * 1024 * 1024
_BATCH_SIZE = 1024 * 1024


class Producer:
    """Sends messages; for the tasks of one event loop.

        async with Producer("localhost:9876") as producer:
            result = await producer.send(Message(topic="orders", body=b"..."))

    A message is acknowledged once `send` returns. If it is not, `send` raises a `ClientError`:
    `NotStoredError` and `PerhapsStoredError` tell whether the message may be stored nevertheless. A
    message that can never be sent, for example because it is too long, raises `FormatError`.

    Args:
        name_servers: "host:port", several separated by `;`.
        group: the producer group; it matters only for transactions.
        instance: a name that tells the clients of one machine apart.
        unit: upstream's `unitName`.
        namespace: the namespace of its topics and its group.
        timeout: seconds for a send, all tries together.
        tries: how often a message is sent again.
        compression: which bodies are compressed; None for none.
        max_message_size: bytes that a message, or a batch, may have.
        max_in_flight, max_in_flight_bytes: messages and bytes in flight before further sends wait.
        avoids_slow_brokers: whether brokers that answer slowly are avoided for a while.
        check: tells how a transaction ended if a broker has not heard of its end.
        trace: whether each message is recorded in RocketMQ's trace topic, or the topic for that.
        tls: how its connections use TLS; None for clear text.
        credentials: sign its requests; None for brokers without authentication.
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
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._namespace = Namespace(namespace)
        self.group = self._namespace.wrap(group)
        self._name_servers, self._instance_name, self._unit = name_servers, instance, unit
        self._timeout, self._tries = timeout, tries or Tries()
        self._compression, self._most = compression, max_message_size
        self._most_in_flight = max_in_flight, max_in_flight_bytes
        self._avoids_slow_brokers, self._check_handler = avoids_slow_brokers, check
        self._wants_trace = trace
        self._tls, self._credentials = tls, credentials
        self._instance: ClientInstance | None = None
        self._closing = Closing()
        self._statistics = SendStatistics()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def samples(self) -> Sequence[Sample]:
        """Return its metrics, for `mqlake.client.metrics.ClientMetrics`."""
        in_flight = self._in_flight.count if self._instance is not None else 0
        return self._statistics.samples(self.group, in_flight)

    async def start(self) -> None:
        """Connect; `async with` does it."""
        instance = share_instance(
            self._name_servers,
            self._instance_name,
            self._unit,
            tls=self._tls,
            credentials=self._credentials,
        )
        clock = SystemClock()
        self._instance = instance
        self._outgoings = Outgoings(
            instance.unique_keys, clock.milliseconds, self._compression, self._most
        )
        choice = QueueChoice(clock.monotonic, avoids_slow_brokers=self._avoids_slow_brokers)
        sending = Sending(instance, self.group, choice, self._tries, self._statistics)
        self._in_flight = FlowControl(*self._most_in_flight)
        tracer = open_tracer(instance, self._wants_trace)
        self._trace = tracer and SendTrace(
            tracer, self.group, self._namespace, instance.routes.master, clock.milliseconds
        )
        self._delivery = MessageSender(
            routes=instance.routes,
            namespace=self._namespace,
            outgoings=self._outgoings,
            sending=sending,
            in_flight=self._in_flight,
            trace=self._trace,
            timeout=self._timeout,
            statistics=self._statistics,
        )
        self._checks = Checks(
            instance, self.group, self._namespace, self._check_handler, self._trace
        )
        self._replies = AwaitedReplies(instance.client_id)
        instance.members.add_producer(self)

    async def close(self) -> None:
        """Wait for sends in flight, and close the connections.

        In a forked child this does nothing: the client belongs to the parent.
        """
        if self._instance is not None and not self._instance.fork_guard.is_child:
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
            queue: the queue, or a function that chooses it. Without it, the message goes to the
                queue of its sharding key, or to any queue. A message for a given queue is not sent
                to another one.
            timeout: seconds for all tries; the producer's own if it is None.

        Raises:
            FormatError: the message can never be sent.
            ClientError: no broker has acknowledged the message.
        """
        self._require_open()
        message = self._named(message)
        outgoing = self._outgoings.single(message)
        return (await self._delivery.send(outgoing, message, queue, timeout))[0]

    async def send_many(
        self,
        messages: Sequence[Message],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages of any topics, in batches if possible; return a result for each.

        Messages of one topic that have no delay are stored in their order. If it raises, some of
        them may be stored.

        Raises:
            FormatError, ClientError: as for `send`.
        """
        self._require_open()
        most = min(self._most, _BATCH_SIZE)
        return await self._delivery.send_many(self._all_named(messages), most, timeout)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | ChooseQueue | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Sequence[SendResult]:
        """Store messages of one topic in one queue, all or none; return a result for each.

        Raises:
            FormatError: the messages cannot be in one batch, or are too long together.
            ClientError: no broker has acknowledged them.
        """
        self._require_open()
        messages = self._all_named(messages)
        batch = self._outgoings.batch(messages)
        return await self._delivery.send(batch, messages[0], queue, timeout)

    async def send_oneway(
        self, message: Message, *, queue: MessageQueue | ChooseQueue | None = None
    ) -> None:
        """Send a message without an acknowledgement: it may be lost without an error.

        Raises:
            FormatError: the message can never be sent.
            ClientError: the message was not sent.
        """
        self._require_open()
        message = self._named(message)
        await self._delivery.send_oneway(self._outgoings.single(message), message, queue)

    async def transaction(self, message: Message) -> Transaction:
        """Store a half message; return the transaction that commits it or rolls it back.

            async with await producer.transaction(message):
                ...  # raises: rolled back

        Raises:
            FormatError, ClientError: as for `send`; also if the producer has no `check`.
        """
        instance = self._require_open()
        if self._check_handler is None:
            raise ClientError(
                "a transaction needs `check`: a broker that does not hear how the "
                "transaction ended asks the producer"
            )
        if message.is_delayed:
            raise FormatError("a message of a transaction cannot be delayed: remove its delay")
        message = self._named(message)
        half = self._outgoings.single(
            message, {TRAN_MSG: "true", PGROUP: self.group}, TRANSACTION_PREPARED
        )
        result = (await self._delivery.send(half, message, None, None))[0]
        transaction = Transaction(instance, self.group, message, result, self._trace)
        if result.status is not SendStatus.SEND_OK:
            # The message may be lost, and then nobody would ask for it.
            await transaction.rollback()
            raise NotStoredError(f"the half message was rolled back: {result.status}")
        return transaction

    async def request(
        self,
        message: Message,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ReceivedMessage:
        """Send a message and return the reply of its consumer (`reply`).

        Raises:
            FormatError, ClientError: as for `send`.
            NoReplyError: nobody replied in time.
        """
        instance, message = self._require_open(), self._named(message)
        seconds = self._timeout if timeout is None else timeout
        deadline = asyncio.get_running_loop().time() + seconds
        more = self._replies.properties(seconds)
        correlation_id = more[CORRELATION_ID]
        try:
            # The broker that gets the request must know this client, so that it can push the reply.
            route = await instance.routes.to_publish(message.topic)
            masters = [each[MASTER] for each in route.addresses.values() if MASTER in each]
            await instance.introduce(masters, seconds / 2)
            outgoing = self._outgoings.single(message, more)
            await self._delivery.send(outgoing, message, None, seconds)
            left = deadline - asyncio.get_running_loop().time()
            return await self._replies.wait(correlation_id, max(0.0, left))
        finally:
            self._replies.forget(correlation_id)

    async def reply(self, request: ReceivedMessage, body: bytes) -> None:
        """Reply to a request that a consumer has received.

        Raises:
            ClientError: the message is not a request, or no broker accepted the reply.
        """
        message = reply_to(request, body)
        instance = self._require_open()
        outgoing = self._outgoings.single(message)
        outgoing.code = RequestCode.SEND_REPLY_MESSAGE_V2
        # The broker that had the request knows which client waits for the reply.
        await instance.routes.of(request.queue.topic)
        queue = MessageQueue(message.topic, request.queue.broker_name, 0)
        await self._delivery.send(outgoing, message, queue, None)

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic that accept messages, by broker name and queue id.

        Raises:
            NoRouteError: no name server knows the topic.
        """
        self._require_open()
        return await self._delivery.queues(self._namespace.wrap(topic))

    # Internals

    def _named(self, message: Message) -> Message:
        """Return a message with the cluster's name of its topic."""
        if not self._namespace.name:
            return message
        return msgspec.structs.replace(message, topic=self._namespace.wrap(message.topic))

    def _all_named(self, messages: Sequence[Message]) -> list[Message]:
        return [*map(self._named, messages)] if self._namespace.name else [*messages]

    def _require_open(self) -> ClientInstance:
        if self._instance is None:
            raise ClosedError(
                "the producer is closed, or was not started: use it inside `async with`"
            )
        self._instance.fork_guard.check()
        return self._instance

    # The requests of its client instance

    @property
    def can_check(self) -> bool:
        """Return whether it can tell how transactions ended."""
        return self._check_handler is not None

    def check(self, half: ReceivedMessage, header: CheckTransactionHeader, address: str) -> None:
        """Answer a broker that asks for the end of a transaction."""
        self._checks.take(half, header, address)

    def take_reply(self, reply: Command) -> bool:
        """Accept a reply; return whether a caller waits for it."""
        return self._replies.take(reply)
