"""The part of a broker that copies its log: a master's server, or a slave's client."""

from __future__ import annotations

from mqlake.broker.replication.ha_server import HaServer
from mqlake.broker.replication.slave_log import SlaveLog
from mqlake.broker.settings import BrokerSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import Store
from mqlake.store.settings import BrokerRole


class Replication:
    """Copies one broker's commit log, from `start` to `stop`.

    Attributes:
        server: a master's; None for a slave.
        slave: a slave's; None for a master.
    """

    def __init__(self, settings: Current[BrokerSettings], store: Store) -> None:
        is_slave = settings.now.broker_role is BrokerRole.SLAVE
        self.server = None if is_slave else HaServer(settings, store)
        self.slave = SlaveLog(settings, store) if is_slave else None

    @property
    def address(self) -> str:
        """The "host:port" that slaves are told; "" if nobody listens there."""
        return self.server.address if self.server else ""

    async def start(self) -> None:
        """Listen for slaves, or begin to follow the master.

        Raises:
            MqlakeError: the port is taken.
        """
        if self.server is not None:
            await self.server.start()
        if self.slave is not None:
            await self.slave.start()

    async def stop(self) -> None:
        """Close all connections of slaves, or the one to the master."""
        if self.server is not None:
            await self.server.stop()
        if self.slave is not None:
            await self.slave.stop()
