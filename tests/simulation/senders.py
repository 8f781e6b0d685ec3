"""The producer of a run: single messages, batches, sharding keys and transactions."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Sequence
from itertools import count

from mqlake.client import (
    ClientError,
    NoRouteError,
    NotStoredError,
    Producer,
    TransactionState,
)
from mqlake.errors import MqlakeError
from tests.client.faults.senders import States, message
from tests.client.ledger import Ledger

_NEVER_STORED = (NotStoredError, NoRouteError)
_TRIES = 5


class Senders:
    """Sends what a plan says, two things at a time.

    Attributes:
        outcomes: how often a send ended how, by the name of its error.
    """

    def __init__(self, producer: Producer, ledger: Ledger, states: States, dice: random.Random):
        self._producer, self._ledger, self._states, self._dice = producer, ledger, states, dice
        self._numbers = count()
        self._key = asyncio.Lock()
        self.outcomes: Counter[str] = Counter()
        self._send = {
            "single": self._single,
            "batch": self._batch,
            "many": self._many,
            "sharded": self._sharded,
            "transaction": self._transaction,
        }

    async def run(self, sends: Sequence[str], pause: float) -> None:
        """Send everything."""
        await asyncio.gather(self._each(sends[::2], pause), self._each(sends[1::2], pause))

    async def _each(self, sends: Sequence[str], pause: float) -> None:
        for kind in sends:
            await asyncio.sleep(self._dice.random() * pause)
            await self._send[kind]()

    def _label(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    async def _note(self, labels: list[str], sending: Awaitable[object]) -> bool:
        try:
            await sending
        except ClientError as error:
            self.outcomes[type(error).__name__] += 1
            if isinstance(error, _NEVER_STORED):
                self._ledger.impossible.update(labels)
            return False
        self.outcomes["acknowledged"] += 1
        for label in labels:
            self._ledger.acknowledge(label)
        return True

    async def _single(self) -> None:
        label = self._label("single-")
        size = self._dice.choice((10, 10, 700, 5000))
        await self._note([label], self._producer.send(message(label, size)))

    async def _batch(self) -> None:
        labels = [self._label("batch-") for _ in range(self._dice.randrange(2, 5))]
        messages = [message(label, 20) for label in labels]
        await self._note(labels, self._producer.send_batch(messages))

    async def _many(self) -> None:
        labels = [self._label("many-") for _ in range(4)]
        keys = (None, "a")
        messages = [message(label, 20, keys[number % 2]) for number, label in enumerate(labels)]
        try:
            await self._producer.send_many(messages)
        except ClientError as error:
            self.outcomes[type(error).__name__] += 1  # some may be stored
            return
        self.outcomes["acknowledged"] += 1
        for label in labels:
            self._ledger.acknowledge(label)

    async def _sharded(self) -> None:
        """Send two messages of one key, each until it is acknowledged."""
        async with self._key:
            for _ in range(2):
                label = self._label("key-")
                for _ in range(_TRIES):
                    if await self._sharded_once(label):
                        break
                    await asyncio.sleep(0.2)

    async def _sharded_once(self, label: str) -> bool:
        try:
            await self._producer.send(message(label, 10, "key"))
        except ClientError as error:
            self.outcomes[type(error).__name__] += 1
            return False
        self.outcomes["acknowledged"] += 1
        self._ledger.acknowledge(label)
        return True

    async def _transaction(self) -> None:
        label = self._label("transaction-")
        try:
            half = await self._producer.transaction(message(label, 20))
        except ClientError as error:
            self.outcomes[type(error).__name__] += 1
            self._states.decide(label, TransactionState.ROLLBACK)
            return
        is_kept = self._dice.random() < 0.7
        end = TransactionState.COMMIT if is_kept else TransactionState.ROLLBACK
        self._states.decide(label, end)
        if self._dice.random() < 0.2:
            if is_kept:
                self._ledger.acknowledge(label)
            return  # the broker has to ask
        try:
            await (half.commit() if is_kept else half.rollback())
        except MqlakeError as error:
            self.outcomes[f"end: {type(error).__name__}"] += 1
        if is_kept:
            self._ledger.acknowledge(label)
