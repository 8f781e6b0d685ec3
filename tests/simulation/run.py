"""One run: clients and servers at work while the faults of a seed happen."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mqlake.client import MessageQueue, Producer
from tests.client.faults.senders import TOPIC, States
from tests.client.ledger import Ledger, Stored, read_all
from tests.client.servers import create_topic
from tests.simulation.inputs import replaced
from tests.simulation.loop import SimulatedLoop, SimulationError, owner
from tests.simulation.members import GROUP, Members
from tests.simulation.network import Network
from tests.simulation.plan import Plan, Reading, draw
from tests.simulation.process import Process
from tests.simulation.senders import Senders
from tests.simulation.servers import (
    NAMES,
    SimulatedBroker,
    SimulatedNameServer,
    known_everywhere,
)
from tests.simulation.world import World

QUEUES = 2
RETRY = f"%RETRY%{GROUP}"
DRAIN = 120.0
"""Seconds until everything must be consumed and committed once the faults are over."""
LINGER = 5.0
"""Seconds after a close in which nothing of a client may be left."""
_LOOK = 0.1
_ANSWER = 20.0
"""Seconds in which a broker creates a topic."""


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        trace: a checksum of everything that happened, in its order.
        drained: simulated seconds from the last fault until everything was consumed.
        seconds: simulated seconds of the whole run.
        cpu: seconds of a processor that the run took.
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    sends: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    deliveries: int = 0
    observations: int = 0
    events: int = 0
    trace: int = 0
    drained: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0


def command(seed: int) -> str:
    """Return the command that runs a seed again."""
    return f"python -m tests.simulation --seed {seed}"


def run(seed: int, *, logs: bool = False) -> Outcome:
    """Run one seed; `logs` lets the product log."""
    begun = time.thread_time()
    plan, outcome = draw(seed), Outcome(seed)
    loop = SimulatedLoop(random.Random(f"{seed}/loop"))
    loop.network = network = Network(loop, random.Random(f"{seed}/network"))
    with quiet(logs=logs), replaced(loop, str(seed), intervals=plan.intervals):
        try:
            loop.run_until_complete(_Run(plan, outcome, network).run())
        except SimulationError as error:
            outcome.violations.append(str(error))
        except Exception as error:
            if logs:
                raise
            outcome.violations.append(f"{type(error).__name__}: {error}")
        outcome.events, outcome.trace, outcome.seconds = loop.events, loop.trace, loop.time()
        end_run(loop, network)
    outcome.cpu = time.thread_time() - begun
    return outcome


def end_run(loop: SimulatedLoop, network: Network) -> None:
    """Destroy everything; what code does then has no effect."""
    loop.set_exception_handler(lambda *_: None)
    loop.close()
    for connection in network.connections:
        connection.client.destroy()
        connection.server.destroy()
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine = task.get_coro()
        assert isinstance(coroutine, Coroutine)
        with suppress(BaseException):  # its code meets a closed loop
            coroutine.close()
    for process in network.ended:
        process.remains.clear()


@contextmanager
def quiet(*, logs: bool) -> Iterator[None]:
    """Collect no garbage meanwhile, and be silent about coroutines that are destroyed."""
    hook, was_collecting = sys.unraisablehook, gc.isenabled()
    sys.unraisablehook = lambda _: None
    gc.disable()
    if not logs:
        logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
        sys.unraisablehook = hook
        if was_collecting:
            gc.enable()


class _Run:
    def __init__(self, plan: Plan, outcome: Outcome, network: Network) -> None:
        self._plan, self._outcome, self._network = plan, outcome, network
        self._loop = network.loop
        self._ledger = Ledger(self._loop.time)
        self._states = States(self._ledger)

    async def run(self) -> None:
        """Run the plan, and note the outcome."""
        outcome = self._outcome
        self._loop.set_exception_handler(self._failed)
        await self._start()
        producer = Process("producer", "10.0.3.1")
        await producer.run(self._work())
        await asyncio.sleep(LINGER)
        for process in (producer, *self._members.gone):
            outcome.violations += self._left_by(process)
        stored = await self._read_all()
        await self._stop()
        self._check(stored)
        self._sum_up()

    def _failed(self, _: object, context: dict[str, Any]) -> None:
        """Note what nobody has handled, unless a dead process has left it behind."""
        process = owner(context.get("future") or context.get("task"))
        if process is None or process.is_alive:
            self._outcome.violations.append(str(context))

    async def _start(self) -> None:
        plan, network = self._plan, self._network
        settings = {"flushDiskType": "SYNC_FLUSH" if plan.is_sync else "ASYNC_FLUSH"}
        self._names = SimulatedNameServer(network)
        await self._names.start()
        self._brokers = [
            SimulatedBroker(network, random.Random(f"{plan.seed}/disk {number}"), number, settings)
            for number in range(1, plan.brokers + 1)
        ]
        for broker in self._brokers:
            await broker.start()
            operator = Process("operator", "10.0.4.1")
            await operator.run(create_topic(broker.address, TOPIC, QUEUES, _ANSWER))
        self._members = Members(network, plan, self._ledger)
        dice = random.Random(f"{plan.seed}/world")
        self._world = World(network, self._names, self._brokers, self._members, dice)

    async def _work(self) -> None:
        """Send, let the faults happen, and see that everything is consumed."""
        plan, members = self._plan, self._members
        producer = Producer(
            NAMES, group="senders", timeout=1.5, check=self._states.check, instance="producer"
        )
        senders = Senders(
            producer, self._ledger, self._states, random.Random(f"{plan.seed}/senders")
        )
        async with producer:
            sending = asyncio.create_task(senders.run(plan.sends, plan.pause))
            await self._outside(self._consume(sending))
        self._outcome.sends = senders.outcomes
        self._outcome.violations += members.violations

    async def _outside(self, work: Any) -> None:
        """Do something that belongs to no process."""
        await self._loop.own_context.run(self._loop.create_task, work)

    async def _consume(self, sending: asyncio.Task[None]) -> None:
        plan, members = self._plan, self._members
        watching = asyncio.create_task(self._watch())
        for _ in range(plan.members):
            await members.join()
        await self._world.run(plan.faults)
        await sending
        members.is_failing = False
        if not members.running:
            await members.join()
        await self._drain()
        await members.close()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    # Committed offsets

    def _queues(self) -> Iterator[tuple[SimulatedBroker, MessageQueue]]:
        for broker in self._brokers:
            for number in range(QUEUES):
                yield broker, MessageQueue(TOPIC, broker.name, number)
            yield broker, MessageQueue(RETRY, broker.name, 0)

    async def _watch(self) -> None:
        if self._plan.reading is Reading.POP:
            return
        while True:
            for broker, queue in self._queues():
                if (offset := broker.committed(GROUP, queue)) is not None:
                    self._ledger.observe(queue, offset)
            await asyncio.sleep(_LOOK)

    def _lag(self) -> list[str]:
        if self._plan.reading is Reading.POP:
            return []
        found: list[str] = []
        for broker, queue in self._queues():
            end = broker.end(queue.topic, queue.queue_id)
            offset = broker.committed(GROUP, queue) or 0
            if offset != end:
                found.append(f"{queue.broker_name}/{queue.topic}/{queue.queue_id}: {offset}/{end}")
        return found

    async def _drain(self) -> None:
        begun = self._loop.time()
        ledger = self._ledger
        while (late := self._lag()) or ledger.unconsumed or ledger.unretried:
            if self._loop.time() - begun > DRAIN:
                self._outcome.violations.append(f"not consumed within {DRAIN:g} s: {late}")
                return
            await asyncio.sleep(_LOOK)
        self._outcome.drained = self._loop.time() - begun

    # The end

    def _left_by(self, process: Process) -> list[str]:
        """Return what is left of a process that has closed everything, one line each."""
        found = [f"{process.name} has left a task: {each}" for each in self._loop.tasks(process)]
        found += [f"{process.name} has left {each}" for each in self._loop.pending(process)]
        for connection in self._network.connections:
            for end in (connection.client, connection.server):
                if end.process is process and not end.is_lost:
                    found.append(f"{process.name} has left a connection")
        return found

    async def _read_all(self) -> Stored:
        topics = [TOPIC] if self._plan.reading is Reading.POP else [TOPIC, RETRY]
        topics = [topic for topic in topics if any(each.has(topic) for each in self._brokers)]
        reader, found = Process("reader", "10.0.4.2"), {}

        async def read() -> None:
            for topic in topics:
                brokers = [broker.name for broker in self._brokers if broker.has(topic)]
                await known_everywhere(topic, brokers)
            found.update(await read_all(NAMES, topics))

        await reader.run(read())
        return found

    async def _stop(self) -> None:
        for broker in self._brokers:
            await broker.stop()
        await self._names.stop()

    def _check(self, stored: Stored) -> None:
        violations = self._outcome.violations
        # Nobody knows how far a group is that pops: runs do not wait for what may be stored.
        is_popped = self._plan.reading is Reading.POP
        violations += self._ledger.violations(stored, is_all_consumed=not is_popped)
        if self._plan.reading is Reading.IN_ORDER:
            violations += self._ledger.out_of_order()

    def _sum_up(self) -> None:
        outcome, ledger = self._outcome, self._ledger
        outcome.faults = self._world.faults
        outcome.deliveries = len(ledger.deliveries)
        outcome.acknowledged = len(ledger.acknowledged)
        outcome.observations = len(ledger.observations)
