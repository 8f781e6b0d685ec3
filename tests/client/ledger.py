"""A record of what was sent, delivered, finished and committed, and what must be true of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from mqlake.client import MessageQueue, PullConsumer, ReceivedMessage
from mqlake.client.consumer.settings import ConsumerSettings

Stored = Mapping[MessageQueue, Sequence[ReceivedMessage]]
"""All messages of each queue, by queue offset."""


_NEVER = float("inf")


class Place(NamedTuple):
    """Where a message is stored."""

    queue: MessageQueue
    offset: int


class Delivery(NamedTuple):
    """A message that a consumer received.

    Attributes:
        at: seconds of the monotonic clock.
        message_id: its unique key; a message that was stored twice has it twice.
        who: the consumer.
    """

    at: float
    label: str
    message_id: str
    place: Place
    who: str


class Observation(NamedTuple):
    """A committed offset as the broker reported it.

    Attributes:
        at: seconds of the monotonic clock, after the answer.
    """

    at: float
    queue: MessageQueue
    offset: int


class Ledger:
    """What happened to messages. The first word of a body is the label of its message.

    Args:
        now: returns seconds that never go back.

    Attributes:
        acknowledged: labels of messages that a broker acknowledged, with the time of that.
        impossible: labels of messages that must never be consumed.
        deliveries: everything that consumers received.
        finished: when each message was finished first.
        failed: when a handler failed or asked for a redelivery, by message id.
        observations: committed offsets.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.acknowledged: dict[str, float] = {}
        self.impossible: set[str] = set()
        self.deliveries: list[Delivery] = []
        self.finished: dict[Place, float] = {}
        self.finished_labels: set[str] = set()
        self.failed_labels: set[str] = set()
        self.failed: dict[str, list[float]] = defaultdict(list)
        self.observations: list[Observation] = []

    def acknowledge(self, label: str) -> None:
        """Note that a broker acknowledged a message."""
        self.acknowledged[label] = self._now()

    def deliver(self, message: ReceivedMessage, who: str) -> None:
        """Note that a consumer received a message."""
        self.deliveries.append(
            Delivery(self._now(), label_of(message), message.message_id, place(message), who)
        )

    def finish(self, message: ReceivedMessage) -> None:
        """Note that a handler is done with a message; call it before the acknowledgement."""
        self.finished.setdefault(place(message), self._now())
        self.finished_labels.add(label_of(message))

    def fail(self, message: ReceivedMessage, *, is_sent_back: bool) -> None:
        """Note that a message is to be redelivered.

        Args:
            is_sent_back: the copy in the retry topic replaces it, so its offset may be committed.
        """
        self.failed[message.message_id].append(self._now())
        self.failed_labels.add(label_of(message))
        if is_sent_back:
            self.finished.setdefault(place(message), self._now())

    def observe(self, queue: MessageQueue, offset: int) -> None:
        """Note a committed offset."""
        self.observations.append(Observation(self._now(), queue, offset))

    @property
    def unconsumed(self) -> set[str]:
        """Return the labels of acknowledged messages that nobody has finished."""
        return self.acknowledged.keys() - self.finished_labels

    @property
    def unretried(self) -> set[str]:
        """Return the labels of messages that failed and that nobody has finished since."""
        return self.failed_labels - self.finished_labels

    def violations(self, stored: Stored, *, is_all_consumed: bool = True) -> list[str]:
        """Return what is not as it must be, one line each.

        Args:
            is_all_consumed: whether what no broker acknowledged must be consumed, too, if it is
                stored.
        """
        found = [f"{label}: acknowledged and never consumed" for label in sorted(self.unconsumed)]
        found += [
            f"{label}: consumed, though it cannot have been stored"
            for label in sorted(self.impossible & {each.label for each in self.deliveries})
        ]
        found += [
            f"{describe(place(message))}: stored and never consumed"
            for messages in stored.values()
            for message in messages
            if is_all_consumed and label_of(message) not in self.finished_labels
        ]
        found += self._passed_offsets(stored)
        return found

    def _passed_offsets(self, stored: Stored) -> list[str]:
        found: list[str] = []
        finished_to: dict[MessageQueue, list[float]] = {}
        for queue, messages in stored.items():
            times = (self.finished.get(place(message), _NEVER) for message in messages)
            finished_to[queue] = list(accumulate(times, max))
        for at, queue, committed in self.observations:
            times = finished_to.get(queue, [])[:committed]
            if times and times[-1] > at:
                offset = next(number for number, time in enumerate(times) if time > at)
                where = describe(Place(queue, offset))
                found.append(f"{where}: the committed offset {committed} passed it unfinished")
        return found

    def out_of_order(self) -> list[str]:
        """Return the first sights of messages whose queue had finished a later one, one line each.

        This holds for consumers in order: a redelivery may repeat messages, but none is skipped.
        """
        found: list[str] = []
        seen: set[Place] = set()
        later = self._finished_later()
        for at, label, _, where, who in self.deliveries:
            if where not in seen and later.get(where, _NEVER) < at:
                found.append(f"{describe(where)} ({label}): {who} saw it after a later one")
            seen.add(where)
        return found

    def _finished_later(self) -> dict[Place, float]:
        """Return for each finished message when the first one after it in its queue was."""
        found: dict[Place, float] = {}
        soonest: dict[MessageQueue, float] = {}
        for where in sorted(self.finished, key=lambda each: -each.offset):
            found[where] = soonest.get(where.queue, _NEVER)
            soonest[where.queue] = min(found[where], self.finished[where])
        return found


def label_of(message: ReceivedMessage) -> str:
    """Return the label of a message."""
    return message.body.partition(b" ")[0].decode()


def place(message: ReceivedMessage) -> Place:
    """Return where a message is stored."""
    return Place(message.queue, message.queue_offset)


def describe(where: Place) -> str:
    """Return a place as text."""
    queue, offset = where
    return f"{queue.broker_name}/{queue.topic}/{queue.queue_id} offset {offset}"


async def read_all(names: str, topics: Sequence[str]) -> Stored:
    """Return all messages of some topics."""
    settings = ConsumerSettings(consume_from="first")
    async with PullConsumer(names, settings=settings) as consumer:
        ends: dict[MessageQueue, int] = {}
        for topic in topics:
            for queue in await consumer.queues_of(topic):
                ends[queue] = await consumer.end_of(queue)
        found: dict[MessageQueue, list[ReceivedMessage]] = {queue: [] for queue in ends}
        consumer.assign(ends)
        while any(len(found[queue]) < end for queue, end in ends.items()):
            for message in await consumer.poll():
                found[message.queue].append(message)
    for queue, messages in found.items():
        assert [each.queue_offset for each in messages] == list(range(len(messages))), queue
    return found
