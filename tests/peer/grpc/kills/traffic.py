"""The producers and the consumers of one language, which continue while servers are killed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.peer.grpc.driver import Client, RefusedError
from tests.peer.grpc.kills.deliveries import ReceivedBodies

PLAIN, FIFO = "plain", "fifo"
"""The topics."""
MESSAGE_GROUPS = tuple("abcdef")
RENEWED = ("python", "rust")
"""Languages whose clients do not send their settings again to a server that was started again, or
only minutes later, and receive nothing until then: programs create new ones.
"""
_PAUSES = {PLAIN: 0.1, FIFO: 0.5}
"""Seconds between two sends of one sender. Most queues of the FIFO topic are idle at a kill: see
`servers.INVISIBLE`.
"""
_AGAIN = 0.05
"""Seconds before something is tried again."""
_LOOK = 0.1
_HIDDEN = 4
"""Seconds for which messages of simple consumers are invisible."""
_MOST = 16
_LATE = 60.0
"""Seconds after which a client does not answer any more."""
_KEPT = 3
"""Clients of one name whose messages are still asked for: one that is closed may receive a last
message.
"""
_INVALID_HANDLE = 40013
"""The code of a message that is visible again."""
_UNLISTENED = ("rust",)
"""Languages whose clients have no push consumers."""


@dataclass(frozen=True)
class Reader:
    """A group of consumers, with one member.

    Attributes:
        topic: PLAIN or FIFO; the group of the latter consumes in order.
        listens: whether its consumer is a push consumer.
    """

    name: str
    topic: str
    listens: bool


def readers_of(language: str) -> list[Reader]:
    """Return the groups of the consumers of a language."""
    listens = language not in _UNLISTENED
    found = [Reader("simple", PLAIN, listens=False), Reader("in order", FIFO, listens)]
    return [*found, Reader("push", PLAIN, listens=True)] if listens else found


def topic_of(language: str, topic: str) -> str:
    """Return the name of a language's topic."""
    return f"{language}_kills_{topic}"


def group_of(language: str, reader: Reader) -> str:
    """Return the name of a group."""
    return f"G_{language}_kills_{reader.name.replace(' ', '_')}"


