"""The members of one group, in Java and in Python."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

from mqlake.client import ConsumedMessage, Consumer, ConsumerSettings, MessageQueue
from tests.client.ledger import Delivery, Ledger, Place, label_of
from tests.peer.rocketmq_client import Clients

FAILING = 31
"""A message whose number is a multiple of this fails the first time, as in `Members.java`."""
LONGEST_CLOSE = 30.0

SETTINGS: dict[str, dict[str, Any]] = {
    "concurrent": {},
    "ordered": {"in_order": True, "suspend": 0.2},
    "broadcasting": {"broadcasting": True},
    "pop": {"client_rebalance": False, "pop_invisible": 10.0},
}
"""What the settings of a group's members are, besides their defaults, by its mode."""


class Jvm:
    """The JVM with the Java members of all groups; it answers one request at a time."""

    def __init__(self, clients: Clients, names: str) -> None:
        self._clients, self._names = clients, names
        self._turn = asyncio.Lock()
        self._rooms: dict[str, Members] = {}

    async def join(self, members: Members, name: str) -> None:
        """Start a member of a group."""
        self._rooms[name] = members
        await self._ask(lambda: self._clients.join(self._names, *members.words, name))

    async def leave(self, name: str) -> None:
        """Shut a member down."""
        await self._ask(lambda: self._clients.leave(self._names, name))

    async def collect(self) -> None:
        """Note what members have done in the ledgers of their groups."""
        async with self._turn:
            found = await asyncio.to_thread(self._clients.events, self._names)
        for at, who, what, body, message_id, topic, broker, number, offset in found:
            where = Place(MessageQueue(topic, broker, number), offset)
            event = JavaEvent(at / 1000, who, what, body.partition(" ")[0], message_id, where)
            self._rooms[who].note(event)

    async def _ask(self, request: Callable[[], None]) -> None:
        async with self._turn:
            await asyncio.to_thread(request)


class JavaEvent(NamedTuple):
    """What a Java member did with a message."""

    at: float
    who: str
    what: str
    label: str
    message_id: str
    where: Place


class Change(NamedTuple):
    """A member joined or left: from when to when, seconds since 1970."""

    begun: float
    ended: float
    kind: str


class Members:
    """The members of one group.

    Attributes:
        words: mode, topic and group.
        ledger: what they did, in seconds since 1970.
        since: who is there, and since when.
        changes: who came and went.
    """

    def __init__(self, names: str, jvm: Jvm, mode: str, seed: int) -> None:
        self._names, self._jvm, self.mode = names, jvm, mode
        self.words = mode, f"Mixed-{mode}", f"mixed-{mode}-group"
        self.ledger = Ledger(time.time)
        self._dice = random.Random(f"{seed} {mode}")
        self._numbers = count()
        self._python: dict[str, tuple[Consumer, asyncio.Task[None]]] = {}
        self.since: dict[str, float] = {}
        self.changes: list[Change] = []
        self.violations: list[str] = []

    async def change(self, most: int) -> None:
        """Let a member join or leave; one of each kind at least stays.

        Args:
            most: members of each kind.
        """
        side = self._dice.choice(("java", "python"))
        there = [name for name in self.since if side in name]
        if len(there) <= 1 or (len(there) < most and self._dice.random() < 0.5):
            await self.join(side)
        else:
            await self.leave(self._dice.choice(there))

    async def join(self, side: str) -> None:
        """Start one more member: "java" or "python"."""
        begun, name = time.time(), f"{self.mode}-{side}-{next(self._numbers)}"
        if side == "java":
            await self._jvm.join(self, name)
        else:
            await self._join(name)
        self.since[name] = time.time()
        self.changes.append(Change(begun, time.time(), f"{side} joins"))

    async def leave(self, name: str) -> None:
        """Shut a member down."""
        begun = time.time()
        del self.since[name]
        found = self._python.pop(name, None)
        if found is None:
            await self._jvm.leave(name)
        else:
            consumer, task = found
            await consumer.close()
            await task
            if (seconds := time.time() - begun) > LONGEST_CLOSE:
                self.violations.append(f"{name} took {seconds:.1f} s to close")
        side = "java" if found is None else "python"
        self.changes.append(Change(begun, time.time(), f"{side} leaves"))

    async def close(self) -> None:
        """Shut all members down."""
        for name in list(self.since):
            await self.leave(name)

    async def collect(self) -> None:
        """Note what Java members have done until now."""
        await self._jvm.collect()

    async def _join(self, name: str) -> None:
        _, topic, group = self.words
        settings = ConsumerSettings(consume_from="first", **SETTINGS[self.mode])
        consumer = Consumer(self._names, group, topic, settings=settings, instance=name)

        async def handle(message: ConsumedMessage) -> None:
            await self._handle(message, name)

        await consumer.start()
        self._python[name] = consumer, asyncio.create_task(consumer.run(handle))

    async def _handle(self, message: ConsumedMessage, name: str) -> None:
        self.ledger.deliver(message, name)
        await asyncio.sleep(self._dice.choice((0, 0.001, 0.003)))
        is_failing = self.mode != "broadcasting" and int(label_of(message)) % FAILING == 0
        if is_failing and not message.reconsume_times:
            self.ledger.fail(message, is_sent_back=self.mode != "ordered")
            await message.retry_later(0 if self.mode == "ordered" else 1)
        else:
            self.ledger.finish(message)

    def note(self, event: JavaEvent) -> None:
        """Note in the ledger what a Java member did."""
        ledger, at, where = self.ledger, event.at, event.where
        if event.what == "deliver":
            ledger.deliveries.append(Delivery(at, event.label, event.message_id, where, event.who))
            return
        if event.what == "fail":
            ledger.failed[event.message_id].append(at)
            ledger.failed_labels.add(event.label)
            if self.mode == "ordered":
                return
        else:
            ledger.finished_labels.add(event.label)
        ledger.finished[where] = min(at, ledger.finished.get(where, at))
