"""A simulated network: machines, listening ports, and who reaches whom, how fast."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import CURRENT, Process
from tests.simulation.transport import Connection

Factory = Callable[[], asyncio.BaseProtocol]

_FIRST_PORT = 40_000
_SLOWDOWN = 60.0


class Machine:
    """A machine with one address.

    Attributes:
        listeners: the processes that listen, by port.
        is_on: without power nothing answers, nor refuses.
        refuses_until: simulated time until which it refuses connections.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.listeners: dict[int, Listener] = {}
        self.is_on = True
        self.refuses_until = 0.0
        self._ports = _FIRST_PORT

    def next_port(self) -> int:
        """Return a port for a connection that begins here."""
        self._ports += 1
        return self._ports


class Listener:
    """A listening port; what `loop.create_server` returns, and its socket."""

    def __init__(self, machine: Machine, port: int, factory: Factory, process: Process) -> None:
        self.machine, self.port, self.factory, self.process = machine, port, factory, process

    @property
    def sockets(self) -> tuple[Listener, ...]:
        return (self,)

    def getsockname(self) -> tuple[str, int]:
        return self.machine.address, self.port

    def fileno(self) -> int:
        return -1

    async def start_serving(self) -> None:
        """Do nothing: the port serves from the call that made it."""

    def close(self) -> None:
        if self.machine.listeners.get(self.port) is self:
            del self.machine.listeners[self.port]

    async def wait_closed(self) -> None:
        """Return at once: connections outlive the port that they came by."""


class Network:
    """All machines and the connections between them.

    Attributes:
        connections: those whose ends are not both gone.
        ended: the processes that have ended.
        on_write: called before each write to a connection.
    """

    def __init__(self, loop: SimulatedLoop, dice: random.Random) -> None:
        self.loop, self.dice = loop, dice
        self.machines: dict[str, Machine] = {}
        self.connections: dict[Connection, None] = {}
        self.ended: list[Process] = []
        self.on_write: Callable[[Connection], object] = lambda _: None
        self._blocked: dict[tuple[str, str], float] = {}
        self._slow: dict[tuple[str, str], float] = {}
        self._median = dice.choice((0.0001, 0.0005, 0.003))

    def machine(self, address: str) -> Machine:
        """Return the machine of an address."""
        found = self.machines.get(address)
        if found is None:
            found = self.machines[address] = Machine(address)
        return found

    # What the event loop calls

    async def listen(self, factory: Factory, host: str, port: int) -> Listener:
        """Listen on a port of the current process's machine; 0: on a free one."""
        process = _current()
        machine = self.machine(process.machine)
        port = port or machine.next_port()
        if port in machine.listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = machine.listeners[port] = Listener(machine, port, factory, process)
        return listener

    async def connect(
        self, factory: Factory, host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Return a connection of the current process to a port."""
        process, made = _current(), self.loop.create_future()
        self.loop.call_later(
            self.delay(process.machine, host),
            self._arrive,
            process,
            made,
            factory,
            host,
            port,
            context=self.loop.own_context,
        )
        return await made

    def _arrive(
        self, process: Process, made: asyncio.Future[Any], factory: Factory, host: str, port: int
    ) -> None:
        """Let a wish for a connection arrive at its machine."""
        machine = self.machine(host)
        if not machine.is_on:
            return
        listener, back = machine.listeners.get(port), self.delay(host, process.machine)
        if listener is None or machine.refuses_until > self.loop.time():
            self.loop.call_later(back, _refuse, made, context=process.context)
            return
        client = (process.machine, self.machine(process.machine).next_port())
        connection = Connection(self, process, client, listener.process, (host, port))
        self.connections[connection] = None
        protocol = listener.process.call(listener.factory)
        listener.process.call(lambda: connection.server.start(protocol))
        self.loop.call_at(
            connection.server.arrival(),
            self._established,
            connection,
            made,
            factory,
            context=self.loop.own_context,
        )

    def _established(
        self, connection: Connection, made: asyncio.Future[Any], factory: Factory
    ) -> None:
        """Let the answer of the other machine arrive."""
        client = connection.client
        if client.is_lost:  # it was cut meanwhile
            self.loop.call_soon(_refuse, made, context=client.process.context)
        elif not client.process.is_alive or made.done():
            client.vanish(tells=True)
        else:
            protocol = client.process.call(factory)
            client.process.call(lambda: client.start(protocol))
            made.set_result((client, protocol))

    # How fast

    def delay(self, source: str, target: str) -> float:
        """Return the seconds that something sent now takes."""
        if source == target:
            return 1e-5
        now, pair = self.loop.time(), (source, target)
        seconds = self._median * (0.5 + self.dice.expovariate(1.0))
        if self._slow.get(pair, 0.0) > now:
            seconds *= _SLOWDOWN
        return seconds + max(0.0, self._blocked.get(pair, 0.0) - now)

    def block(self, source: str, target: str, seconds: float) -> None:
        """Let nothing through in one direction; it arrives once the time is over."""
        self._blocked[source, target] = self.loop.time() + seconds

    def slow(self, source: str, target: str, seconds: float) -> None:
        """Let everything in one direction take long."""
        self._slow[source, target] = self.loop.time() + seconds

    # What ends

    def of(self, address: str) -> Iterator[Connection]:
        """Yield the connections of a machine."""
        for connection in list(self.connections):
            if address in (connection.client.process.machine, connection.server.process.machine):
                yield connection

    def end_process(self, process: Process, *, is_power_lost: bool = False) -> None:
        """End a process as the system does it: its ports and connections go.

        Args:
            is_power_lost: the machine goes too, and tells nobody.
        """
        process.is_alive = False
        process.remains += self.loop.tasks(process)
        process.died.set_result(None)
        self.ended.append(process)
        machine = self.machine(process.machine)
        for port, listener in list(machine.listeners.items()):
            if listener.process is process:
                del machine.listeners[port]
        for connection in list(self.connections):
            for end in (connection.client, connection.server):
                if end.process is process:
                    end.vanish(tells=not is_power_lost)

    def forget(self, connection: Connection) -> None:
        """Forget a connection of which both ends are gone."""
        self.connections.pop(connection, None)


def _current() -> Process:
    process = CURRENT.get()
    assert process is not None, "only a simulated process has connections"
    return process


def _refuse(made: asyncio.Future[Any]) -> None:
    if not made.done():
        made.set_exception(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