class Traffic:
    """What the clients of one language send and receive.

    Attributes:
        acknowledged: the bodies of the messages of each topic for which a send succeeded.
        refused: sends that failed.
        received: what each group has received.
    """

    def __init__(self, client: Client) -> None:
        self._client, self.language = client, client.language
        self.acknowledged: Mapping[str, list[str]] = {PLAIN: [], FIFO: []}
        self.refused = 0
        self.readers = readers_of(self.language)
        self.received = {reader: ReceivedBodies() for reader in self.readers}
        self._generations = count()
        self._generation = next(self._generations)
        self._seen: dict[tuple[Reader, int], int] = {}
        self._marks = {PLAIN: 0, FIFO: 0}
        self._is_sending = True
        self._tasks: list[asyncio.Task[Any]] = []
        self._senders: list[asyncio.Task[None]] = []

    @property
    def deliveries(self) -> int:
        """Return how many there were."""
        return sum(each.count for each in self.received.values())

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def start(self) -> None:
        """Create all clients, and begin to send and to receive."""
        await self._create(self._generation)
        senders = [self._send(PLAIN, PLAIN), *(self._send(FIFO, name) for name in MESSAGE_GROUPS)]
        self._senders = [self._begin(sender) for sender in senders]
        for reader in self.readers:
            self._begin(self._look(reader) if reader.listens else self._receive(reader))

    async def stop_sending(self) -> None:
        """Return once nothing more is sent."""
        self._is_sending = False
        await asyncio.gather(*self._senders)

    async def close(self) -> None:
        """End all tasks; raise what one of them raised."""
        failures = [each.exception() for each in self._tasks if each.done()]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for failure in filter(None, failures):
            raise failure

    # Clients

    async def _do(self, operation: str, **arguments: object) -> Any:
        """Have the program do something.

        Raises:
            RefusedError: it failed, or never ended.
        """
        try:
            async with asyncio.timeout(_LATE):
                return await self._client.do(operation, **arguments)
        except TimeoutError:
            raise RefusedError("TimeoutError", None, f"no answer to {operation}") from None

    async def _create(self, generation: int) -> None:
        topics = [topic_of(self.language, name) for name in self.acknowledged]
        await self._create_one("producer", f"producer {generation}", topics=topics)
        for reader in self.readers:
            topic, group = topic_of(self.language, reader.topic), group_of(self.language, reader)
            kind, name = "push" if reader.listens else "simple", f"{reader.name} {generation}"
            subscriptions = {topic: ("tag", "*")}
            await self._create_one(kind, name, group=group, subscriptions=subscriptions)
            if reader.listens:
                self._seen[reader, generation] = 0

    async def _create_one(self, kind: str, name: str, **arguments: object) -> None:
        while True:
            try:
                return await self._do(kind, name=name, **arguments)
            except RefusedError:
                await asyncio.sleep(_AGAIN)

    async def restarted(self) -> None:
        """Note that servers were started again, after which everything must continue."""
        if self.language in RENEWED:
            new, old = next(self._generations), self._generation
            await self._create(new)
            self._generation = new
            self._begin(self._end(old))
        self._marks = {topic: len(bodies) for topic, bodies in self.acknowledged.items()}

    async def _end(self, generation: int) -> None:
        """Close clients; what their consumers have received, they still acknowledge."""
        for name in ("producer", *(reader.name for reader in self.readers)):
            with suppress(RefusedError):
                await self._do("close", client=f"{name} {generation}")

    # Messages

    async def _send(self, topic: str, name: str) -> None:
        more = {"group": name} if topic == FIFO else {}
        for number in count():
            message = {"topic": topic_of(self.language, topic), "body": f"{name} {number}", **more}
            while self._is_sending:
                producer = f"producer {self._generation}"
                try:
                    await self._do("send", client=producer, message=message)
                except RefusedError:
                    self.refused += 1  # The same one again: its successors must not come before.
                    await asyncio.sleep(_AGAIN)
                else:
                    self.acknowledged[topic].append(f"{name} {number}")
                    break
            else:
                return
            await asyncio.sleep(_PAUSES[topic])

    async def _look(self, reader: Reader) -> None:
        """Ask the newest push consumers what they have received."""
        received = self.received[reader]
        while True:
            for key in [each for each in self._seen if each[0] is reader][-_KEPT:]:
                name, begin = f"{reader.name} {key[1]}", self._seen[key]
                found = await self._do("seen", client=name, begin=begin)
                self._seen[key] += len(found)
                for message in found:
                    received.add(message["at"], message["body"])
            await asyncio.sleep(_LOOK)

    async def _receive(self, reader: Reader) -> None:
        """Receive and acknowledge messages, as a program with a simple consumer does."""
        received = self.received[reader]
        while True:
            name = f"{reader.name} {self._generation}"
            try:
                found = await self._do("receive", client=name, most=_MOST, hidden=_HIDDEN)
            except RefusedError:
                await asyncio.sleep(_AGAIN)
                continue
            end = asyncio.get_running_loop().time() + _HIDDEN
            for message in found:
                received.add(message["at"], message["body"])
                await self._acknowledge(reader, message["receipt"], end)

    async def _acknowledge(self, reader: Reader, receipt: int, end: float) -> None:
        """Acknowledge a message, unless it is visible again before that is possible."""
        while asyncio.get_running_loop().time() < end:
            client = f"{reader.name} {self._generation}"
            try:
                await self._do("ack", client=client, receipt=receipt)
            except RefusedError as refused:
                if refused.code == _INVALID_HANDLE:
                    return
                await asyncio.sleep(_AGAIN)
            else:
                return

    # What must be true

    def standing(self) -> Iterator[str]:
        """Yield what has not continued since the last restart."""
        for reader in self.readers:
            new = self.acknowledged[reader.topic][self._marks[reader.topic] :]
            if not new:
                yield f"{self.language}: no send to {reader.topic}"
            elif not self.received[reader].has_any(new):
                yield f"{self.language}: no message for {reader.name}"

    def lost(self) -> Iterator[str]:
        """Yield the acknowledged messages that a group has not received."""
        for reader, received in self.received.items():
            for body in sorted(received.lost(self.acknowledged[reader.topic])):
                yield f"{self.language}: {body} was not delivered to {reader.name}"

    def violations(self) -> list[str]:
        """Return what is lost or not in order."""
        orders = [
            f"{self.language}: {text}"
            for reader, received in self.received.items()
            if reader.topic == FIFO
            for text in received.out_of_order()
        ]
        return [*self.lost(), *orders]
