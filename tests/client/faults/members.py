"""Consumers of a run, which come and go."""

from __future__ import annotations

import asyncio
import random
import time
from itertools import count

from mqlake.client import ConsumedMessage, Consumer, ConsumerSettings
from tests.client.faults.plan import Plan
from tests.client.faults.senders import TOPIC
from tests.client.ledger import Ledger

GROUP_NAME = "group"
LONGEST_CLOSE = 30.0
"""Seconds that a consumer may take to close while faults last."""


class Members:
    """The consumers of one group.

    Attributes:
        is_failing: whether handlers fail now and then.
        violations: what went wrong with them.
    """

    def __init__(self, names: str, plan: Plan, ledger: Ledger) -> None:
        self._names, self._plan, self._ledger = names, plan, ledger
        self._dice = random.Random(plan.seed + 1)
        self._settings = ConsumerSettings(
            consume_from="first",
            in_order=plan.in_order,
            handover=0.2,
            suspend=0.2,
            commit_interval=0.3,
            rebalance_interval=1.0,
            close_timeout=2.0,
        )
        self._numbers = count()
        self._running: list[tuple[Consumer, asyncio.Task[None]]] = []
        self.is_failing = True
        self.violations: list[str] = []

    @property
    def count(self) -> int:
        """Return how many consumers there are."""
        return len(self._running)

    async def join(self) -> None:
        """Start one more consumer."""
        who = f"consumer {next(self._numbers)}"
        consumer = Consumer(self._names, GROUP_NAME, TOPIC, settings=self._settings)
        await consumer.start()

        async def handle(message: ConsumedMessage) -> None:
            await self._handle(message, who)

        task = asyncio.create_task(consumer.run(handle, concurrency=self._plan.concurrency))
        self._running.append((consumer, task))

    async def leave(self) -> None:
        """Close the consumer that is there longest, if others remain."""
        if len(self._running) > 1:
            await self._close(*self._running.pop(0))

    async def close(self) -> None:
        """Close all consumers, one after the other."""
        while self._running:
            await self._close(*self._running.pop(0))

    async def _close(self, consumer: Consumer, task: asyncio.Task[None]) -> None:
        begun = time.monotonic()
        await consumer.close()
        await task
        if (seconds := time.monotonic() - begun) > LONGEST_CLOSE:
            self.violations.append(f"a consumer took {seconds:.1f} s to close")

    async def _handle(self, message: ConsumedMessage, who: str) -> None:
        self._ledger.deliver(message, who)
        await asyncio.sleep(self._dice.choice((0, 0, 0.001, 0.02)))
        chance = self._dice.random() if self.is_failing else 1.0
        if chance < 0.03:
            self._ledger.fail(message, is_sent_back=not self._plan.in_order)
            raise RuntimeError("the handler fails")
        if chance < 0.05 and not self._plan.in_order:
            if await message.retry_later(1):
                self._ledger.fail(message, is_sent_back=True)
            return
        self._ledger.finish(message)
