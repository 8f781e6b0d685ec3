"""Tasks that read the topics of queues and exchanges while a channel consumes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from mqlake.client.access import ClientAccess
from mqlake.client.consumer.pull_consumer import PullConsumer
from mqlake.client.consumer.simple_consumer import PoppedMessage, SimpleConsumer
from mqlake.client.message import ReceivedMessage
from mqlake.errors import MqlakeError
from mqlake.kombu.border import Payload
from mqlake.kombu.payloads import mark_redelivered, payload_of
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.workqueue.deliveries import Delivery, PrefetchWindow, log_failures

Arrive = Callable[[Payload, Delivery | None], None]
"""Receives a payload, and the delivery that acknowledges it, if it has one."""

_BACKOFF = 1.0
_TURN = 0.05

_log = logging.getLogger(__name__)


class QueueReader:
    """Pops the messages of one queue for one channel.

    Args:
        wait: seconds that one pop waits for messages; stopping takes as long.
        is_full: returns whether enough messages wait for the channel to take them.
    """

    def __init__(
        self,
        consumer: SimpleConsumer,
        window: PrefetchWindow,
        arrive: Arrive,
        wait: float,
        is_full: Callable[[], bool],
    ) -> None:
        self._consumer, self._window, self._arrive = consumer, window, arrive
        self._wait, self._is_full = wait, is_full
        self._is_stopping = self._is_failing = False
        self._refused: list[Coroutine[Any, Any, None]] = []

    def stop(self) -> None:
        """Stop reading; `run` returns after the current pop, whose messages go back."""
        self._is_stopping = True
        self._window.wake()

    async def run(self) -> None:
        """Hand over messages until `stop` is called."""
        self._window.readers += 1
        try:
            while not self._is_stopping:
                await self._turn()
        finally:
            self._window.readers -= 1

    async def _turn(self) -> None:
        share = self._window.share
        if not share:
            await self._window.changed()
        elif self._is_full():
            await asyncio.sleep(_TURN)
        else:
            self._take_all(await self._pop(share))
            await self._refuse()

    async def _pop(self, most: int) -> Sequence[PoppedMessage]:
        try:
            found = await self._consumer.receive(most, self._wait)
        except MqlakeError as error:
            if not self._is_failing:
                _log.warning("a queue is not read for now, and tried again: %s", error)
            self._is_failing = True
            await asyncio.sleep(_BACKOFF)
            return ()
        self._is_failing = False
        return found

    def _take_all(self, messages: Sequence[PoppedMessage]) -> None:
        for message in messages:
            has_room = self._window.room > 0
            delivery = Delivery(self._consumer, message, self._window)
            payload = payload_of(message)
            if payload is None:
                _log.error(
                    "message %s of %s is not kombu's: it is acknowledged and not handed over",
                    message.message_id,
                    message.topic,
                )
                self._refused.append(delivery.ack())
            elif self._is_stopping or not has_room:
                # Readers of other queues of the channel may have used up the prefetch count.
                self._refused.append(delivery.give_back())
            else:
                mark_redelivered(payload, message)
                self._arrive(payload, delivery)

    async def _refuse(self) -> None:
        if self._refused:
            refused, self._refused = self._refused, []
            await log_failures(refused, "a message that was not handed over")


class ExchangeReader:
    """Reads the topic of an exchange from given offsets on, for one queue that is not durable.

    Args:
        offsets: where to begin; where to continue after `run` was cancelled.
        selects: returns whether a payload is for the queue.
    """

    def __init__(
        self,
        name_servers: str,
        offsets: dict[MessageQueue, int],
        selects: Callable[[Payload], bool],
        arrive: Arrive,
        is_full: Callable[[], bool],
        access: ClientAccess,
    ) -> None:
        self._name_servers, self._offsets, self._access = name_servers, offsets, access
        self._selects, self._arrive, self._is_full = selects, arrive, is_full

    async def run(self) -> None:
        """Hand over messages until cancelled."""
        while True:
            try:
                await self._read()
            except MqlakeError as error:
                _log.warning("an exchange is not read for now, and tried again: %s", error)
                await asyncio.sleep(_BACKOFF)

    async def _read(self) -> None:
        access = self._access
        async with PullConsumer(
            self._name_servers, tls=access.tls, credentials=access.credentials
        ) as consumer:
            for topic in {queue.topic for queue in self._offsets}:
                await consumer.queues_of(topic)
            consumer.assign(self._offsets)
            for queue, offset in list(self._offsets.items()):
                await consumer.seek(queue, offset)
            while True:
                if self._is_full():
                    await asyncio.sleep(_TURN)
                    continue
                for message in await consumer.poll():
                    self._take(message)

    def _take(self, message: ReceivedMessage) -> None:
        self._offsets[message.queue] = message.queue_offset + 1
        payload = payload_of(message)
        if payload is not None and self._selects(payload):
            self._arrive(payload, None)


async def ends_of(consumer: PullConsumer, topic: str) -> Mapping[MessageQueue, int]:
    """Return the next offset of each queue of a topic."""
    queues = await consumer.queues_of(topic)
    ends = await asyncio.gather(*map(consumer.end_of, queues))
    return dict(zip(queues, ends, strict=True))
