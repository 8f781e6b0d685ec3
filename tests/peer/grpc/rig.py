"""What a scenario has: a client, a topic and a group of its own, and the ways to wait."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlake.admin import topics
from mqlake.admin.admin import Admin
from mqlake.errors import MqlakeError
from tests.peer.grpc.driver import Client, RefusedError

Observation = Any
"""What can be compared: values that JSON has, and no times."""

Message = dict[str, Any]
PATIENCE = 90
"""Seconds for which a scenario waits for something that does not come."""

LONG = 120
"""Seconds for which a received message is hidden, where it is not to come again: a slow machine
must not make it come again before it is acknowledged."""

_INTERVAL = 0.05
_SHOWN = ("body", "tag", "keys", "properties", "group", "lite", "attempt")


class TooLateError(Exception):
    """What was waited for did not come; the message says what had come."""


@dataclass(frozen=True)
class Scenario:
    """One thing that clients do, and the topic and group it is done with.

    Attributes:
        kind: what messages the topic takes.
        is_orderly: whether the group consumes in order.
        retries: of the group.
        languages: whose clients can do it.
        groups: names of more groups.
        attributes: changes of the group's attributes.
        restarts: whether the server is killed and started again, once for all such scenarios.
        is_long: whether only the long run has it.
    """

    name: str
    run: Callable[[Rig], Awaitable[Observation]]
    kind: str = "NORMAL"
    is_orderly: bool = False
    retries: int = 16
    languages: Collection[str] = ("python", "node", "java")
    is_long: bool = False
    restarts: bool = False
    queues: int = 2
    groups: Collection[str] = ()
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_lite(self) -> bool:
        """Whether it is about lite topics."""
        return self.kind == "LITE"

    def topic_of(self, language: str) -> str:
        """Return the name of its topic for one language's client."""
        return f"{language}_{self.name.replace(' ', '_')}"

    def group_of(self, language: str, name: str = "") -> str:
        """Return the name of its group, or of one of its other groups."""
        more = f"_{name.replace(' ', '_')}" if name else ""
        return f"G_{self.topic_of(language)}{more}"

    def attributes_for(self, language: str) -> dict[str, str]:
        """Return the changes of attributes of its groups."""
        bound = {"+lite.bind.topic": self.topic_of(language)} if self.is_lite else {}
        return {**bound, **self.attributes}


