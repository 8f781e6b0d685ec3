"""Producers and consumers for scripts and threads: those of `mqlake.client`, without `await`.

    from mqlake.client.blocking import Consumer, Producer

    with Producer("localhost:9876") as producer:
        producer.send(Message(topic="orders", body=b"..."))

Each has its own thread with an event loop; its methods may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Self, TypeVar

from mqlake.client.consumer import consumer as asynchronous_consumer
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.errors import ClosedError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.loop_thread import LoopThread
from mqlake.client.message import Message, ReceivedMessage
from mqlake.client.producer import producer as asynchronous_producer
from mqlake.client.producer.producer import DEFAULT_GROUP
from mqlake.client.producer.result import SendResult
from mqlake.metrics.metric import Sample
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls

__all__ = ["Consumer", "Producer"]

T = TypeVar("T")

Topics = Mapping[str, str] | Sequence[str] | str
"""Expressions by topic, or topics of which all messages are consumed."""


class _OnThread:
    """What the blocking producer and consumer have in common."""

    _name = "mqlake-client"

    def __init__(self) -> None:
        self._thread: LoopThread | None = None
        self._closing = Lock()

    def __enter__(self) -> Self:
        self._thread = LoopThread(self._name)
        try:
            self._run(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the asynchronous client, and end the thread.

        In a forked child this does nothing: the client belongs to the parent.
        """
        thread = self._thread
        if thread is not None and thread.fork_guard.is_child:
            return  # The lock may be held by a thread that does not exist here.
        with self._closing:  # A second thread waits until the client is closed.
            if self._thread is not None:
                try:
                    self._run(self._stop())
                finally:
                    self._end()

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    async def _start(self) -> None:
        raise NotImplementedError

    async def _stop(self) -> None:
        raise NotImplementedError

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._thread is None:
            work.close()
            raise ClosedError(
                "the client is closed, or was not started: use it inside a `with` block"
            )
        return self._thread.run(work)


class Producer(_OnThread):
    """`mqlake.client.Producer` for threads.

    Args:
        name_servers, group: as for `mqlake.client.Producer`.
        options: the other arguments of `mqlake.client.Producer`.
    """

    _name = "mqlake-producer"

    def __init__(self, name_servers: str, *, group: str = DEFAULT_GROUP, **options: Any) -> None:
        super().__init__()
        self._producer = asynchronous_producer.Producer(name_servers, group=group, **options)

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | Callable[[Sequence[MessageQueue]], MessageQueue] | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Store a message; return once a broker has acknowledged it."""
        return self._run(self._producer.send(message, queue=queue, timeout=timeout))

    def send_many(
        self, messages: Sequence[Message], *, timeout: float | None = None
    ) -> Sequence[SendResult]:
        """Store messages of any topics, in batches where they allow it."""
        return self._run(self._producer.send_many(messages, timeout=timeout))

    def send_batch(
        self, messages: Sequence[Message], *, timeout: float | None = None
    ) -> Sequence[SendResult]:
        """Store messages of one topic in one queue, all or none."""
        return self._run(self._producer.send_batch(messages, timeout=timeout))

    def send_oneway(self, message: Message) -> None:
        """Send a message without an acknowledgement."""
        self._run(self._producer.send_oneway(message))

    def request(self, message: Message, *, timeout: float | None = None) -> ReceivedMessage:
        """Send a message and return the reply of its consumer."""
        return self._run(self._producer.request(message, timeout=timeout))

    def reply(self, request: ReceivedMessage, body: bytes) -> None:
        """Reply to a request that a consumer has received."""
        self._run(self._producer.reply(request, body))

    def samples(self) -> Sequence[Sample]:
        """Return its metrics, for `mqlake.client.metrics.ClientMetrics`."""
        return self._producer.samples()

    async def _start(self) -> None:
        await self._producer.start()

    async def _stop(self) -> None:
        await self._producer.close()


class Consumer(_OnThread):
    """`mqlake.client.Consumer` for threads.

        with Consumer("localhost:9876", "billing", "orders") as consumer:
            for message in consumer:
                consumer.ack(message)

    Args:
        name_servers, group, topics, settings, instance, tls, credentials: as for
            `mqlake.client.Consumer`.
    """

    _name = "mqlake-consumer"

    def __init__(
        self,
        name_servers: str,
        group: str,
        topics: Topics,
        *,
        settings: ConsumerSettings | None = None,
        instance: str = DEFAULT_INSTANCE,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__()
        self._consumer = asynchronous_consumer.Consumer(
            name_servers,
            group,
            topics,
            settings=settings,
            instance=instance,
            tls=tls,
            credentials=credentials,
        )

    def __iter__(self) -> Iterator[ReceivedMessage]:
        message = self.receive()
        while message is not None:
            yield message
            try:
                message = self.receive()
            except ClosedError:  # Another thread closed it meanwhile.
                return

    def receive(self, timeout: float | None = None) -> ReceivedMessage | None:
        """Return the next message; None if none arrives in time, or the consumer is closed
        meanwhile.

        Args:
            timeout: seconds; None waits forever.

        Raises:
            ClosedError: the consumer was already closed.
        """
        return self._run(self._next(timeout))

    def ack(self, message: ReceivedMessage) -> bool:
        """Acknowledge a message; return whether the acknowledgement counts."""
        return self._run(_own(message).ack())

    def retry_later(self, message: ReceivedMessage, delay_level: int = 0) -> bool:
        """Have a message redelivered; return whether that was possible."""
        return self._run(_own(message).retry_later(delay_level))

    def commit(self) -> None:
        """Commit the offsets now."""
        self._run(self._consumer.commit())

    def samples(self) -> Sequence[Sample]:
        """Return its metrics, for `mqlake.client.metrics.ClientMetrics`."""
        return self._consumer.samples()

    async def _next(self, timeout: float | None) -> ReceivedMessage | None:  # noqa: ASYNC109
        return await self._consumer.receive(timeout)

    async def _start(self) -> None:
        await self._consumer.start()

    async def _stop(self) -> None:
        await self._consumer.close()


def _own(message: ReceivedMessage) -> ConsumedMessage:
    if not isinstance(message, ConsumedMessage):
        raise TypeError(
            "the message did not come from a consumer of a group: only such a message can be "
            "finished"
        )
    return message
