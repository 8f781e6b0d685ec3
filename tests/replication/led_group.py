"""Brokers of one name under RocketMQ's controller: mqlake's and RocketMQ's, in any mix."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from mqlake.remoting.client import RemotingClient
from tests.peer.rocketmq_controller import Controller, Member
from tests.programs.forked import ForkedBroker
from tests.replication.pairs import FILES, PATIENCE, status

OURS, JAVA = "mqlake", "rocketmq"
_JAVA_FILES: dict[str, object] = {
    "brokerClusterName": "DefaultCluster",
    "mappedFileSizeCommitLog": FILES["mappedFileSizeCommitLog"],
    "haSendHeartbeatInterval": 500,
    "maxHashSlotNum": FILES["maxHashSlotNum"],
    "maxIndexNum": FILES["maxIndexNum"],
    "syncBrokerMetadataPeriod": 1000,
    "checkSyncStateSetPeriod": 1000,
}


class Broker(Protocol):
    """A broker that can be started again where it was."""

    address: str

    def start(self) -> None: ...
    def stop(self) -> object: ...
    def kill(self) -> None: ...


class LedGroup:
    """Brokers of one name, and who of them is the master.

    Attributes:
        stores: of each broker.
        brokers: those that run, or were killed.
    """

    def __init__(self, path: Path, controller: Controller, kinds: Sequence[str]) -> None:
        self._controller, self._kinds = controller, kinds
        self.stores = [path / f"{kind}-{number}" for number, kind in enumerate(kinds)]
        self.brokers: list[Broker | None] = [None for _ in kinds]
        self._client = RemotingClient()

    async def start(self, number: int) -> Broker:
        """Start a broker, again or for the first time."""
        broker = self.brokers[number]
        if broker is not None:
            await asyncio.to_thread(broker.start)
        else:
            make = self._ours if self._kinds[number] == OURS else self._java
            broker = self.brokers[number] = await asyncio.to_thread(make, self.stores[number])
        return broker

    def _ours(self, store: Path) -> Broker:
        settings = {
            **FILES,
            "brokerName": "broker-a",
            "namesrvAddr": self._controller.names,
            "enableControllerMode": "true",
            "controllerAddr": self._controller.address,
            "syncBrokerMetadataPeriod": 1000,
            "checkSyncStateSetPeriod": 1000,
        }
        return ForkedBroker(store, store.with_suffix(".log"), settings)

    def _java(self, store: Path) -> Broker:
        broker = Member(store.with_suffix(".java"), store, self._controller, _JAVA_FILES)
        broker.start()
        return broker

    async def master(self, but: Broker | None = None) -> Broker:
        """Return the broker that is the master, once there is one, other than a given one."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for broker in self.brokers:
                    if broker is None or broker is but:
                        continue
                    found = await status(self._client, broker.address)
                    if found is not None and found.master:
                        return broker
                await asyncio.sleep(0.05)

    async def in_sync(self, slaves: int) -> Broker:
        """Return the master once so many slaves are in sync and lack nothing."""
        async with asyncio.timeout(PATIENCE):
            while True:
                master = await self.master()
                found = await status(self._client, master.address)
                connections = found.ha_connection_info if found else []
                if sum(each.in_sync and each.diff == 0 for each in connections) >= slaves:
                    return master
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        """Stop all brokers that run."""
        for broker in self.brokers:
            if broker is not None:
                await asyncio.to_thread(broker.stop)

    async def kill(self) -> None:
        """End what still runs."""
        await self._client.close()
        for broker in self.brokers:
            if broker is not None:
                await asyncio.to_thread(broker.kill)


@asynccontextmanager
async def led_group(path: Path, kinds: Sequence[str]) -> AsyncIterator[LedGroup]:
    """Run a controller, and have a group of brokers, none of which is started.

    Raises:
        JavaMissingError: there is no Java for the controller.
    """
    controller = Controller(path / "controller")
    group = LedGroup(path, controller, kinds)
    try:
        await asyncio.to_thread(controller.start)
        yield group
    finally:
        await group.kill()
        await asyncio.to_thread(controller.kill)