class Rig:
    """A scenario that runs with the client of one language."""

    def __init__(
        self,
        client: Client,
        scenario: Scenario,
        admin: Admin,
        restarted: Callable[[], Awaitable[object]],
    ) -> None:
        """Prepare it; `restarted` waits until the server runs again."""
        self.client, self._scenario, self._admin = client, scenario, admin
        self.restarted = restarted
        self.topic = scenario.topic_of(client.language)
        self.group = scenario.group_of(client.language)
        self._opened: list[str] = []

    async def run(self) -> Observation:
        """Run the scenario."""
        return await self._scenario.run(self)

    def group_named(self, name: str) -> str:
        """Return the name of another group of the scenario."""
        return self._scenario.group_of(self.client.language, name)

    def named(self, name: str) -> str:
        """Return what a client of the scenario is called in its process."""
        return f"{self.topic} {name}"

    async def do(self, operation: str, client: str = "p", **arguments: object) -> Any:
        """Have one of the scenario's clients do something."""
        return await self.client.do(operation, client=self.named(client), **arguments)

    async def refusal(self, doing: Awaitable[object]) -> str:
        """Return how something is refused, or that it is accepted."""
        try:
            await doing
        except RefusedError as refused:
            return refused.shown
        return "accepted"

    async def open(self, kind: str, name: str, **arguments: object) -> None:
        """Start a client: "producer", "simple", "push" or "lite_push"."""
        await self.client.do(kind, name=self.named(name), **arguments)
        self._opened.append(name)

    async def producer(self, name: str = "p", **more: object) -> None:
        """Start a producer."""
        await self.open("producer", name, topics=[self.topic], **more)

    async def simple(
        self, name: str = "c", text: str = "*", kind: str = "tag", **more: Any
    ) -> None:
        """Start a simple consumer of the topic."""
        await self._consumer("simple", name, text, kind, **more)

    async def push(self, name: str = "c", text: str = "*", kind: str = "tag", **more: Any) -> None:
        """Start a push consumer of the topic."""
        await self._consumer("push", name, text, kind, **more)

    async def lite(self, name: str = "c") -> None:
        """Start a push consumer of lite topics."""
        await self.open("lite_push", name, group=self.group, topic=self.topic)

    async def _consumer(
        self, how: str, name: str, text: str, kind: str, group: str = "", **more: object
    ) -> None:
        subscriptions = {self.topic: (kind, text)}
        group = group or self.group
        await self.open(how, name, group=group, subscriptions=subscriptions, **more)

    async def send(self, body: str, client: str = "p", **more: object) -> dict[str, Any]:
        """Send a message; return its id and recall handle."""
        transaction = more.pop("transaction", None)
        named = {} if transaction is None else {"transaction": transaction}
        message = {"topic": self.topic, "body": body, **more}
        return await self.do("send", client, message=message, **named)

    async def send_all(self, bodies: Sequence[str], **more: object) -> dict[str, str]:
        """Send messages one after the other; return their ids."""
        return {body: (await self.send(body, **more))["id"] for body in bodies}

    async def seen(
        self, enough: Callable[[list[Message]], bool] | int, client: str = "c"
    ) -> list[Message]:
        """Wait until a push consumer has seen enough; return what it has seen, without copies.

        Raises:
            TooLateError: it never has.
        """
        end = time.monotonic() + PATIENCE
        while True:
            found = without_copies(await self.do("seen", client))
            is_enough = (
                len(deliveries(found)) >= enough if isinstance(enough, int) else enough(found)
            )
            if is_enough:
                return found
            if time.monotonic() > end:
                raise TooLateError(f"seen only {sorted(deliveries(found))}")
            await asyncio.sleep(_INTERVAL)

    async def received(
        self,
        count: int,
        client: str = "c",
        *,
        hidden: int = LONG,
        most: int = 32,
        acks: bool = False,
    ) -> list[Message]:
        """Receive until there are so many messages; one that comes again counts again.

        A copy of the same attempt is acknowledged, and left out.

        Raises:
            TooLateError: they never come.
        """
        messages: list[Message] = []
        end = time.monotonic() + PATIENCE
        while len(messages) < count:
            if time.monotonic() > end:
                raise TooLateError(f"received only {sorted(deliveries(messages))}")
            for message in await self.receive(client, hidden=hidden, most=most):
                is_copy = _attempt(message) in map(_attempt, messages)
                if not is_copy:
                    messages.append(message)
                if acks or is_copy:
                    await self.do("ack", client, receipt=message["receipt"])
        return messages

    async def receive(
        self, client: str = "c", *, hidden: int = LONG, most: int = 32
    ) -> list[Message]:
        """Receive once; Java's client and others raise if there is nothing."""
        try:
            return await self.do("receive", client, most=most, hidden=hidden)
        except RefusedError as refused:
            # Python's simple consumer starts without waiting until the server has its settings.
            if refused.code == NOTHING or "settings" in refused.text:
                return []
            raise

    async def messages_in(self, topic: str) -> int:
        """Return how many messages a topic has ever had; 0 if it does not exist."""
        try:
            return sum(each.max_offset for each in await topics.status(self._admin, topic))
        except MqlakeError:
            return 0

    async def until_messages_in(self, topic: str, count: int) -> int:
        """Wait until a topic has so many messages; return how many it has."""
        end = time.monotonic() + PATIENCE
        while True:
            found = await self.messages_in(topic)
            if found >= count or time.monotonic() > end:
                return found
            await asyncio.sleep(_INTERVAL)

    async def close(self) -> None:
        """Close the clients that are open; one that fails to close is left."""
        for name in self._opened:
            try:
                async with asyncio.timeout(30):
                    await self.do("close", name)
            except (RefusedError, TimeoutError):
                continue


NOTHING = 40401


def without_copies(messages: Sequence[Message]) -> list[Message]:
    """Return messages without further copies of the same attempt: delivery is at least once."""
    first: dict[tuple[str, int], Message] = {}
    for each in messages:
        first.setdefault(_attempt(each), each)
    return list(first.values())


def _attempt(message: Message) -> tuple[str, int]:
    return message["id"], message["attempt"]


def deliveries(messages: Sequence[Message]) -> Counter[str]:
    """Return how often each attempt of each message came."""
    return Counter(f"{each['body']} #{each['attempt']}" for each in messages)


def shown(messages: Sequence[Message]) -> list[Mapping[str, object]]:
    """Return what is compared of messages, in the order of their bodies."""
    found = [
        {name: each[name] for name in _SHOWN if each[name] not in (None, "", [], {})}
        for each in messages
    ]
    return sorted(found, key=lambda each: (str(each["body"]), str(each.get("attempt"))))
