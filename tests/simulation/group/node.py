"""One broker of a simulated group: its store and its replication, without clients."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from mqlake.broker.controller.membership import Membership
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import BrokerSettings, make_broker_settings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.controllers import Controllers
from mqlake.replication.replicas import Replicas
from mqlake.replication.replication import Replication
from mqlake.store import MessageStore
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import cut_log
from mqlake.store.settings import BrokerRole
from tests.simulation.disk import SimulatedDisk
from tests.simulation.network import Network
from tests.simulation.servers import DurableServer

HA_PORT = 10912
_SMALL: Mapping[str, object] = {
    "mappedFileSizeCommitLog": 4 << 10,
    "mappedFileSizeConsumeQueue": 2000,
    "mappedFileSizeTimerLog": 8 << 10,
    "timerWheelEnable": False,
    "maxHashSlotNum": 20,
    "maxIndexNum": 80,
    "messageDelayLevel": "1s",
    "listenPort": 10911,
    "haListenPort": HA_PORT,
    "haSendHeartbeatInterval": 1000,
    "haHousekeepingInterval": 4000,
    "haTransferBatchSize": 1000,
    "slaveTimeout": 400,
    "syncBrokerMetadataPeriod": 2000,
    "checkSyncStateSetPeriod": 2000,
    "haMaxTimeSlaveNotCatchup": 8000,
    "brokerHeartbeatInterval": 1000,
    "controllerHeartBeatTimeoutMills": 4000,
}


class Node(DurableServer):
    """A broker of the group.

    Attributes:
        number: its number, which is its broker id, too.
        address: where it would serve clients.
        state: what runs in the process, None until it has started.
        is_led: whether a controller decides its role.
        is_sync: whether it acknowledges only what is on its disk.
        has_lost: it may lack what it has acknowledged: it lost power, or its store.
        failures: what ended unexpectedly.
    """

    def __init__(
        self,
        network: Network,
        dice: random.Random,
        number: int,
        settings: Mapping[str, object],
        *,
        is_sync: bool,
    ) -> None:
        super().__init__(network, dice, f"node-{number}", f"10.0.1.{number}")
        self.number, self.is_sync, self.has_lost = number, is_sync, False
        self.address, self.ha_address = f"{self.machine}:10911", f"{self.machine}:{HA_PORT}"
        self.settings = make_broker_settings(
            {
                **_SMALL,
                "brokerName": "group",
                "brokerIP1": self.machine,
                "bindAddress": self.machine,
                "storePathRootDir": f"/simulated/{self.name}",
                "flushDiskType": "SYNC_FLUSH" if is_sync else "ASYNC_FLUSH",
                **settings,
            }
        )
        self.is_led = self.settings.enable_controller_mode
        self.state: BrokerState | None = None
        self.failures: list[str] = []
        self._undo = AsyncExitStack()
        self._cutting: asyncio.Task[None] | None = None

    # Role

    def become(self, role: BrokerRole) -> BrokerSettings:
        """Have the next start, or `Replication.switch`, take a role; return its settings."""
        number = self.number if role is BrokerRole.SLAVE else 0
        self.settings = msgspec.structs.replace(self.settings, broker_role=role, broker_id=number)
        return self.settings

    @property
    def is_master(self) -> bool:
        """Whether it runs, and accepts messages."""
        return self.state is not None and not self._live.now.is_slave

    @property
    def store(self) -> MessageStore:
        assert self.state is not None
        return cast("MessageStore", self.state.store)

    @property
    def problem(self) -> str | None:
        """Why it does not follow its master, as far as it says so."""
        slave = self.state.replication.slave if self.state else None
        return slave.problem if slave else None

    # Life

    async def _start(self) -> None:
        settings = self.settings
        if self.is_led:
            settings = self.become(BrokerRole.SLAVE)
        async with AsyncExitStack() as undo:
            self._live = live = LiveSettings(settings)
            store = MessageStore.open(
                settings.store_path, live, directory=self.disk.tree, clock=self._clock
            )
            await undo.enter_async_context(store)
            store.failed.add_done_callback(self._store_failed)
            state = cast("BrokerState", _State(live, store, self._cut_soon))
            undo.push_async_callback(state.replication.stop)
            await state.replication.start()
            self.state = state
            if state.replication.group is not None:
                runtime = cast("BrokerRuntime", _Runtime(live))
                membership = state.membership = Membership(state, runtime)  # type: ignore[attr-defined]
                undo.push_async_callback(membership.stop)
                await membership.start()
            self._undo = undo.pop_all()

    def _store_failed(self, failed: asyncio.Future[Any]) -> None:
        if not failed.cancelled():
            self.failures.append(f"{self.name}: {failed.result()}")

    def _cut_soon(self, end: int) -> None:
        if self._cutting is None:
            self._cutting = asyncio.create_task(self._cut(end))

    async def _cut(self, end: int) -> None:
        """Do what `Broker` does to cut its log."""
        try:
            await self._close()
            size = self.settings.mapped_file_size_commit_log
            await asyncio.to_thread(cut_log, self.disk.tree, end, size, self._clock)
            await self._start()
        except Exception as error:
            self.failures.append(f"{self.name} cannot cut its log at {end}: {error!r}")
            raise
        finally:
            self._cutting = None

    async def _close(self) -> None:
        self.state = None
        await self._undo.aclose()

    async def _stop(self) -> None:
        if self._cutting is not None:
            await asyncio.gather(self._cutting, return_exceptions=True)
        await self._close()

    async def stop(self) -> None:
        """Stop cleanly; return once it has stopped, or has died before."""
        process = self.process
        if process is None:
            return
        await process.run(self._stop())
        if process.is_alive:
            self.kill()

    def _forget(self) -> None:
        self.state = self._cutting = None
        self._undo = AsyncExitStack()

    def cut_power(self) -> None:
        super().cut_power()
        self.has_lost = self.has_lost or not self.is_sync

    def wipe(self) -> None:
        """Give it an empty store; it does not run."""
        assert self.process is None
        self.disk = SimulatedDisk(self._clock, self._dice)
        self.has_lost = True

    # Its log

    @property
    def span(self) -> tuple[int, int]:
        """The physical offsets between which its log is."""
        return self.store.watermarks.min_offset, self.store.watermarks.end

    def log(self, start: int, end: int) -> bytes:
        """Return bytes of its log."""
        log, found = self.store.core.log, bytearray()
        while start < end:
            segment = log.segment_at(start)
            assert segment is not None
            part = log.read(start, min(end, segment.end) - start)
            found += part
            start += len(part)
        return bytes(found)


class _State:
    """What replication needs of a broker's state: no clients, no name servers."""

    def __init__(
        self,
        live: LiveSettings[BrokerSettings],
        store: MessageStore,
        cut: Callable[[int], object],
    ) -> None:
        self.store, self.replicas = store, Replicas(lambda: self.replication.listens_at)
        is_led = live.now.enable_controller_mode
        self.controllers = Controllers(live, store.clock) if is_led else None
        alter = self.controllers.alter if self.controllers is not None else None
        self.replication: Replication[BrokerSettings] = Replication(
            live, store, self.replicas, cut, alter
        )
        self.names = SimpleNamespace(start=_nothing, changed=lambda: None)
        self.topics = SimpleNamespace(begin_term=lambda _: None)
        self.membership: Membership | None = None


class _Runtime:
    """What the membership in a group needs of a broker's runtime."""

    def __init__(self, live: LiveSettings[BrokerSettings]) -> None:
        self.live = live

    @property
    def settings(self) -> BrokerSettings:
        return self.live.now


async def _nothing() -> None:
    pass
