"""Read queues that the caller assigns (upstream: `DefaultLitePullConsumer` with `assign`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Self

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.inbox import Inbox
from mqlake.client.consumer.offsets import BrokerOffsets, NoOffsets, Offsets
from mqlake.client.consumer.pulling import DecodedPull, Pulling, log_failure
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.locks import FOREVER
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import READ, Statistics
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.client.errors import ClientError, ClosedError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.message import ReceivedMessage
from mqlake.metrics.metric import Sample
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body
from mqlake.protocol.namespace import Namespace
from mqlake.protocol.naming import group_fault
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.clock import SystemClock

_NOBODY = "TOOLS_CONSUMER"
"""A group that every broker has, for readers without a group."""


class PullConsumer:
    """Reads the queues that are assigned to it; no group shares them. For one event loop.

        async with PullConsumer("localhost:9876", "audit") as consumer:
            consumer.assign(await consumer.queues_of("orders"))
            messages = await consumer.poll(timeout=1.0)
            await consumer.commit()

    Args:
        name_servers: "host:port", several separated by `;`.
        group: its offsets are read and committed; None for a reader without a group.
        settings: `consume_from`, and how much is read ahead.
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
        group: str | None = None,
        *,
        settings: ConsumerSettings | None = None,
        instance: str = DEFAULT_INSTANCE,
        namespace: str = "",
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._tls, self._credentials = tls, credentials
        self._namespace = Namespace(namespace)
        group = None if group is None else self._namespace.wrap(group)
        if group is not None and (fault := group_fault(group)):
            raise ClientError(fault)
        self.group, self._name_servers = group, name_servers
        self._settings = settings or ConsumerSettings()
        self._instance_name = instance
        self._instance: ClientInstance | None = None
        self._statistics: Statistics | None = None
        self._held: dict[MessageQueue, tuple[QueueMessages, SelectedTopic, asyncio.Task[None]]] = {}
        self._polled: dict[MessageQueue, int] = {}

    def samples(self) -> Sequence[Sample]:
        """Return its metrics, for `mqlake.client.metrics.ClientMetrics`: none before it starts.

        Without a group, `consumer_group` is the one in whose name it reads.
        """
        found = self._statistics
        return () if found is None else found.samples(self.group or _NOBODY, READ)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def start(self) -> None:
        """Connect; `async with` does it."""
        instance = share_instance(
            self._name_servers,
            self._instance_name,
            None,
            tls=self._tls,
            credentials=self._credentials,
        )
        self._instance, self._inbox = instance, Inbox[QueueMessages]()
        group = self.group or _NOBODY
        self._calls = BrokerCalls(instance, group, self._namespace)
        # Totals count from the first start.
        self._statistics = self._statistics or Statistics(asyncio.get_running_loop().time)
        self._offsets: Offsets = BrokerOffsets(self._calls) if self.group else NoOffsets()
        self._pulling = Pulling(
            group=group,
            calls=self._calls,
            offsets=self._offsets,
            offer=self._inbox.offer,
            settings=self._settings,
            finisher=self,
            statistics=self._statistics,
            moved=self._moved,
            decode=self._decode,
            states_subscription=True,
        )

    async def close(self) -> None:
        """Stop reading. Only `commit` commits the offsets of polled messages.

        In a forked child this does nothing: the client belongs to the parent.
        """
        instance, self._instance = self._instance, None
        if instance is None or instance.fork_guard.is_child:
            return
        try:
            self._inbox.close()
            tasks = [task for _, _, task in self._held.values()]
            self.assign(())
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await give_back(instance)

    # Which queues

    async def queues_of(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic that may be read, by broker name and queue id.

        Raises:
            NoRouteError: no name server knows the topic.
        """
        return (await self._require_open().routes.of(self._namespace.wrap(topic))).read_queues

    def assign(self, queues: Iterable[MessageQueue], selection: str = ALL) -> None:
        """Read exactly these queues from now on.

        A new queue is read from the group's offset. A queue whose selection changes continues after
        the last polled message.

        Args:
            selection: an expression of tags, or `Sql`.

        Raises:
            ClientError: it is a topic instead of queues.
        """
        given: object = queues
        if isinstance(given, str):
            raise ClientError(
                f"assign takes queues, not the topic {given!r}: assign(await queues_of({given!r}))"
            )
        wished = dict.fromkeys(queues)
        for queue in [queue for queue in self._held if queue not in wished]:
            self._drop(queue)
        version = SystemClock().milliseconds()
        for queue in wished:
            wanted, found = SelectedTopic(queue.topic, selection, version), self._held.get(queue)
            if found is not None and found[1].is_same(wanted):
                continue
            offset = None
            if found is not None:
                # Messages that were read ahead were selected by the old expression.
                offset, polled = found[0].committed_offset, self._polled.get(queue)
                self._drop(queue)
                if polled is not None:
                    self._polled[queue] = polled
            self._begin(queue, wanted, offset)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue a queue at an offset; messages that were read ahead of it are dropped.

        Raises:
            ClientError: the queue is not assigned.
        """
        if queue not in self._held:
            raise ClientError(
                f"queue {queue.queue_id} of {queue.topic} is not assigned: call `assign` first"
            )
        wanted = self._held[queue][1]
        self._drop(queue)
        self._polled[queue] = offset
        self._begin(queue, wanted, offset)

    # Messages

    async def poll(
        self,
        timeout: float = 5.0,  # noqa: ASYNC109 (how long there may be nothing)
        most: int = 32,
    ) -> Sequence[ReceivedMessage]:
        """Return the next messages of one queue; an empty list if none arrive in time."""
        self._require_open()
        try:
            async with asyncio.timeout(timeout):
                taken = await self._inbox.take(most)
        except TimeoutError:
            return ()
        if taken is None:
            return ()
        held, messages = taken
        for message in messages:
            held.finish(message)
        if held.committed_offset is not None:
            self._polled[held.queue] = held.committed_offset
        return messages

    async def commit(self) -> None:
        """Commit the offsets after the last polled messages; return once the brokers have
        acknowledged them.

        Raises:
            MqlakeError: an offset is not committed; all were tried.
        """
        self._require_open()
        commits = (self._offsets.commit(*polled) for polled in list(self._polled.items()))
        for result in await asyncio.gather(*commits, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    # Offsets

    async def start_of(self, queue: MessageQueue) -> int:
        """Return the first queue offset that is still in a queue."""
        return await self._known(queue).start_of(queue)

    async def end_of(self, queue: MessageQueue) -> int:
        """Return the next queue offset of a queue."""
        return await self._known(queue).end_of(queue)

    async def offset_at(self, queue: MessageQueue, milliseconds: int) -> int:
        """Return the queue offset of the first message stored at a time or later."""
        return await self._known(queue).offset_at(queue, milliseconds)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group has committed for a queue, None if the broker has
        none.
        """
        return await self._known(queue).offset_of_group(queue)

    # Internals

    def _begin(self, queue: MessageQueue, wanted: SelectedTopic, offset: int | None) -> None:
        self._require_open()
        loop = asyncio.get_running_loop()
        held = QueueMessages(queue, loop.time, in_order=False)
        held.next_offset, held.locked_until = offset, FOREVER
        self._read(held, wanted)

    def _read(self, held: QueueMessages, wanted: SelectedTopic) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._pulling.run(held, wanted, 0.0))
        task.add_done_callback(log_failure)
        self._held[held.queue] = held, wanted, task

    def _drop(self, queue: MessageQueue) -> None:
        held, _, task = self._held.pop(queue)
        held.drop()
        task.cancel()
        self._polled.pop(queue, None)

    def _decode(
        self, data: Body, queue: MessageQueue, wanted: SelectedTopic, first: int
    ) -> DecodedPull:
        messages, last = self._calls.decode(data, queue, first)
        return DecodedPull(wanted.choose(messages), last)

    def _moved(self, held: QueueMessages, offset: int) -> None:
        """Continue at the offset that the broker names.

        If messages were deleted, that is the next one that exists, and what was read before stays.
        If the queue ends before the offset, its topic was created again, and what was read is of
        the deleted one.
        """
        if held.queue in self._held:
            if offset < (held.next_offset or 0):
                held.restart(offset)
                self._polled[held.queue] = offset
            held.next_offset = offset
            self._read(held, self._held[held.queue][1])

    def _known(self, queue: MessageQueue) -> BrokerCalls:
        self._require_open()
        if self._calls.knows(queue):
            return self._calls
        raise ClientError(f"topic {queue.topic} is unknown: call `queues_of` first")

    def _require_open(self) -> ClientInstance:
        if self._instance is None:
            raise ClosedError(
                "the consumer is closed, or was not started: use it inside `async with`"
            )
        self._instance.fork_guard.check()
        return self._instance

    # Messages that were polled are finished.

    async def ack(self, message: ConsumedMessage) -> bool:  # noqa: ARG002
        """Do nothing: `commit` determines the offsets."""
        return False

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:  # noqa: ARG002
        """Do nothing: `seek` moves the consumer back."""
        return False
