"""What all members of a consumer group share (upstream: `DefaultMQPushConsumerImpl`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from mqlake.client.closing import Closing
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.finishing import Finishing
from mqlake.client.consumer.operator_answers import ConsumerOperatorAnswers
from mqlake.client.consumer.parts import make_parts
from mqlake.client.consumer.pulling import DecodedPull
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.locks import INTERVAL
from mqlake.client.consumer.queues.ownership import Listener, Ownership
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.client.consumer.workers import Workers
from mqlake.client.errors import ClientError, ClosedError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.routes import ClientRoutes
from mqlake.client.timers import Timer
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.metrics.metric import Sample
from mqlake.protocol.bodies.heartbeat import BROADCASTING, CLUSTERING, PASSIVE, ConsumerData
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import read_object, read_queue_table
from mqlake.protocol.command import Body, Command
from mqlake.protocol.namespace import Namespace
from mqlake.protocol.naming import group_fault, retry_topic
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

_SOON = 1.0
_LATE_INTERVAL = 60.0
_FROM = {"last": "CONSUME_FROM_LAST_OFFSET", "first": "CONSUME_FROM_FIRST_OFFSET"}

_log = logging.getLogger(__name__)


class GroupMember:
    """Joins a group, reads its share of the topics' queues, and commits its offsets.

    `Consumer` hands over single messages; other classes hand them over in other forms.

    Args: as for `Consumer`.

    Raises:
        ClientError: the name of the group cannot be used, there is no topic, or the settings are
            something else.
    """

    def __init__(
        self,
        name_servers: str,
        group: str,
        topics: Mapping[str, str] | Sequence[str] | str,
        *,
        settings: ConsumerSettings | None = None,
        instance: str = DEFAULT_INSTANCE,
        unit: str | None = None,
        namespace: str = "",
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        _check(topics, settings)
        self._tls, self._credentials = tls, credentials
        self._namespace = Namespace(namespace)
        group = self._namespace.wrap(group)
        if fault := group_fault(group):
            raise ClientError(fault)
        self.group, self._name_servers = group, name_servers
        self._settings = settings or ConsumerSettings()
        self._instance_name, self._unit = instance, unit
        self._listeners = on_assigned, on_revoked
        self._version = self._started = now = SystemClock().milliseconds()
        wishes = {self._namespace.wrap(name): wish for name, wish in _wishes(topics).items()}
        self._wanted = {topic: SelectedTopic(topic, wish, now) for topic, wish in wishes.items()}
        if not self._settings.broadcasting:
            own = retry_topic(group)
            self._wanted[own] = SelectedTopic(own, ALL, now)
        self._instance: ClientInstance | None = None
        self._measured: Statistics | None = None
        self._closing = Closing()
        self._jobs: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def samples(self) -> Sequence[Sample]:
        """Return its metrics, for `mqlake.client.metrics.ClientMetrics`: none before it starts."""
        return () if self._measured is None else self._measured.samples(self.group)

    async def start(self) -> None:
        """Join the group, and find where to begin; `async with` does it.

        The consumer receives what is sent to its queues afterwards, even if its group is new. If
        the group has other members, it may find where to begin later.

        Raises:
            ClientError: this process already has a consumer of the group under the same instance
                name.
        """
        settings = self._settings
        self._timers = self._make_timers()
        home = _home() if settings.broadcasting else None
        instance = share_instance(
            self._name_servers,
            self._instance_name,
            self._unit,
            consumer_group=self.group,
            is_stable=settings.broadcasting,
            tls=self._tls,
            credentials=self._credentials,
        )
        try:
            instance.members.add_consumer(self, instance.client_id)
        except BaseException:
            await give_back(instance)
            raise
        self._instance = instance
        self._parts = parts = make_parts(
            consumer=self,
            group=self.group,
            settings=settings,
            instance=instance,
            namespace=self._namespace,
            wanted=self._wanted,
            home=home,
            moved=self._moved,
            decode=self._decode,
        )
        self._measured = parts.statistics
        self._ownership = Ownership(self._parts, self._wanted, *self._listeners)
        self._finishing = Finishing(
            send_back=self._send_back,
            inbox=parts.inbox,
            settings=settings,
            ownership=self._ownership,
            popping=parts.popping,
            statistics=parts.statistics,
            trace=parts.trace,
        )
        self._workers = Workers(self._parts.inbox, self._finishing)
        try:
            await asyncio.gather(*map(instance.routes.load, self._wanted))
            self._report_unknown(instance.routes)
            await instance.heartbeat()
            await self._rebalance()
            await self._ownership.first_offsets()
        except BaseException:
            await self.close()
            raise
        for timer in self._timers:
            timer.start()

    def _report_unknown(self, routes: ClientRoutes) -> None:
        """Log the topics without a route: the consumer waits for them."""
        for topic in self._wanted:
            if routes.known(topic) is None and not topic.startswith(RETRY_PREFIX):
                _log.warning(
                    "group %s: topic %s: %s; it is read as soon as there is a route",
                    self.group,
                    topic,
                    routes.why_unknown(),
                )

    async def close(self) -> None:
        """Let handlers finish, commit the offsets, and leave the group.

        In a forked child this does nothing: the client belongs to the parent.
        """
        if self._instance is not None and not self._instance.fork_guard.is_child:
            caller = asyncio.current_task()
            await self._closing.run(lambda: self._close(caller))

    async def _close(self, caller: asyncio.Task[Any] | None) -> None:
        instance = self._instance
        if instance is None:
            return
        try:
            for timer in self._timers:
                await timer.stop()
            self._parts.inbox.close()
            await self._workers.close(self._settings.close_timeout, caller)
            for job in self._jobs:
                job.cancel()
            await asyncio.gather(*self._jobs, return_exceptions=True)
            await self._ownership.close()
            if self._parts.trace is not None:
                await self._parts.trace.close()
            await instance.remove(self)
        finally:
            self._instance = None
            instance.members.remove_consumer(self)
            await give_back(instance)

    # The queues that it reads

    @property
    def queues(self) -> frozenset[MessageQueue]:
        """Return the queues that are assigned to this consumer now."""
        return self._ownership.queues

    def pause(self, topic: str) -> None:
        """Pause a topic; messages that were already read are still handed over."""
        self._parts.pulling.paused.add(self._namespace.wrap(topic))

    def resume(self, topic: str) -> None:
        """Resume a topic."""
        self._parts.pulling.paused.discard(self._namespace.wrap(topic))

    async def commit(self) -> None:
        """Commit the offsets of all queues; return once the brokers have acknowledged them.

        Raises:
            MqlakeError: an offset is not committed; all were tried.
        """
        self._require_open()
        await self._ownership.commit()

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue one of the consumer's own queues at an offset, and commit that offset.

        Messages of the queue that were read before can no longer be acknowledged.

        Raises:
            ClientError: the queue is not assigned to this consumer, or is popped.
        """
        if self._ownership.get(queue) is None:
            raise ClientError(
                f"queue {queue.queue_id} of {queue.topic} is not assigned to this consumer"
            )
        await self._reset({queue: offset})

    # The requests of its client instance

    @property
    def topics(self) -> Sequence[str]:
        """Return the topics that it is subscribed to, its group's retry topic included."""
        return tuple(self._wanted)

    def data(self) -> ConsumerData:
        """Return what heartbeats report to brokers."""
        settings = self._settings
        start = settings.consume_from
        return ConsumerData(
            group_name=self.group,
            consume_type=PASSIVE,
            message_model=BROADCASTING if settings.broadcasting else CLUSTERING,
            consume_from_where=_FROM.get(str(start), "CONSUME_FROM_TIMESTAMP"),
            subscription_data_set=[wanted.data(self._version) for wanted in self._wanted.values()],
        )

    @property
    def operator_answers(self) -> ConsumerOperatorAnswers:
        """Return the object that answers operators."""
        return ConsumerOperatorAnswers(
            data=self.data(),
            name_servers=self._name_servers,
            settings=self._settings,
            started=self._started,
            wanted=tuple(self._wanted.values()),
            queues=self._ownership,
            statistics=self._parts.statistics,
            workers=self._workers,
            namespace=self._namespace,
        )

    def rebalance_soon(self) -> None:
        """Rebalance: the group's members have changed."""
        self._timers[0].wake()

    def routes_changed(self, topics: set[str]) -> None:
        """Rebalance if any of these topics is subscribed to."""
        if not topics.isdisjoint(self._wanted):
            self.rebalance_soon()

    def reset_offsets(self, command: Command) -> None:
        """Continue at the offsets to which an operator has reset the group on the broker."""
        table = read_queue_table(read_object(command.body).get("offsetTable") or {}, int)
        self._start_job(self._reset(table))

    async def ack(self, message: ConsumedMessage) -> bool:
        """Do what `ConsumedMessage.ack` says."""
        return await self._finishing.ack(message)

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        """Do what `ConsumedMessage.retry_later` says."""
        return await self._finishing.retry_later(message, delay_level)

    # How it hands over what it reads

    def _decode(
        self, data: Body, queue: MessageQueue, wanted: SelectedTopic, first: int
    ) -> DecodedPull:
        messages, last = self._parts.calls.decode(data, queue, first)
        return DecodedPull(wanted.choose(messages), last)

    async def _send_back(self, message: ConsumedMessage, level: int, most: int) -> None:
        await self._parts.calls.send_back(message, level, most)

    # Internals

    def _make_timers(self) -> tuple[Timer, ...]:
        settings = self._settings
        every, commit = settings.rebalance_interval, settings.commit_interval
        rebalance = Timer("rebalance", self._rebalance, first=_SOON, every=every, least=0.2)
        timers = (rebalance, Timer("offsets", self._commit, first=commit, every=commit))
        if not settings.in_order:
            late = min(settings.handling_timeout, _LATE_INTERVAL)
            return (*timers, Timer("late", self._give_up, first=late, every=late))
        if not settings.takes_locks:
            return timers
        return (*timers, Timer("locks", self._renew, first=INTERVAL, every=INTERVAL))

    async def _rebalance(self) -> None:
        before = self.queues
        is_done = await self._ownership.rebalance()
        if not is_done:
            self._timers[0].sooner(_SOON)
        if before != self.queues and self._instance is not None:
            self._version = SystemClock().milliseconds()
            await self._instance.heartbeat()
            # Brokers refuse pulls with a subscription version that no heartbeat has reported.
            for wanted in self._wanted.values():
                wanted.version = self._version

    async def _commit(self) -> None:
        self._parts.statistics.sample()
        await self._ownership.note()

    async def _give_up(self) -> None:
        await self._finishing.give_up_late_ones()

    async def _renew(self) -> None:
        await self._parts.locks.renew(self._ownership)
        for held in self._ownership:
            self._parts.inbox.offer(held)

    def _moved(self, held: QueueMessages, offset: int) -> None:
        self._start_job(self._reset({held.queue: offset}))

    async def _reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        await self._ownership.restart(offsets, self._workers.handling)

    def _start_job(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except Exception:  # noqa: BLE001 (a queue that is not read is restarted later)
                _log.exception("group %s: offsets were not reset", self.group)

        task = asyncio.get_running_loop().create_task(run())
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    def _require_open(self) -> None:
        if self._instance is None:
            raise ClosedError(
                "the consumer is closed, or was not started: use it inside `async with`"
            )
        self._instance.fork_guard.check()


def _check(topics: object, settings: object) -> None:
    if not topics:
        raise ClientError("a consumer needs at least one topic")
    if settings is not None and not isinstance(settings, ConsumerSettings):
        raise ClientError(
            f"settings={settings!r}: give ConsumerSettings, such as ConsumerSettings(in_order=True)"
        )


def _home() -> Path:
    from mqlake.client.consumer.local_offsets import (
        home_directory,  # The module that writes files loads slowly.
    )

    return home_directory()


def _wishes(topics: Mapping[str, str] | Sequence[str] | str) -> dict[str, str]:
    if isinstance(topics, str):
        return {topics: ALL}
    if isinstance(topics, Mapping):
        return dict(topics)
    return dict.fromkeys(topics, ALL)
