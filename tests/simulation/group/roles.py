"""Who is the master of a group: as an operator says, or a controller."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from mqlake.store.settings import BrokerRole
from tests.simulation.group.controller import SimulatedController
from tests.simulation.group.ledger import Ledger
from tests.simulation.group.node import Node
from tests.simulation.group.plan import Plan

_STAYS = 40.0
"""Seconds after which a log that is said to be another one must be another one."""


class Roles(Protocol):
    """Who is the master.

    Attributes:
        elections: how often another one became the master.
        emptied: how many slaves got an empty store because their log was another one.
    """

    elections: int
    emptied: int

    @property
    def master(self) -> Node | None:
        """The broker that is meant to be the master."""
        ...

    async def start(self) -> None:
        """Start all brokers."""
        ...

    async def started(self, node: Node) -> None:
        """Start a broker again, in the role that it has now."""
        ...

    async def late(self) -> str | None:
        """Return why not all brokers have the same log; None if they have."""
        ...


def _lag(master: Node, slave: Node) -> str | None:
    """Return what a slave lacks."""
    if slave.state is None:
        return f"{slave.name} does not run"
    watermarks = master.store.watermarks
    server = master.state.replication.server if master.state else None
    connections = server.connections if server is not None else []
    mine = [each for each in connections if each.address.startswith(f"{slave.machine}:")]
    if slave.span[1] != master.span[1] or watermarks.kept != master.span[1]:
        return f"{slave.name} has {slave.span} of {master.span}: {slave.problem}"
    # Of an empty log nothing is acknowledged.
    if not any(each.acknowledged == master.span[1] for each in mine):
        return f"{slave.name} has not acknowledged {master.span[1]}: {slave.problem}"
    if slave.store.watermarks.dispatched != slave.span[1]:
        return f"{slave.name} has dispatched {slave.store.watermarks.dispatched} of {slave.span}"
    return None


class ByHand:
    """An operator, who follows docs/replication.md."""

    def __init__(
        self, nodes: Sequence[Node], ledger: Ledger, dice: random.Random, plan: Plan
    ) -> None:
        self._nodes, self._ledger, self._dice = nodes, ledger, dice
        self._role = BrokerRole.SYNC_MASTER if plan.is_acknowledged else BrokerRole.ASYNC_MASTER
        self._is_promised = plan.is_acknowledged
        self._master = nodes[0]
        self._said: dict[Node, float] = {}
        self.elections = self.emptied = 0

    @property
    def master(self) -> Node:
        return self._master

    @property
    def slaves(self) -> list[Node]:
        """All other brokers."""
        return [each for each in self._nodes if each is not self._master]

    async def start(self) -> None:
        for node in self._nodes:
            await self.started(node)

    async def started(self, node: Node) -> None:
        is_master = node is self._master
        node.become(self._role if is_master else BrokerRole.SLAVE)
        await node.start()
        self._tell(node)

    def _tell(self, node: Node) -> None:
        """Tell a slave where its master is, as a name server does."""
        master = self._master
        if node is not master and node.state is not None and node.process is not None:
            replicas = node.state.replicas
            node.process.call(lambda: replicas.found_master(master.address, master.ha_address))

    async def fail_over(self) -> bool:
        """Promote the slave with the longest log; the master is dead. Return whether one was."""
        slaves = self.slaves
        if any(each.state is None or each.has_lost for each in slaves):
            return False
        old, new = self._master, max(slaves, key=lambda each: each.span[1])
        await self._promote(new)
        if self._dice.random() < 0.3 and old.process is None:
            old.wipe()
        return True

    async def _promote(self, new: Node) -> None:
        self._master = new
        self.elections += 1
        process, state = new.process, new.state
        assert process is not None
        assert state is not None
        settings = new.become(self._role)
        replicas = state.replicas
        process.call(lambda: replicas.found_master("", ""))
        await process.run(state.replication.switch(settings))
        for each in self.slaves:
            self._tell(each)
        if not self._is_promised and new.state is not None:
            self._ledger.forget_missing(new)

    async def switch_over(self) -> None:
        """Demote the master, and promote a slave that has its whole log then."""
        old = self._master
        slaves = [each for each in self.slaves if each.state is not None]
        if not slaves or old.state is None or old.process is None:
            return
        settings = old.become(BrokerRole.SLAVE)
        await old.process.run(old.state.replication.switch(settings))
        alike = [each for each in slaves if each.state and each.span[1] == old.span[1]]
        if old.state is None:
            return
        if alike:
            await self._promote(self._dice.choice(alike))
        else:
            back = old.become(self._role)
            await old.process.run(old.state.replication.switch(back))
        self._tell(old)

    async def late(self) -> str | None:
        master = self._master
        if master.state is None:
            if self._must_not_lead(master) and await self.fail_over():
                return "another master"
            if master.has_lost:
                await self.started(master)
                if master.state is not None:
                    self._ledger.forget_missing(master)
                return "the master is started"
            await self.started(master)
            return "the master is started"
        for node in self.slaves:
            if node.state is None:
                await self.started(node)
            if node.state is None:
                return f"{node.name} does not start"
            if await self._emptied(node):
                return f"{node.name} has an empty store now"
            if (lag := _lag(master, node)) is not None:
                return lag
        return master.store.copies.missing

    def _must_not_lead(self, master: Node) -> bool:
        """Say whether the old master lacks what it has acknowledged, and slaves may have."""
        return master.has_lost

    async def _emptied(self, node: Node) -> bool:
        """Give a slave an empty store if it says that its log is another one, and it is."""
        problem = node.problem
        if problem is None or "empty store" not in problem:
            self._said.pop(node, None)
            return False
        since = self._said.setdefault(node, node.store.clock.monotonic())
        if not is_other(self._master, node):
            if node.store.clock.monotonic() - since > _STAYS:
                self._ledger.violations.append(f"{node.name} says without a reason: {problem}")
            return False
        del self._said[node]
        node.kill()
        node.wipe()
        self.emptied += 1
        return True


def is_other(master: Node, slave: Node) -> bool:
    """Say whether a slave's log cannot be continued with its master's."""
    (first, end), (own_first, own_end) = master.span, slave.span
    start = max(first, own_first)
    if own_end > end or own_end < first:
        return True
    return start < own_end and master.log(start, own_end) != slave.log(start, own_end)


class Led:
    """A controller. Brokers are only started again."""

    def __init__(
        self, nodes: Sequence[Node], controller: SimulatedController, ledger: Ledger
    ) -> None:
        self._nodes, self.controller, self._ledger = nodes, controller, ledger
        self._may_lack = False
        self.elections = self.emptied = 0
        controller.on_elected = self._elected

    def _elected(self, node: Node) -> None:
        self.elections += 1
        self._note_loss(node)

    def _note_loss(self, master: Node) -> None:
        """Note a master that lost its power under ASYNC_FLUSH before anybody took note of it."""
        self._may_lack = self._may_lack or master.has_lost

    @property
    def master(self) -> Node | None:
        number = self.controller.term.master_id
        return None if number is None else self.controller.nodes[number]

    async def start(self) -> None:
        for node in self._nodes:
            await node.start()

    async def started(self, node: Node) -> None:
        await node.start()

    async def late(self) -> str | None:
        for node in self._nodes:
            if node.process is None:
                await node.start()
        master = self.master
        if master is None or not master.is_master:
            return "there is no master"
        self._note_loss(master)
        term = self.controller.term
        for node in self._nodes:
            if node is master:
                continue
            if (lag := _lag(master, node)) is not None:
                return lag
            if node.number not in term.members:
                return f"{node.name} is not in sync"
        if (missing := master.store.copies.missing) is None and self._may_lack:
            self._ledger.forget_missing(master)
            self._may_lack = False
        return missing
