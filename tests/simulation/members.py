"""Consumers of a run, each a process on a machine of its own, which come and go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from mqlake.client import ConsumedMessage, Consumer, ConsumerSettings, SimpleConsumer
from mqlake.client.consumer.simple_consumer import PoppedMessage
from mqlake.errors import MqlakeError
from tests.client.faults.senders import TOPIC
from tests.client.ledger import Ledger
from tests.simulation.network import Network
from tests.simulation.plan import Plan, Reading
from tests.simulation.process import Process
from tests.simulation.servers import NAMES

GROUP = "group"
LONGEST_CLOSE = 30.0
_INVISIBLE = 2.0


class Closable(Protocol):
    """A consumer of either kind."""

    async def __aenter__(self) -> object: ...

    async def close(self) -> None: ...


@dataclass
class Member:
    """One consumer: its process and what runs in it."""

    process: Process
    consumer: Closable
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)


class Members:
    """The consumers of one group.

    Attributes:
        running: those that are there.
        gone: the processes of those that have closed.
        is_failing: whether handlers fail now and then.
        violations: what went wrong with them.
    """

    def __init__(self, network: Network, plan: Plan, ledger: Ledger) -> None:
        self._network, self._plan, self._ledger = network, plan, ledger
        self._dice = random.Random(f"{plan.seed}/members")
        self._numbers = count(1)
        self.running: list[Member] = []
        self.gone: list[Process] = []
        self.is_failing = True
        self.violations: list[str] = []
        self._settings = ConsumerSettings(
            consume_from="first",
            in_order=plan.reading is Reading.IN_ORDER,
            handover=0.1,
            suspend=0.2,
            commit_interval=self._dice.choice((0.2, 1.0)),
            rebalance_interval=self._dice.choice((0.5, 2.0)),
            close_timeout=2.0,
        )

    async def join(self) -> None:
        """Start one more consumer."""
        number = next(self._numbers)
        process = Process(f"consumer {number}", f"10.0.2.{number}")
        is_pop = self._plan.reading is Reading.POP
        member = process.call(lambda: self._pop(process) if is_pop else self._push(process))
        self.running.append(member)
        await process.run(self._start(member))

    async def _start(self, member: Member) -> None:
        await member.consumer.__aenter__()
        consumer = member.consumer
        who = member.process.name
        if isinstance(consumer, Consumer):
            handle = self._handler(who)
            run: Awaitable[None] = consumer.run(handle, concurrency=self._plan.concurrency)
        else:
            assert isinstance(consumer, SimpleConsumer)
            run = self._receive(consumer, who)
        member.tasks.append(asyncio.ensure_future(run))

    def _push(self, process: Process) -> Member:
        consumer = Consumer(NAMES, GROUP, TOPIC, settings=self._settings, instance=process.name)
        return Member(process, consumer)

    def _pop(self, process: Process) -> Member:
        consumer = SimpleConsumer(
            NAMES, GROUP, TOPIC, invisible=_INVISIBLE, is_from_first=True, instance=process.name
        )
        return Member(process, consumer)

    async def leave(self) -> None:
        """Close the consumer that is there longest, if others remain."""
        if len(self.running) > 1:
            await self._close(self.running.pop(0))

    def die(self, *, is_power_lost: bool) -> None:
        """End the process of the newest consumer."""
        if self.running:
            self._end(self.running.pop(), is_power_lost=is_power_lost)

    async def close(self) -> None:
        """Close all consumers, one after the other."""
        while self.running:
            await self._close(self.running.pop(0))

    async def _close(self, member: Member) -> None:
        loop = self._network.loop
        begun = loop.time()
        await member.process.run(self._stop(member))
        if (seconds := loop.time() - begun) > LONGEST_CLOSE:
            self.violations.append(f"{member.process.name} took {seconds:.1f} s to close")
        self.gone.append(member.process)

    async def _stop(self, member: Member) -> None:
        await member.consumer.close()
        if isinstance(member.consumer, SimpleConsumer):
            for task in member.tasks:
                task.cancel()
        await asyncio.gather(*member.tasks, return_exceptions=True)

    def _end(self, member: Member, *, is_power_lost: bool) -> None:
        if is_power_lost:
            self._network.machine(member.process.machine).is_on = False
        self._network.end_process(member.process, is_power_lost=is_power_lost)

    # Handling

    def _handler(self, who: str) -> Callable[[ConsumedMessage], Awaitable[None]]:
        async def handle(message: ConsumedMessage) -> None:
            self._ledger.deliver(message, who)
            await asyncio.sleep(self._dice.choice((0, 0, 0.001, 0.05)))
            chance = self._dice.random() if self.is_failing else 1.0
            is_in_order = self._settings.in_order
            if chance < 0.05:
                self._ledger.fail(message, is_sent_back=not is_in_order)
                raise RuntimeError("the handler fails")
            if chance < 0.1 and not is_in_order:
                if await message.retry_later(1):
                    self._ledger.fail(message, is_sent_back=True)
                return
            self._ledger.finish(message)

        return handle

    async def _receive(self, consumer: SimpleConsumer, who: str) -> None:
        while True:
            try:
                messages = await consumer.receive(wait=2.0)
            except MqlakeError:
                await asyncio.sleep(0.2)
                continue
            for message in messages:
                await self._take(consumer, message, who)

    async def _take(self, consumer: SimpleConsumer, message: PoppedMessage, who: str) -> None:
        self._ledger.deliver(message, who)
        await asyncio.sleep(self._dice.choice((0, 0, 0.001, 0.05)))
        if self.is_failing and self._dice.random() < 0.1:
            self._ledger.fail(message, is_sent_back=False)
            return
        self._ledger.finish(message)
        try:
            await consumer.ack(message)
        except MqlakeError:
            self._ledger.fail(message, is_sent_back=False)
