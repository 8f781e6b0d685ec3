"""The taskiq broker: a topic is the queue, and workers pop their tasks from it."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Any

import msgspec

from mqlake.admin.admin import Admin
from mqlake.client.consumer.simple_consumer import PoppedMessage, SimpleConsumer
from mqlake.client.errors import ClosedError
from mqlake.client.message import Message
from mqlake.client.producer.producer import Producer
from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.naming import group_fault, topic_fault
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.clock import SystemClock
from mqlake.taskiq.border import (
    AckableMessage,
    AsyncBroker,
    BrokerMessage,
    TaskiqMessage,
    TaskiqMiddleware,
    TaskiqResult,
)
from mqlake.taskiq.labels import delivery_time
from mqlake.workqueue.deliveries import Delivery, PrefetchWindow, log_failures
from mqlake.workqueue.extensions import keep_extended
from mqlake.workqueue.topics import QueueTopics

_WAIT = 1.0
"""Seconds of one pop. A worker stops after as long."""
_BACKOFF = 1.0
_LAST_TRIES = 3.0
"""Seconds that a shutdown leaves to acknowledgements that were not confirmed."""

_log = logging.getLogger(__name__)


class _BrokerOptions(msgspec.Struct, frozen=True):
    """The options of a broker, which are checked when it is created."""

    visibility_timeout: Annotated[float, msgspec.Meta(ge=1, le=86_400)]
    prefetch: Annotated[int, msgspec.Meta(ge=1, le=32)]
    queues: Annotated[int, msgspec.Meta(ge=1, le=1024)]


class _FailureWatch(TaskiqMiddleware):
    """Remembers whether a task has failed since the last query."""

    def __init__(self) -> None:
        super().__init__()
        self._has_failed = False

    def on_error(
        self,
        message: TaskiqMessage,  # noqa: ARG002
        result: TaskiqResult[Any],  # noqa: ARG002
        exception: BaseException,  # noqa: ARG002
    ) -> None:
        """Note that a task has failed."""
        self._has_failed = True

    def take(self) -> bool:
        """Return whether a task has failed since this was called last."""
        has_failed, self._has_failed = self._has_failed, False
        return has_failed


class RocketmqBroker(AsyncBroker):
    """Sends tasks to a topic, and gives each worker tasks that no other worker has.

        broker = RocketmqBroker("localhost:9876")

        @broker.task
        async def bill(order: int) -> None: ...

    Needs brokers of RocketMQ 5, or mqlake's.

    Args:
        name_servers: "host:port", several separated by `;`.
        topic: the queue, created if missing.
        group: the consumer group of all workers.
        visibility_timeout: seconds after which the tasks of a dead worker are redelivered; a live
            worker extends it for as long as a task runs.
        prefetch: the maximum number of tasks that a worker receives in a single call, up to 32.
        queues: the number of queues of a new topic, on each broker.
        tls: how its connections use TLS; None for clear text.
        credentials: sign its requests; None for brokers without authentication.

    Raises:
        FormatError: an option cannot be used.
    """

    def __init__(
        self,
        name_servers: str,
        *,
        topic: str = "taskiq",
        group: str = "taskiq",
        visibility_timeout: float = 120.0,
        prefetch: int = 4,
        queues: int = 8,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__()
        self._tls, self._credentials = tls, credentials
        if fault := topic_fault(topic) or group_fault(group):
            raise FormatError(fault)
        given = {"visibility_timeout": visibility_timeout, "prefetch": prefetch, "queues": queues}
        try:
            self._options = msgspec.convert(given, _BrokerOptions)
        except msgspec.ValidationError as error:
            raise FormatError(f"RocketmqBroker: {error}") from None
        self._name_servers, self._topic, self._group = name_servers, topic, group
        self._window = PrefetchWindow()
        self._stack = AsyncExitStack()
        self._producer: Producer | None = None
        self._failures = _FailureWatch()
        self.add_middlewares(self._failures)

    async def startup(self) -> None:
        """Connect, and create the topic if it does not exist.

        Raises:
            MqlakeError: no name server answers, or the topic cannot be created.
        """
        self._window = PrefetchWindow()
        async with AsyncExitStack() as stack:
            async with Admin(
                self._name_servers, tls=self._tls, credentials=self._credentials
            ) as admin:
                topics = QueueTopics(admin, self._group, self._options.queues)
                await topics.ensure(self._topic)
            producer = await stack.enter_async_context(
                Producer(self._name_servers, tls=self._tls, credentials=self._credentials)
            )
            self._stack, self._producer = stack.pop_all(), producer
        await super().startup()

    async def shutdown(self) -> None:
        """Give back the unfinished tasks, and close the connections."""
        try:
            await super().shutdown()
        finally:
            held = [delivery.give_back() for delivery in list(self._window.held)]
            await log_failures(held, "a task was not given back, and is redelivered later")
            await self._window.end(_LAST_TRIES)
            self._producer = None
            await self._stack.aclose()

    async def kick(self, message: BrokerMessage) -> None:
        """Store a task; return once a broker has acknowledged it.

        Raises:
            MqlakeError: no broker has acknowledged the task, or its labels cannot be read.
        """
        now = SystemClock().milliseconds()
        sent = Message(
            topic=self._topic,
            body=message.message,
            keys=message.task_id if _is_key(message.task_id) else "",
            deliver_at=delivery_time(message.labels, now),
        )
        await self._require_open().send(sent)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield tasks until the worker stops; each is redelivered unless it is acknowledged."""
        self._require_open()
        seconds = self._options.visibility_timeout
        consumer = SimpleConsumer(
            self._name_servers,
            self._group,
            self._topic,
            invisible=seconds,
            is_from_first=True,
            tls=self._tls,
            credentials=self._credentials,
        )
        # The consumer is closed after the received messages were acknowledged or given back.
        await self._stack.enter_async_context(consumer)
        extending = asyncio.create_task(keep_extended(self._held, seconds))
        self._stack.push_async_callback(_cancel, extending)
        waiting: list[Delivery] = []
        try:
            while True:
                waiting += await self._receive(consumer)
                while waiting:
                    yield self._ackable(waiting.pop(0))
                if extending.done():
                    extending.result()
        finally:
            backs = [delivery.give_back() for delivery in waiting]
            await log_failures(backs, "a task was not given back, and is redelivered later")

    async def _receive(self, consumer: SimpleConsumer) -> list[Delivery]:
        popping = asyncio.ensure_future(consumer.receive(self._options.prefetch, _WAIT))
        try:
            found = await asyncio.shield(popping)
        except asyncio.CancelledError:
            # The broker may have chosen messages for this pop already.
            self._window.finish_later(self._refuse(consumer, popping))
            raise
        except ClosedError:
            raise
        except MqlakeError as error:
            _log.warning("tasks are not received for now, and tried again: %s", error)
            await asyncio.sleep(_BACKOFF)
            return []
        return [Delivery(consumer, message, self._window) for message in found]

    async def _refuse(
        self, consumer: SimpleConsumer, popping: asyncio.Future[Sequence[PoppedMessage]]
    ) -> None:
        """Give back the messages of a pop that nobody waits for any more."""
        try:
            found = await popping
        except MqlakeError as error:
            _log.debug("the last pop of a worker failed: %s", error)
            return
        backs = [Delivery(consumer, message, self._window).give_back() for message in found]
        await log_failures(backs, "a task was not given back, and is redelivered later")

    def _held(self) -> set[Delivery]:
        """Return the unfinished tasks, without those that failed tasks have left unacknowledged.

        A traceback keeps the run of such a task in a cycle of references, and thereby its message.
        """
        if self._window.held and self._failures.take():
            gc.collect()
        return self._window.held

    def _ackable(self, delivery: Delivery) -> AckableMessage:
        async def ack() -> None:
            try:
                await delivery.ack()
            except MqlakeError as error:
                # The acknowledgement is retried; taskiq would only report a task that failed.
                _log.warning("task of message %s: %s", delivery.message.message_id, error)

        # Nobody can acknowledge the message any more when taskiq has dropped this function.
        loop = asyncio.get_running_loop()
        weakref.finalize(ack, _abandon, loop, self._window, delivery).atexit = False
        return AckableMessage(data=delivery.message.body, ack=ack)

    def _require_open(self) -> Producer:
        if self._producer is None:
            raise ClosedError("the broker is not started: await broker.startup()")
        return self._producer


def _abandon(loop: asyncio.AbstractEventLoop, window: PrefetchWindow, delivery: Delivery) -> None:
    """Stop extending a message; may be called from any thread."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(window.drop, delivery)


def _is_key(task_id: str) -> bool:
    return task_id.isascii() and task_id.isprintable() and " " not in task_id


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
