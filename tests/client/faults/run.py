"""One run: clients at work while the faults of a seed happen, and what must be true at the end."""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from mqlake.client import Producer
from mqlake.client import instance as instance_module
from mqlake.programs.ports import free_port
from tests.client.faults.duplicates import UNEXPLAINED, explain
from tests.client.faults.leftovers import Leftovers, no_collection, resident
from tests.client.faults.members import GROUP_NAME, Members
from tests.client.faults.plan import Plan, draw
from tests.client.faults.senders import TOPIC, Senders, States
from tests.client.faults.world import World
from tests.client.ledger import Ledger, read_all
from tests.client.proxy import Proxy
from tests.client.servers import (
    RestartableNameServer,
    create_topic,
    lag,
    start_broker,
    watch_offsets,
)

QUEUES = 4
TOPICS = {TOPIC: QUEUES, f"%RETRY%{GROUP_NAME}": 1}
DRAIN = 60.0
"""Seconds until everything must be consumed and committed once the faults are over."""
CUT_OFF = 1.5
"""Seconds for which the processor time of cut-off consumers is measured."""
MOST_CPU = 0.05
LINGER = 20.0
"""Seconds after a close in which connections may still end."""
PROXY = "127.0.0.2"
SETTINGS: dict[str, object] = {
    "flushDiskType": "SYNC_FLUSH",
    "brokerIP1": PROXY,
    "bindAddress": "127.0.0.1",
    "messageDelayLevel": " ".join(["1s"] * 18),
    "transactionTimeOut": 500,
    "transactionCheckInterval": 500,
    "transactionCheckMax": 10_000,
}


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        cpu: share of a processor that each consumer used while all were cut off; the proxies and
            the producer are counted, too.
        drained: seconds from the last fault until everything was consumed and committed.
        resident: bytes of memory of this process after the run.
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    sends: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    deliveries: int = 0
    acknowledged: int = 0
    observations: int = 0
    cpu: float = 0.0
    drained: float = 0.0
    seconds: float = 0.0
    resident: int = 0


def command(seed: int) -> str:
    """Return the command that runs a seed again."""
    return f"python -m tests.client.faults --runs 1 --seed {seed}"


def run(seed: int) -> Outcome:
    """Run one seed."""
    begun, plan = time.monotonic(), draw(seed)
    outcome = Outcome(seed)
    with tempfile.TemporaryDirectory(prefix="mqlake-faults-") as directory, _often():
        asyncio.run(_Run(plan, outcome, Path(directory)).run())
    outcome.seconds, outcome.resident = time.monotonic() - begun, resident()
    return outcome


@contextmanager
def _often() -> Iterator[None]:
    """Have clients look for routes and send heartbeats often, and log nothing."""
    with (
        mock.patch.object(instance_module, "ROUTE_INTERVAL", 1.0),
        mock.patch.object(instance_module, "HEARTBEAT_INTERVAL", 1.0),
    ):
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


