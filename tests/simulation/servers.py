"""Brokers and a name server on simulated machines."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence

from mqlake.broker.broker import Broker
from mqlake.broker.settings import make_broker_settings
from mqlake.client import MessageQueue
from mqlake.client.cluster import Cluster
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from tests.simulation.disk import SimulatedDisk
from tests.simulation.inputs import LoopClock
from tests.simulation.network import Network
from tests.simulation.process import Process

NAMES = "10.0.0.1:9876"
_SMALL: Mapping[str, object] = {
    "mappedFileSizeCommitLog": 32 << 10,
    "mappedFileSizeConsumeQueue": 2000,
    "mappedFileSizeTimerLog": 8 << 10,
    "maxHashSlotNum": 20,
    "maxIndexNum": 80,
    "messageDelayLevel": " ".join(["1s"] * 18),
    "transactionTimeOut": 500,
    "transactionCheckInterval": 500,
    "transactionCheckMax": 10_000,
    "reviveQueueNum": 1,
    "channelExpiredTimeout": 4000,
    "registerNameServerPeriod": 10_000,
    "registerBrokerTimeoutMills": 2000,
    "listenPort": 10911,
}


class DurableServer:
    """A process with a disk, on a machine of its own.

    Attributes:
        name: the server's name.
        process: the process that runs, None between two.
    """

    def __init__(self, network: Network, dice: random.Random, name: str, machine: str) -> None:
        self.name, self.machine = name, machine
        self._network, self._clock, self._dice = network, LoopClock(network.loop), dice
        self.disk = SimulatedDisk(self._clock, dice)
        self.process: Process | None = None

    async def start(self) -> None:
        """Start the server; return once it is ready, or has died before."""
        self._network.machine(self.machine).is_on = True
        process = self.process = Process(self.name, self.machine)
        await process.run(self._start())

    async def _start(self) -> None:
        raise NotImplementedError

    def _forget(self) -> None:
        """Forget what ran in the process that has ended."""

    def kill(self) -> None:
        """End the process at once; what it wrote stays."""
        self._end(self.disk.end_process, is_power_lost=False)

    def cut_power(self) -> None:
        """End the machine at once."""
        self._network.machine(self.machine).is_on = False
        self._end(self.disk.cut_power, is_power_lost=True)

    def after_steps(self, steps: int, end: Callable[[], None]) -> None:
        """Have the process end with a step of its disk, in the middle of what it does.

        Args:
            end: `kill` or `cut_power`, which is called then.
        """
        process = self.process
        if process is None or not process.is_alive:
            return

        def doom() -> None:
            process.is_doomed = True
            self._network.loop.call_soon(end, context=self._network.loop.own_context)

        self.disk.after_steps(steps, doom)

    def spare(self) -> None:
        """Forget what `after_steps` was told, unless it has happened."""
        self.disk.spare()

    def _end(self, end_disk: Callable[[], None], *, is_power_lost: bool) -> None:
        process, self.process = self.process, None
        self._forget()
        if process is None:
            return
        self._network.end_process(process, is_power_lost=is_power_lost)
        end_disk()


class SimulatedBroker(DurableServer):
    """A broker, its machine and its disk.

    Attributes:
        address: where it listens.
        broker: what runs in it, None until it has started.
    """

    def __init__(
        self, network: Network, dice: random.Random, number: int, settings: Mapping[str, object]
    ) -> None:
        super().__init__(network, dice, f"broker-{number}", f"10.0.1.{number}")
        self.address = f"{self.machine}:10911"
        self._settings = make_broker_settings(
            {
                **_SMALL,
                "brokerName": self.name,
                "brokerIP1": self.machine,
                "bindAddress": self.machine,
                "namesrvAddr": NAMES,
                "storePathRootDir": f"/simulated/{self.name}",
                **settings,
            }
        )
        self.broker: Broker | None = None

    async def _start(self) -> None:
        broker = Broker(self._settings, directory=self.disk.tree, clock=self._clock)
        await broker.start()
        self.broker = broker

    def _forget(self) -> None:
        self.broker = None

    async def stop(self) -> None:
        """Stop the broker cleanly; return once it has stopped, or has died before."""
        broker, process = self.broker, self.process
        if broker is None or process is None:
            return
        await process.run(broker.stop())
        if process.is_alive:
            self.kill()

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return a group's offset as the broker has it now."""
        if self.broker is None:
            return None
        offsets = self.broker.state.store.config.consumer_offsets
        return offsets.query(group, queue.topic, queue.queue_id)

    def has(self, topic: str) -> bool:
        """Say whether the broker has a topic: it makes a group's once a member has come."""
        assert self.broker is not None
        return topic in self.broker.state.topics

    def end(self, topic: str, queue_id: int) -> int:
        """Return how many messages a queue has."""
        assert self.broker is not None
        return self.broker.state.store.offsets.get((topic, queue_id), 0)


class SimulatedNameServer:
    """A name server on its machine; it forgets everything when it ends."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._machine, _, port = NAMES.partition(":")
        self._settings = NamesrvSettings(bind_address=self._machine, listen_port=int(port))
        self.process: Process | None = None

    async def start(self) -> None:
        """Start it."""
        process = self.process = Process("names", self._machine)
        self._server = NameServer(self._settings, LoopClock(self._network.loop))
        await process.run(self._server.start())

    async def stop(self) -> None:
        """Stop it cleanly."""
        process, self.process = self.process, None
        if process is not None:
            await process.run(self._server.stop())
            self._network.end_process(process)

    def kill(self) -> None:
        """End its process at once."""
        process, self.process = self.process, None
        if process is not None:
            self._network.end_process(process)


async def known_everywhere(topic: str, brokers: Sequence[str]) -> None:
    """Return once the name server knows a topic of some brokers; to be called in a process."""
    async with Cluster(NAMES) as cluster:
        while True:
            route = await cluster.route_known(topic)
            known = {broker.broker_name for broker in route.broker_datas} if route else set()
            if known.issuperset(brokers):
                return
            await asyncio.sleep(1.0)
