"""The part of a broker that copies its log: a master's server, or a slave's client."""

from __future__ import annotations

import logging

from mqlake.broker.replicas import Replicas
from mqlake.broker.replication.ha_server import HaServer
from mqlake.broker.replication.slave_log import SlaveLog
from mqlake.broker.settings import BrokerSettings
from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.bodies.ha import HaClientInfo, HaConnectionInfo, HaRuntimeInfo
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import Store

_STOP, _DEMOTION = 1.0, 5.0
"""Seconds that a stop, or a demotion, waits at most until slaves have everything."""

_log = logging.getLogger(__name__)


class Replication:
    """Copies one broker's commit log, from `start` to `stop`.

    Args:
        replicas: tells a slave where its master is.

    Attributes:
        server: a master's; None for a slave.
        slave: a slave's; None for a master.
    """

    def __init__(
        self, settings: LiveSettings[BrokerSettings], store: Store, replicas: Replicas
    ) -> None:
        self._settings, self._store, self._replicas = settings, store, replicas
        self._make()
        replicas.transfer = self
        replicas.on_change.append(self._found_master)

    def _make(self) -> None:
        is_slave = self._settings.now.is_slave
        self.server = None if is_slave else HaServer(self._settings, self._store)
        self.slave = SlaveLog(self._settings, self._store) if is_slave else None

    @property
    def listens_at(self) -> str:
        """Where slaves connect: "host:port"; "" if nobody listens there."""
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
            await self.server.drain(_STOP)
            await self.server.stop()
        if self.slave is not None:
            await self.slave.stop()

    async def switch(self, settings: BrokerSettings) -> None:
        """Promote or demote this broker: let settings with another role hold.

        Raises:
            StoreError: it cannot take the role; it has the old one.
        """
        was_slave, old = self._settings.now.is_slave, self._settings.now
        if was_slave == settings.is_slave:
            self._settings.switch(settings)
            return
        try:
            await (self._promote(settings) if was_slave else self._demote(settings))
        except MqlakeError as error:
            await self.stop()
            self._settings.switch(old)
            self._make()
            await self.start()
            raise StoreError(f"the role stays {old.broker_role.value}: {error}") from error
        self._found_master()
        _log.info("the role is %s now, was %s", settings.broker_role.value, old.broker_role.value)

    async def _promote(self, settings: BrokerSettings) -> None:
        assert self.slave is not None
        await self.slave.stop()
        self._store.copying.lead()
        self._settings.switch(settings)
        self._make()
        await self.start()

    async def _demote(self, settings: BrokerSettings) -> None:
        assert self.server is not None
        self._store.copying.follow()
        # Nothing is put from here on: who is promoted then lacks nothing.
        self._settings.switch(settings)
        await self.server.drain(_DEMOTION)
        await self.server.stop()
        self._make()
        await self.start()

    def _found_master(self) -> None:
        if self.slave is not None:
            self.slave.master_address = self._replicas.master_address or None
            self.slave.master_ha_address = self._replicas.master_ha_address or None

    def status(self) -> HaRuntimeInfo:
        """Return how far the log is at the others."""
        if (slave := self.slave) is not None:
            client = HaClientInfo(
                master_addr=slave.master_ha_address or "",
                transferred_byte_in_second=slave.transferred_in_second,
                max_offset=slave.max_offset,
                last_read_timestamp=slave.last_read,
                last_write_timestamp=slave.last_write,
                master_flush_offset=slave.master_flush_offset,
                problem=slave.problem or "",
            )
            return HaRuntimeInfo(master=False, ha_client_runtime_info=client)
        connections = self.server.connections if self.server else []
        return HaRuntimeInfo(
            master=True,
            master_commit_log_max_offset=self._store.watermarks.end,
            in_sync_slave_nums=sum(each.is_in_sync for each in connections),
            ha_connection_info=[
                HaConnectionInfo(
                    addr=each.address,
                    slave_ack_offset=each.acknowledged,
                    diff=each.lacks,
                    in_sync=each.is_in_sync,
                    transferred_byte_in_second=each.transferred_in_second,
                    transfer_from_where=each.transferred_from,
                )
                for each in connections
            ],
        )
