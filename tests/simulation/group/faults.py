"""What a run does to the brokers of a group and to their network."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from mqlake.protocol.replication.frames import encode_report
from tests.simulation.group.node import HA_PORT, Node
from tests.simulation.group.plan import NETWORK, POWER
from tests.simulation.group.roles import ByHand, Led, Roles
from tests.simulation.network import Network
from tests.simulation.process import Process

_MOST_STEPS = 25
_COMES_BACK = 3.0
_PATIENCE = 0.5
"""Seconds in which a broker that is to die in a write has to write something."""


class Faults:
    """Makes faults happen, each by its kind."""

    def __init__(
        self, network: Network, nodes: Sequence[Node], roles: Roles, dice: random.Random
    ) -> None:
        self._network, self._nodes, self._roles, self._dice = network, nodes, roles, dice

    async def happen(self, kind: str, seconds: float) -> None:
        """Return once a fault has happened, and is over. Who has died need not run again."""
        master = self._roles.master or self._dice.choice(self._nodes)
        slave = self._dice.choice([each for each in self._nodes if each is not master])
        machine = self._dice.choice(self._nodes).machine
        one = master if "master" in kind else slave
        if kind in NETWORK:
            await self._disturb(kind, machine, seconds)
        elif kind.endswith("in a write"):
            await self._end_in_write(one, "cut_power" if "power" in kind else "kill", seconds)
        elif kind in POWER:
            await self._end(one, "cut_power", seconds)
        elif kind.startswith("kill"):
            await self._end(one, "kill", seconds)
        elif kind.startswith("stop"):
            await one.stop()
            await self._start_again(one, seconds)
        elif kind == "give a slave an empty store":
            await self._empty(slave, seconds)
        elif isinstance(self._roles, Led):
            await self._elect(self._roles, kind, master, slave, seconds)
        elif isinstance(self._roles, ByHand):
            await self._promote(self._roles, kind, master, slave)

    async def _elect(
        self, roles: Led, kind: str, master: Node, slave: Node, seconds: float
    ) -> None:
        controller = roles.controller
        match kind:
            case "keep the controller from a broker":
                number = self._dice.choice((master, slave)).number
                controller.deaf_to[number] = self._network.loop.time() + 2 * seconds
                await asyncio.sleep(2 * seconds)
            case "elect another master":
                controller.designate(slave.number)
            case "elect who has come back":
                await self._elect_who_comes_back(roles, master, slave)
            case _:
                for node in self._nodes:
                    await self._end(node, "cut_power", None)

    async def _promote(self, roles: ByHand, kind: str, master: Node, slave: Node) -> None:
        match kind:
            case "fail over":
                how = self._dice.choice(("kill", "cut_power", "kill in a write"))
                if how == "kill in a write":
                    await self._end_in_write(master, "kill", None)
                else:
                    await self._end(master, how, None)
                if not await roles.fail_over():
                    await roles.started(master)
            case "fail over after a power loss":
                await self._end(slave, "cut_power", None)
                await self._end(master, "kill", None)
                await roles.started(slave)
                if not await roles.fail_over():
                    await roles.started(master)
            case "switch over":
                await roles.switch_over()
            case _:
                await self._forge(master)

    async def _elect_who_comes_back(self, roles: Led, master: Node, slave: Node) -> None:
        """Restart a slave, and have it be the master as soon as it may be."""
        controller = roles.controller
        await self._end(slave, "kill", None)
        await asyncio.sleep(self._dice.random() * 0.5)
        await slave.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_COMES_BACK):
                while slave.number not in controller.term.members:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        await self._end(master, "kill", None)

    # Network

    async def _disturb(self, kind: str, machine: str, seconds: float) -> None:
        match kind:
            case "half-open":
                self._half_open(machine)
            case "block":
                await self._block(machine, seconds)
            case "slow":
                self._slow(machine, seconds)
            case _:
                if kind == "refuse":
                    until = self._network.loop.time() + seconds
                    self._network.machine(machine).refuses_until = until
                for connection in self._network.of(machine):
                    connection.cut(in_frames=kind == "cut in frames")

    def _half_open(self, machine: str) -> None:
        is_silent = self._dice.random() < 0.5
        for connection in self._network.of(machine):
            end = self._dice.choice((connection.client, connection.server))
            connection.lose(end, is_silent=is_silent)

    async def _block(self, machine: str, seconds: float) -> None:
        both_ways = self._dice.random() < 0.5
        for node in self._nodes:
            if node.machine != machine:
                self._network.block(machine, node.machine, seconds)
                if both_ways:
                    self._network.block(node.machine, machine, seconds)
        await asyncio.sleep(seconds)

    def _slow(self, machine: str, seconds: float) -> None:
        for node in self._nodes:
            if node.machine != machine:
                self._network.slow(machine, node.machine, seconds)
                self._network.slow(node.machine, machine, seconds)

    # Processes

    async def _end(self, node: Node, how: str, seconds: float | None) -> None:
        if node.process is not None:
            self._finish(node, how)
        if seconds is not None:
            await self._start_again(node, seconds)

    def _finish(self, node: Node, how: str) -> None:
        process = node.process
        (node.kill if how == "kill" else node.cut_power)()
        roles = self._roles
        if isinstance(roles, Led) and process is not None and how == "kill":
            roles.controller.ended(node.number)

    async def _end_in_write(self, node: Node, how: str, seconds: float | None) -> None:
        process = node.process
        if process is not None:
            node.after_steps(self._dice.randrange(1, _MOST_STEPS), lambda: self._finish(node, how))
            await asyncio.wait((process.died,), timeout=_PATIENCE)
            if process.is_alive and node.process is process:
                self._finish(node, how)
        if seconds is not None:
            await self._start_again(node, seconds)

    async def _start_again(self, node: Node, seconds: float) -> None:
        """Start a broker; now and then it dies in its start, once. Some are left to `late`."""
        await asyncio.sleep(seconds)
        if node.process is not None or node.has_lost or self._dice.random() < 0.5:
            return
        if self._dice.random() < 0.2:
            starting = asyncio.ensure_future(self._roles.started(node))
            await asyncio.sleep(0)
            node.after_steps(
                self._dice.randrange(1, _MOST_STEPS), lambda: self._finish(node, "kill")
            )
            process = node.process
            await starting
            if process is not None and process.is_doomed:
                await asyncio.wait((process.died,))
            node.spare()
        else:
            await self._roles.started(node)

    async def _empty(self, node: Node, seconds: float) -> None:
        await self._end(node, "kill", None)
        roles = self._roles
        if isinstance(roles, Led) and node.number in roles.controller.term.members:
            return  # it might be elected before anybody knows that it has lost everything
        node.wipe()
        await self._start_again(node, seconds)

    # Others

    async def _forge(self, master: Node) -> None:
        """Report what was never sent, as somebody who reaches the port may."""
        stranger = Process("stranger", "10.0.9.9")

        async def report() -> None:
            try:
                _, writer = await asyncio.open_connection(master.machine, HA_PORT)
            except OSError:
                return
            end = master.span[1] if master.state else 1
            for offset in (self._dice.choice((0, 1, end)), end + 500, 1 << 40):
                writer.write(encode_report(offset))
                await asyncio.sleep(self._dice.random() * 0.1)
            writer.transport.abort()

        await stranger.run(report())
