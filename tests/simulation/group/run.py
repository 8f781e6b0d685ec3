"""One run of a group: puts and faults, and after each fault everything must be alike again."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from mqlake.broker.controller import membership
from mqlake.errors import MqlakeError
from mqlake.replication import slave_log
from mqlake.replication.master_log import MasterLog
from tests.simulation.group import node as nodes
from tests.simulation.group.controller import SimulatedController, client_of, controllers_of
from tests.simulation.group.faults import Faults
from tests.simulation.group.ledger import Ledger
from tests.simulation.group.node import Node
from tests.simulation.group.plan import Plan, draw
from tests.simulation.group.roles import ByHand, Led, Roles
from tests.simulation.inputs import replaced
from tests.simulation.loop import SimulatedLoop, SimulationError, owner
from tests.simulation.network import Network
from tests.simulation.run import end_run, quiet

SETTLED = 90.0
"""Seconds until all brokers must have the same log once a fault is over."""
_LOOK = 0.1
_MESSAGES = 4
"""Messages that are put in one call, at most."""


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        rounds: faults after which everything was checked.
        cuts: how often a log was cut.
        emptied: slaves that were given an empty store, as their log was another one.
        trace: a checksum of everything that happened, in its order.
        settled: the longest simulated time from the end of a fault until all logs were the same.
        seconds: simulated seconds of the whole run.
        cpu: seconds of a processor that the run took.
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    sent: int = 0
    acknowledged: int = 0
    elections: int = 0
    emptied: int = 0
    trace: int = 0
    events: int = 0
    settled: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0


def command(seed: int) -> str:
    """Return the command that runs a seed again."""
    return f"python -m tests.simulation.group --seed {seed}"


def run(seed: int, *, logs: bool = False) -> Outcome:
    """Run one seed; `logs` lets the product log."""
    begun, plan, outcome = time.thread_time(), draw(seed), Outcome(seed)
    loop = SimulatedLoop(random.Random(f"{seed}/loop"))
    loop.network = network = Network(loop, random.Random(f"{seed}/network"))
    intervals = {"look": plan.look, "routes": 1.0, "heartbeats": 1.0}
    with quiet(logs=logs), replaced(loop, str(seed), intervals=intervals):
        one = _Run(plan, outcome, network)
        try:
            loop.run_until_complete(one.run())
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


class _Run:
    def __init__(self, plan: Plan, outcome: Outcome, network: Network) -> None:
        self._plan, self._outcome, self._network = plan, outcome, network
        self._loop = network.loop
        self._dice = random.Random(f"{plan.seed}/run")
        self._ledger = Ledger(random.Random(f"{plan.seed}/messages"), plan.longest)

    async def run(self) -> None:
        """Run the plan, and note the outcome."""
        outcome, plan = self._outcome, self._plan
        self._loop.set_exception_handler(self._failed)
        with ExitStack() as undo:
            self._make(undo)
            await self._roles.start()
            await self._settle("start")
            for number in range(len(plan.rounds)):
                if outcome.violations:
                    break
                await self._round(number)
            for node in self._nodes:
                await node.stop()
        outcome.sent, outcome.acknowledged = self._ledger.sent, self._ledger.count
        outcome.elections, outcome.emptied = self._roles.elections, self._roles.emptied

    def _make(self, undo: ExitStack) -> None:
        plan, network = self._plan, self._network
        settings = dict(plan.settings)
        if plan.is_led:
            settings |= {"enableControllerMode": "true", "controllerAddr": "10.0.0.9:9878"}
        self._nodes = [
            Node(network, random.Random(f"{plan.seed}/disk {number}"), number, settings, is_sync=on)
            for number, on in enumerate(plan.is_sync, 1)
        ]
        self._roles: Roles
        put = undo.enter_context
        if plan.is_led:
            controller = SimulatedController(
                self._loop, self._nodes, random.Random(f"{plan.seed}/controller")
            )
            put(mock.patch.object(nodes, "Controllers", controllers_of(controller)))
            put(mock.patch.object(membership, "RemotingClient", client_of(controller)))
            self._roles = Led(self._nodes, controller, self._ledger)
        else:
            self._roles = ByHand(self._nodes, self._ledger, self._dice, plan)
        put(mock.patch.object(slave_log, "ask", self._ask))
        self._faults = Faults(network, self._nodes, self._roles, self._dice)

    async def _ask(self, _: object, address: str) -> MasterLog:
        """Stand for the question where a master's log is."""
        await asyncio.sleep(0.001)
        for node in self._nodes:
            if node.address == address and node.state is not None and self._plan.knows_master:
                return MasterLog(*node.span)
        raise MqlakeError(f"{address} does not answer")

    def _failed(self, _: object, context: dict[str, Any]) -> None:
        """Note what nobody has handled, unless a dead process has left it behind."""
        process = owner(context.get("future") or context.get("task"))
        if process is None or process.is_alive:
            self._outcome.violations.append(str(context))

    async def _round(self, number: int) -> None:
        one, outcome = self._plan.rounds[number], self._outcome
        before, meanwhile, after = one.puts
        self._put(before)
        if self._dice.random() < 0.5:
            await asyncio.sleep(self._dice.random() * 0.05)
        fault = self._loop.create_task(self._faults.happen(one.kind, one.seconds))
        for _ in range(meanwhile):
            await asyncio.sleep(self._dice.random() * 0.3)
            self._put(1)
        await fault
        self._put(after)
        await self._settle(f"round {number}, {one.kind}")
        outcome.rounds += 1
        outcome.faults[one.kind] += 1

    def _put(self, times: int) -> None:
        master = self._roles.master
        if master is None or not master.is_master or master.process is None:
            return
        for _ in range(times):
            master.process.create_task(
                self._ledger.put(master, self._dice.randrange(1, _MESSAGES + 1))
            )

    async def _settle(self, what: str) -> None:
        """Return once everybody runs, and has the same log; check it."""
        begun = self._loop.time()
        outcome, ledger, roles = self._outcome, self._ledger, self._roles
        while (late := await roles.late()) is not None:
            if (master := roles.master) is not None:
                ledger.look(master)
            if self._loop.time() - begun > SETTLED:
                outcome.violations.append(f"{what}: not settled within {SETTLED:g} s: {late}")
                return
            await asyncio.sleep(_LOOK)
        outcome.settled = max(outcome.settled, self._loop.time() - begun)
        master = roles.master
        assert master is not None
        ledger.check(master)
        for node in self._nodes:
            if node is not master and (found := difference(master, node)) is not None:
                ledger.violations.append(found)
            node.has_lost = False
            outcome.violations += [f"{what}: {each}" for each in node.failures]
        outcome.violations += [f"{what}: {each}" for each in ledger.violations]


def difference(one: Node, other: Node) -> str | None:
    """Return how two logs differ where both have something; None if they do not."""
    (first, end), (other_first, other_end) = one.span, other.span
    start, stop = max(first, other_first), min(end, other_end)
    if start < stop and one.log(start, stop) != other.log(start, stop):
        ours, theirs = one.log(start, stop), other.log(start, stop)
        at = next(n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        return f"{one.name} and {other.name} differ at physical offset {start + at}"
    return None
