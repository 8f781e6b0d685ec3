"""The clients of one kombu connection: a producer, consumers and their readers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, Self

from mqlake.admin.admin import Admin
from mqlake.client.access import ClientAccess
from mqlake.client.consumer.pull_consumer import PullConsumer
from mqlake.client.consumer.simple_consumer import SimpleConsumer
from mqlake.client.message import Message
from mqlake.client.producer.producer import Producer
from mqlake.errors import MqlakeError
from mqlake.kombu.border import Payload
from mqlake.kombu.errors import UnavailableError
from mqlake.kombu.readers import Arrive, ExchangeReader, QueueReader, ends_of
from mqlake.kombu.settings import TransportSettings
from mqlake.kombu.sources import TopicSource, begin_at_end
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.workqueue.deliveries import Delivery, PrefetchWindow, log_failures
from mqlake.workqueue.extensions import keep_extended
from mqlake.workqueue.topics import QueueTopics

_WAIT = 1.0
"""Seconds of one pop. Closing waits as long, and the brokers of a topic are read in turn."""
_SOON = 0.1
"""Seconds until a message that was just stored can be popped."""
_LAST_TRIES = 3.0
"""Seconds that closing leaves to acknowledgements that were not confirmed."""

_log = logging.getLogger(__name__)


class ChannelConsumer:
    """One consumer of a channel: the tasks that read for it."""

    def __init__(self) -> None:
        self.stops: list[Callable[[], object]] = []
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def is_over(self) -> bool:
        """Return whether all tasks were started and have ended."""
        return bool(self.tasks) and all(task.done() for task in self.tasks)

    def stop(self) -> None:
        """Have the tasks end; on the event loop."""
        for stop in self.stops:
            stop()


class BrokerSession:
    """Serves the channels of one connection; all of it runs on the event loop of its thread.

    Args:
        name_servers: "host:port", several separated by `;`.
        is_full: returns whether enough messages wait for the channels to take them.
        fail: called if a task of the connection ended with an error: the connection then no longer
            receives or extends messages.
        access: how all servers are reached.
    """

    def __init__(
        self,
        name_servers: str,
        settings: TransportSettings,
        is_full: Callable[[], bool],
        fail: Callable[[BaseException], object],
        access: ClientAccess,
    ) -> None:
        self._name_servers, self._settings, self._is_full = name_servers, settings, is_full
        self._fail = fail
        self._access = access
        self._admin = Admin(name_servers, tls=access.tls, credentials=access.credentials)
        self.topics = QueueTopics(self._admin, settings.group, settings.queues_per_topic)
        self._consumers: dict[TopicSource, SimpleConsumer] = {}
        self._subscriptions: dict[PrefetchWindow, list[ChannelConsumer]] = {}
        self._stack = AsyncExitStack()

    @classmethod
    async def open(
        cls,
        name_servers: str,
        settings: TransportSettings,
        is_full: Callable[[], bool],
        fail: Callable[[BaseException], object],
        seconds: float,
        access: ClientAccess,
    ) -> Self:
        """Connect to a cluster.

        Args:
            seconds: the time within which a name server must answer.

        Raises:
            MqlakeError: no name server knows a broker, or none answers in time.
        """
        session = cls(name_servers, settings, is_full, fail, access)
        try:
            async with asyncio.timeout(seconds):
                await session._admin.brokers()
            await session._start_clients()
        except TimeoutError:
            await session._close_clients()
            reason = f"{name_servers}: no name server answered within {seconds:g} s"
            raise UnavailableError(reason) from None
        except BaseException:
            await session._close_clients()
            raise
        return session

    async def _start_clients(self) -> None:
        self._producer = await self._stack.enter_async_context(
            Producer(self._name_servers, tls=self._access.tls, credentials=self._access.credentials)
        )
        self._offsets = await self._stack.enter_async_context(
            PullConsumer(
                self._name_servers, tls=self._access.tls, credentials=self._access.credentials
            )
        )
        self._extending = asyncio.get_running_loop().create_task(
            keep_extended(self._held, self._settings.visibility_timeout)
        )
        self._extending.add_done_callback(self._look_at)

    async def _close_clients(self) -> None:
        try:
            await self._stack.aclose()
        finally:
            await self._admin.close()

    async def close(self, temporary: Iterable[str]) -> None:
        """Stop all readers, give back unfinished messages, and close the connections.

        Args:
            temporary: topics that are deleted.
        """
        try:
            await asyncio.gather(*map(self.close_window, list(self._subscriptions)))
            await asyncio.gather(*map(self.topics.delete, temporary))
        finally:
            self._extending.cancel()
            await asyncio.gather(self._extending, return_exceptions=True)
            await self._close_clients()

    # Messages

    async def send(self, message: Message) -> None:
        """Store a message in a topic, which is created if missing."""
        await self.topics.ensure(message.topic)
        try:
            await self._producer.send(message)
        except MqlakeError:
            self.topics.forget(message.topic)
            raise

    async def send_to_exchange(self, message: Message) -> None:
        """Store a message in the topic of an exchange, for the queues that follow it."""
        await self.topics.ensure(message.topic, queues=1)
        await self.send(message)

    async def get(self, source: TopicSource, window: PrefetchWindow) -> Delivery | None:
        """Return a message of a queue if it has one now."""
        await self.topics.ensure(source.topic)
        consumer = await self._consumer(source)
        found = await consumer.receive(1, _SOON)
        return Delivery(consumer, found[0], window) if found else None

    async def purge(self, source: TopicSource) -> int:
        """Acknowledge all messages that are ready; return how many."""
        consumer, count, empty = await self._consumer(source), 0, 0
        brokers = len(await self._admin.brokers_of(source.topic))
        while empty < brokers:
            found = await consumer.receive(32, _SOON)
            await asyncio.gather(*map(consumer.ack, found))
            count += len(found)
            empty = 0 if found else empty + 1
        return count

    # Channels

    def open_window(self) -> PrefetchWindow:
        """Return the window of a new channel."""
        window = PrefetchWindow()
        self._subscriptions[window] = []
        return window

    async def close_window(self, window: PrefetchWindow) -> None:
        """Stop the readers of a channel, and give back its unfinished messages."""
        subscriptions = self._subscriptions.pop(window, [])
        for subscription in subscriptions:
            subscription.stop()
        tasks = [task for subscription in subscriptions for task in subscription.tasks]
        await asyncio.gather(*tasks, return_exceptions=True)
        backs = [delivery.give_back() for delivery in list(window.held)]
        await log_failures(backs, "a message was not given back, and is redelivered later")
        await window.end(_LAST_TRIES)

    def subscribe(self, window: PrefetchWindow) -> ChannelConsumer:
        """Return a subscription for a channel, for which nothing reads yet."""
        subscription = ChannelConsumer()
        others = [other for other in self._subscriptions[window] if not other.is_over]
        self._subscriptions[window] = [*others, subscription]
        return subscription

    async def read_queue(
        self,
        subscription: ChannelConsumer,
        source: TopicSource,
        window: PrefetchWindow,
        arrive: Arrive,
    ) -> None:
        """Read the topic of a queue, which is created if missing."""
        await self.topics.ensure(source.topic)
        consumer = await self._consumer(source)
        reader = QueueReader(consumer, window, arrive, _WAIT, self._is_full)
        self._start(subscription, reader.run, reader.stop)

    async def follow_exchange(
        self,
        subscription: ChannelConsumer,
        offsets: dict[MessageQueue, int],
        selects: Callable[[Payload], bool],
        arrive: Arrive,
    ) -> None:
        """Read the topic of an exchange from given offsets on."""
        reader = ExchangeReader(
            self._name_servers, offsets, selects, arrive, self._is_full, self._access
        )
        self._start(subscription, reader.run, None)

    async def ends_of(self, topic: str) -> dict[MessageQueue, int]:
        """Return the end of the topic of an exchange; the topic is created if missing."""
        await self.topics.ensure(topic, queues=1)
        return dict(await ends_of(self._offsets, topic))

    async def begin(self, source: TopicSource) -> None:
        """Have the consumption of an exchange by a durable queue begin now, unless it has begun."""
        ends = await self.ends_of(source.topic)
        await begin_at_end(self._admin, source, ends)

    # Internals

    def _start(
        self,
        subscription: ChannelConsumer,
        run: Callable[[], Coroutine[Any, Any, None]],
        stop: Callable[[], object] | None,
    ) -> None:
        task = asyncio.get_running_loop().create_task(run())
        task.add_done_callback(self._look_at)
        subscription.tasks.append(task)
        subscription.stops.append(stop or task.cancel)

    async def _consumer(self, source: TopicSource) -> SimpleConsumer:
        found = self._consumers.get(source)
        if found is None:
            settings = self._settings
            found = self._consumers[source] = SimpleConsumer(
                self._name_servers,
                source.group,
                source.topic,
                invisible=settings.visibility_timeout,
                is_from_first=True,
                tls=self._access.tls,
                credentials=self._access.credentials,
            )
            await self._stack.enter_async_context(found)
        return found

    def _held(self) -> list[Delivery]:
        return [delivery for window in self._subscriptions for delivery in window.held]

    def _look_at(self, task: asyncio.Task[Any]) -> None:
        """Fail the connection if a task fails: a worker that receives nothing must not idle."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the connection failed; it must connect again", exc_info=error)
            self._fail(error)
