"""Producers of a run: single messages, batches, sharding keys and transactions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count

from mqlake.client import (
    ClientError,
    Message,
    NoRouteError,
    NotStoredError,
    Producer,
    ReceivedMessage,
    TransactionState,
)
from mqlake.errors import MqlakeError
from tests.client.ledger import Ledger, label_of

TOPIC = "orders"
KEYS = 3
_NEVER_STORED = (NotStoredError, NoRouteError)


class Senders:
    """Sends messages until it is stopped.

    Attributes:
        may_send: cleared while nothing may be sent.
        outcomes: how often a send ended how, by the name of its error.
    """

    def __init__(self, producer: Producer, ledger: Ledger, states: States, seed: int) -> None:
        self._producer, self._ledger, self._states = producer, ledger, states
        self._dice = random.Random(seed)
        self._numbers = count()
        self._is_stopped = False
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.outcomes: dict[str, int] = {}

    async def run(self) -> None:
        """Send with all kinds of producers side by side."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(self._single, 0.03))
            tasks.create_task(self._repeat(self._batch, 0.15))
            tasks.create_task(self._repeat(self._many, 0.2))
            tasks.create_task(self._repeat(self._transaction, 0.1))
            for key in range(KEYS):
                tasks.create_task(self._sharded(f"key{key}"))

    def stop(self) -> None:
        """Let what is under way end, and begin no other send."""
        self._is_stopped = True
        self.may_send.set()

    async def _repeat(self, send: Callable[[], Awaitable[None]], pause: float) -> None:
        while not self._is_stopped:
            await send()
            await asyncio.sleep(self._dice.uniform(0, 2 * pause))
            await self.may_send.wait()

    def _label(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def _count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    async def _single(self) -> None:
        label = self._label("single-")
        await self._note([label], self._producer.send(message(label, self._size())))

    async def _batch(self) -> None:
        labels = [self._label("batch-") for _ in range(self._dice.randrange(2, 9))]
        messages = [message(label, 40) for label in labels]
        await self._note(labels, self._producer.send_batch(messages))

    async def _many(self) -> None:
        labels = [self._label("many-") for _ in range(6)]
        keys = (None, "a", "b")
        messages = [message(label, 40, keys[number % 3]) for number, label in enumerate(labels)]
        try:
            await self._producer.send_many(messages)
        except ClientError as error:
            self._count(type(error).__name__)  # some may be stored
        else:
            self._count("acknowledged")
            for label in labels:
                self._ledger.acknowledge(label)

    async def _note(self, labels: list[str], sending: Awaitable[object]) -> None:
        try:
            await sending
        except ClientError as error:
            self._count(type(error).__name__)
            if isinstance(error, _NEVER_STORED):
                self._ledger.impossible.update(labels)
        else:
            self._count("acknowledged")
            for label in labels:
                self._ledger.acknowledge(label)

    async def _sharded(self, key: str) -> None:
        """Send numbered messages of one key, each until it is acknowledged."""
        for number in count():
            label = f"{key}-{number}"
            while not self._is_stopped:
                try:
                    await self._producer.send(message(label, self._size(), key))
                except ClientError as error:
                    self._count(type(error).__name__)
                    await asyncio.sleep(0.05)
                else:
                    self._count("acknowledged")
                    self._ledger.acknowledge(label)
                    break
            if self._is_stopped:
                return
            await asyncio.sleep(self._dice.uniform(0, 0.1))
            await self.may_send.wait()

    async def _transaction(self) -> None:
        label = self._label("transaction-")
        try:
            half = await self._producer.transaction(message(label, 40))
        except ClientError as error:
            self._count(type(error).__name__)
            self._states.decide(label, TransactionState.ROLLBACK)
            return
        is_kept = self._dice.random() < 0.7
        self._states.decide(
            label, TransactionState.COMMIT if is_kept else TransactionState.ROLLBACK
        )
        try:
            await (half.commit() if is_kept else half.rollback())
        except MqlakeError as error:
            self._count(f"end: {type(error).__name__}")
        if is_kept:
            self._ledger.acknowledge(label)

    def _size(self) -> int:
        return self._dice.choice((10, 100, 5000))


class States:
    """What became of transactions, as their database would know it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._states: dict[str, TransactionState] = {}
        self.checks = 0

    def decide(self, label: str, state: TransactionState) -> None:
        """Note how a transaction ends."""
        self._states[label] = state
        if state is TransactionState.ROLLBACK:
            self._ledger.impossible.add(label)

    async def check(self, half: ReceivedMessage) -> TransactionState:
        """Answer a broker that asks how a transaction ended."""
        self.checks += 1
        return self._states.get(label_of(half), TransactionState.UNKNOWN)


def message(label: str, size: int, key: str | None = None) -> Message:
    """Return a message whose body begins with its label."""
    return Message(topic=TOPIC, body=f"{label} ".encode() + b"x" * size, sharding_key=key)