class _Run:
    def __init__(self, plan: Plan, outcome: Outcome, directory: Path) -> None:
        self._plan, self._outcome, self._directory = plan, outcome, directory
        self._ledger = Ledger()
        self._states = States(self._ledger)

    async def run(self) -> None:
        """Run the plan, and note the outcome."""
        loop, violations = asyncio.get_running_loop(), self._outcome.violations
        loop.set_exception_handler(lambda _, context: violations.append(str(context)))
        async with AsyncExitStack() as undo:
            await self._start_servers(undo)
            self._leftovers = Leftovers()
            await self._work()
            violations += await self._leftovers.after(LINGER)
            stored = await read_all(self._direct_names, list(TOPICS))
        violations += self._ledger.violations(stored)
        if self._plan.in_order:
            violations += self._ledger.out_of_order()
        self._sum_up()

    async def _start_servers(self, undo: AsyncExitStack) -> None:
        names_port, dice = free_port(), random.Random(self._plan.seed)
        self._direct_names = f"127.0.0.1:{names_port}"
        self._names = RestartableNameServer(names_port)
        await self._names.start()
        undo.push_async_callback(self._names.stop)
        self._broker = await asyncio.to_thread(
            start_broker, self._directory, "broker-a", self._direct_names, SETTINGS
        )
        undo.callback(self._broker.kill)
        port = self._broker.address.rpartition(":")[2]
        self._proxies = tuple(
            Proxy(f"{PROXY}:{number}", f"127.0.0.1:{number}", dice) for number in (port, names_port)
        )
        for proxy in self._proxies:
            await undo.enter_async_context(proxy)
        await create_topic(self._broker.address, TOPIC, QUEUES)
        self._clients_names = f"{PROXY}:{names_port}"
        self._members = Members(self._clients_names, self._plan, self._ledger)
        self._world = World(self._broker, self._names, *self._proxies, self._members)

    async def _work(self) -> None:
        seed, ledger, members = self._plan.seed, self._ledger, self._members
        async with AsyncExitStack() as undo:
            producer = Producer(
                self._clients_names, group="senders", timeout=1.5, check=self._states.check
            )
            await undo.enter_async_context(producer)
            undo.push_async_callback(members.close)
            for _ in range(self._plan.members):
                await self._world.do("a consumer joins", 0.0)
            senders = Senders(producer, ledger, self._states, seed)
            sending = asyncio.create_task(senders.run())
            undo.push_async_callback(cancel, sending)
            async with self._watching():
                await asyncio.sleep(0.5)
                await self._world.run(self._plan)
            await self._cut_off(senders)
            async with self._watching():
                await asyncio.sleep(0.5)
                senders.stop()
                await sending
                members.is_failing = False
                await self._drain()
        self._outcome.violations += members.violations
        self._outcome.sends.update(senders.outcomes)

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        brokers = {"broker-a": self._broker.address}
        task = asyncio.create_task(watch_offsets(brokers, GROUP_NAME, TOPICS, self._ledger))
        try:
            yield
        finally:
            await cancel(task)

    async def _cut_off(self, senders: Senders) -> None:
        """Measure the processor time of consumers that reach nobody."""
        senders.may_send.clear()
        await asyncio.sleep(0.5)
        faults = [
            asyncio.create_task(self._world.do(kind, CUT_OFF + 0.5))
            for kind in (self._plan.cut_off, f"{self._plan.cut_off} the name server")
        ]
        await asyncio.sleep(0.3)
        with no_collection():
            used, begun = time.thread_time(), time.monotonic()
            await asyncio.sleep(CUT_OFF)
            share = (time.thread_time() - used) / (time.monotonic() - begun) / self._members.count
        await asyncio.gather(*faults)
        senders.may_send.set()
        self._outcome.cpu = share
        if share > MOST_CPU:
            self._outcome.violations.append(f"a cut-off consumer used {share:.1%} of a processor")

    async def _drain(self) -> None:
        begun = time.monotonic()
        while True:
            late = await lag(self._broker.address, GROUP_NAME, TOPICS)
            self._outcome.drained = time.monotonic() - begun
            if not late and not self._ledger.unconsumed:
                return
            if self._outcome.drained > DRAIN:
                self._outcome.violations.append(f"not consumed within {DRAIN:g} s: {late}")
                return
            await asyncio.sleep(0.1)

    def _sum_up(self) -> None:
        outcome, ledger = self._outcome, self._ledger
        outcome.events = Counter(event.kind for event in self._world.events)
        outcome.duplicates = explain(ledger, self._world.events)
        outcome.deliveries = len(ledger.deliveries)
        outcome.acknowledged = len(ledger.acknowledged)
        outcome.observations = len(ledger.observations)
        if unexplained := outcome.duplicates[UNEXPLAINED]:
            outcome.violations.append(f"{unexplained} deliveries were repeated for no reason")


async def cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
