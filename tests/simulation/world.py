"""What a run does to the servers, the network and the group."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.simulation.members import Members
from tests.simulation.network import Network
from tests.simulation.plan import Fault
from tests.simulation.servers import SimulatedBroker, SimulatedNameServer

_log = logging.getLogger(__name__)

_MOST_STEPS = 40
_PATIENCE = 3.0
"""Seconds in which a broker that is to die in a write has to write something."""


class World:
    """Makes the faults of a plan happen.

    Attributes:
        faults: how often each kind has happened.
    """

    def __init__(
        self,
        network: Network,
        names: SimulatedNameServer,
        brokers: Sequence[SimulatedBroker],
        members: Members,
        dice: random.Random,
    ) -> None:
        self._network, self._names, self._brokers = network, names, brokers
        self._members, self._dice = members, dice
        self.faults: Counter[str] = Counter()
        self._kinds: dict[str, Callable[[float], Awaitable[None]]] = {
            "cut": self._cut,
            "cut in frames": self._cut_in_frames,
            "half-open": self._half_open,
            "block": self._block,
            "slow": self._slow,
            "refuse": self._refuse,
            "kill a broker": self._kill,
            "kill a broker in a write": self._kill_in_write,
            "stop a broker": self._stop,
            "cut a broker's power": self._cut_power,
            "cut a broker's power in a write": self._cut_power_in_write,
            "kill the name server": self._kill_names,
            "stop the name server": self._stop_names,
            "a consumer joins": self._join,
            "a consumer leaves": self._leave,
            "a consumer dies": self._die,
            "a consumer loses power": self._lose_power,
        }

    async def run(self, faults: Sequence[Fault]) -> None:
        """Return once all faults have happened and are over."""
        for fault in faults:
            await asyncio.sleep(fault.wait)
            self.faults[fault.kind] += 1
            _log.info("%s (%.3f s)", fault.kind, fault.seconds)
            await self._kinds[fault.kind](fault.seconds)

    # Network

    def _machines(self) -> list[str]:
        return list(self._network.machines)

    def _some_machine(self) -> str:
        return self._dice.choice(self._machines())

    async def _cut(self, _: float) -> None:
        for connection in self._network.of(self._some_machine()):
            connection.cut()

    async def _cut_in_frames(self, _: float) -> None:
        for connection in self._network.of(self._some_machine()):
            connection.cut(in_frames=True)

    async def _half_open(self, _: float) -> None:
        is_silent = self._dice.random() < 0.5
        for connection in self._network.of(self._some_machine()):
            end = self._dice.choice((connection.client, connection.server))
            connection.lose(end, is_silent=is_silent)

    async def _block(self, seconds: float) -> None:
        both_ways, machine = self._dice.random() < 0.5, self._some_machine()
        for other in self._machines():
            if other != machine:
                self._network.block(machine, other, seconds)
                if both_ways:
                    self._network.block(other, machine, seconds)
        await asyncio.sleep(seconds)

    async def _slow(self, seconds: float) -> None:
        machine = self._some_machine()
        for other in self._machines():
            self._network.slow(machine, other, seconds)
            self._network.slow(other, machine, seconds)

    async def _refuse(self, seconds: float) -> None:
        machine = self._some_machine()
        self._network.machine(machine).refuses_until = self._network.loop.time() + seconds
        for connection in self._network.of(machine):
            connection.cut()

    # Servers

    def _broker(self) -> SimulatedBroker:
        return self._dice.choice(self._brokers)

    async def _kill(self, seconds: float) -> None:
        broker = self._broker()
        broker.kill()
        await self._start_again(broker, seconds)

    async def _cut_power(self, seconds: float) -> None:
        broker = self._broker()
        broker.cut_power()
        await self._start_again(broker, seconds)

    async def _kill_in_write(self, seconds: float) -> None:
        broker = self._broker()
        await self._end_in_write(broker, broker.kill)
        await self._start_again(broker, seconds)

    async def _cut_power_in_write(self, seconds: float) -> None:
        broker = self._broker()
        await self._end_in_write(broker, broker.cut_power)
        await self._start_again(broker, seconds)

    async def _end_in_write(self, broker: SimulatedBroker, end: Callable[[], None]) -> None:
        process = broker.process
        if process is None:
            return
        broker.after_steps(self._dice.randrange(1, _MOST_STEPS), end)
        await asyncio.wait((process.died,), timeout=_PATIENCE)
        if process.is_alive:
            end()

    async def _stop(self, seconds: float) -> None:
        broker = self._broker()
        await broker.stop()
        await self._start_again(broker, seconds)

    async def _start_again(self, broker: SimulatedBroker, seconds: float) -> None:
        """Start a broker; now and then it dies in its start, once."""
        await asyncio.sleep(seconds)
        if self._dice.random() < 0.15:
            starting = asyncio.ensure_future(broker.start())
            await asyncio.sleep(0)
            broker.after_steps(self._dice.randrange(1, _MOST_STEPS), broker.kill)
            process = broker.process
            await starting
            if process is not None and process.is_doomed:
                await asyncio.wait((process.died,))
            broker.spare()
        if broker.process is None:
            await broker.start()

    async def _kill_names(self, seconds: float) -> None:
        self._names.kill()
        await asyncio.sleep(seconds)
        await self._names.start()

    async def _stop_names(self, seconds: float) -> None:
        await self._names.stop()
        await asyncio.sleep(seconds)
        await self._names.start()

    # Group

    async def _join(self, _: float) -> None:
        await self._members.join()

    async def _leave(self, _: float) -> None:
        await self._members.leave()

    async def _die(self, _: float) -> None:
        self._members.die(is_power_lost=False)

    async def _lose_power(self, _: float) -> None:
        self._members.die(is_power_lost=True)
