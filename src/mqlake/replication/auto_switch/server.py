"""The port for slaves of a master under a controller.

Upstream: `AutoSwitchHAService`, `AutoSwitchAcceptSocketService`.
"""

from __future__ import annotations

import asyncio

from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.replication.auto_switch.connection import AutoSwitchConnection
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.auto_switch.in_sync_watch import InSyncWatch
from mqlake.replication.ha_connection import HaConnection
from mqlake.replication.ha_server import HaServer
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import InSyncSet, Store


class AutoSwitchServer(HaServer):
    """Sends the commit log to slaves, and reports which of them may be elected.

    Attributes:
        watch: keeps the in-sync set.
    """

    def __init__(
        self,
        settings: Current[ReplicationSettings],
        store: Store,
        group: Group,
        in_sync_set: InSyncSet,
    ) -> None:
        super().__init__(settings, store)
        self._group = group
        self._slaves: list[AutoSwitchConnection] = []
        self.watch = InSyncWatch(settings, store, group, in_sync_set, self._slaves)

    async def start(self, budget: MemoryBudget | None = None) -> None:
        """Listen for slaves, as `HaServer` does, and keep the in-sync set."""
        await super().start(budget)
        self.watch.start()

    async def stop(self) -> None:
        """Close all connections."""
        await self.watch.stop()
        await super().stop()

    def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> HaConnection:
        return AutoSwitchConnection(
            self._settings,
            self._store,
            reader,
            writer,
            address,
            self._group,
            greeted=self._greeted,
            acknowledged_more=self.watch.look,
            caught_up=self._report_missing,
            admit=self._share_refusal,
            budget=self.budget,
        )

    def _greeted(self, connection: AutoSwitchConnection) -> None:
        """Count a slave; close its older connection, whose end was not noticed."""
        for each in self._slaves:
            if each.broker_id == connection.broker_id:
                each.close("it has connected again")
        self._slaves.append(connection)

    async def _follow(self, connection: HaConnection) -> None:
        try:
            await super()._follow(connection)
        finally:
            if connection in self._slaves:
                self._slaves.remove(connection)  # pyright: ignore[reportArgumentType]
            self.watch.look()
