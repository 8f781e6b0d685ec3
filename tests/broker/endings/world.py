"""A broker in this process that goes through an event in simulated time."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from mqlake.broker.pop.check_points import REVIVE_GROUP
from mqlake.formats import config, fastjson
from mqlake.formats.config import ConsumerOffsets
from mqlake.remoting.client import RemotingClient
from mqlake.store.settings import BrokerRole
from mqlake.testing.advanced_clock import AdvancedClock
from tests.broker.endings.scene import QUEUES, Pace, Scene
from tests.broker.running import Running, running
from tests.broker.slave.pairs import switch

__all__ = ["QUEUES", "World"]

_PACE = Pace(out=60, stay=10, level=5, delay=60, step=60, least=3, most=60)


class World(Scene):
    """One store and the broker on it. `async with World(path) as world:` runs the first one."""

    def __init__(self, path: Path) -> None:
        super().__init__(_PACE)
        self._path, self._number = path, 0
        self._settings: dict[str, object] = {}
        self._stack = AsyncExitStack()
        self.clock = AdvancedClock()

    @property
    def broker(self) -> Running:
        return self._broker

    @property
    def address(self) -> str:
        return self.broker.address

    @property
    def client(self) -> RemotingClient:
        return self.broker.client

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._stack.aclose()

    @property
    def _store(self) -> Path:
        return self._path / str(self._number)

    async def _start(self) -> None:
        self._stack = AsyncExitStack()
        broker = running(self._store, clock=self.clock, **self._settings)
        self._broker = await self._stack.enter_async_context(broker)

    async def stop(self) -> Path:
        """Stop the broker cleanly; return the directory of its store."""
        await self._stack.aclose()
        return self._store

    async def restart(self, **settings: object) -> None:
        await self.stop()
        self._settings |= settings
        await self._start()

    async def demote_and_promote(self) -> None:
        """Make the broker a slave, and then a master again."""
        switch(self.broker, BrokerRole.SLAVE, 1)
        await asyncio.sleep(0)
        switch(self.broker, BrokerRole.ASYNC_MASTER, 0)

    async def restore_older_log(self) -> None:
        """Stop the broker, and start it as on a log that is older than the revive offsets."""
        await self._stack.aclose()
        path = self._store / "config" / ConsumerOffsets.file_name
        table = config.decode(path.read_bytes(), ConsumerOffsets).offset_table
        for key, queues in table.items():
            if key.endswith(f"@{REVIVE_GROUP}"):
                table[key] = dict.fromkeys(queues, 1_000_000)
        path.write_text(fastjson.dumps({"offsetTable": table}))
        await self._start()

    async def kill(self) -> None:
        """Continue as after `kill -9`: on the files as they are now."""
        before = self._store
        self._number += 1
        unfinished = shutil.ignore_patterns("*.tmp")
        await asyncio.to_thread(shutil.copytree, before, self._store, ignore=unfinished)
        await self._stack.aclose()
        await self._start()

    def born_time(self) -> int:
        return 0  # The client's clock is not the broker's.

    async def flush(self) -> None:
        self.broker.state.store.core.durability.sync_log()
        self.broker.state.store.core.tick()

    async def settle(self) -> None:
        """Let the broker do what it does every second, until two of its rounds have passed."""
        self.broker.state.store.core.durability.sync_log()
        services = [each for each in self.broker.runtime.repeating if "PopConsumption" in each.name]
        for _ in range(2):
            self.clock.advance(1)
            await asyncio.sleep(0.05)
            for service in services:
                service.start()

    async def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for _ in range(3):
            await self.settle()
