"""A master's port for slaves.

Upstream: `DefaultHAService`, `AcceptSocketService`.
"""

from __future__ import annotations

import asyncio
import logging
from ipaddress import ip_address

from mqlake.errors import MqlakeError
from mqlake.remoting.listening import stop_listening
from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.remoting.shares import Use, owner_of
from mqlake.remoting.tls.options import ServerTls, TlsMode
from mqlake.remoting.tls.server import ServerContexts
from mqlake.replication.ha_arrivals import HaArrivals, address_of
from mqlake.replication.ha_connection import HaConnection
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.bounds import LAST_PORT, networks
from mqlake.store.live_settings import Current
from mqlake.store.port import Store
from mqlake.store.settings import BrokerRole
from mqlake.tls.settings import server_tls

_MOST = 256
"""Maximum number of connections."""
_LOOK = 0.01
"""Seconds between checks whether slaves have everything."""

_log = logging.getLogger(__name__)


class HaServer:
    """Sends the commit log to slaves, to each from the offset that it requests.

    Attributes:
        connections: of the connected slaves.
        address: the "host:port" that slaves are given; "" while nobody listens.
        budget: of the memory for all connections of the broker; None: no maximum.
    """

    def __init__(self, settings: Current[ReplicationSettings], store: Store) -> None:
        self._settings, self._store = settings, store
        self._loop = asyncio.get_running_loop()
        self.connections: list[HaConnection] = []
        self.address = ""
        self.budget: MemoryBudget | None = None
        self._server: asyncio.Server | None = None
        self._is_bound = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._allowed = networks(settings.now.ha_allowed_addresses)
        tls = server_tls(settings.now) if settings.now.ha_tls_enable else ServerTls()
        self._tls = ServerContexts(tls)
        patience = settings.now.ha_housekeeping_interval / 1000
        self._arrivals = HaArrivals(self._tls, patience, self._refusal, self._connected, _refused)
        self._was_missing: str | None = None
        store.copies.serve()

    @property
    def in_sync(self) -> int:
        """How many slaves are in sync."""
        return self._store.copies.in_sync

    @property
    def connected(self) -> int:
        """How many connections there are, also those over which nothing has come yet."""
        return len(self.connections) + len(self._arrivals.waiting)

    @property
    def accepts_tls(self) -> bool:
        """Whether slaves may use TLS."""
        return bool(self.address) and self._tls.mode is not TlsMode.DISABLED

    async def bind(self, settings: ReplicationSettings) -> None:
        """Take the port for slaves, which `start` then serves.

        Args:
            settings: those of the master that this broker is, or is about to be.

        Raises:
            MqlakeError: the configured port is in use; or the port after `listenPort` is, and the
                role is SYNC_MASTER.
        """
        wanted = settings.ha_listen_port
        port = wanted or min(settings.listen_port + 1, LAST_PORT)
        self._is_bound = True
        try:
            self._server = await self._loop.create_server(
                self._arrivals.accept, settings.listen_address, port, start_serving=False
            )
        except OSError as error:
            reason = f"port {port} for slaves: {error.strerror or error}; set haListenPort"
            if wanted or settings.broker_role is BrokerRole.SYNC_MASTER:
                raise MqlakeError(reason) from error
            _log.warning("%s: no slave can follow this broker", reason)

    async def start(self, budget: MemoryBudget | None = None) -> None:
        """Listen for slaves, at the port that `bind` has taken or takes now.

        Args:
            budget: of the memory for all connections of the broker; None: no maximum.

        Raises:
            MqlakeError: as for `bind`.
        """
        self.budget, settings = budget, self._settings.now
        if not self._is_bound:
            await self.bind(settings)
        if self._server is None:
            return
        port = settings.ha_listen_port or min(settings.listen_port + 1, LAST_PORT)
        await self._tls.start()
        try:
            await self._server.start_serving()
        except OSError as error:
            raise MqlakeError(f"port {port} for slaves: {error.strerror or error}") from error
        host = settings.broker_ip2 or settings.broker_ip1
        self.address = f"{f'[{host}]' if ':' in host else host}:{port}"
        self._store.copying.growth.listen(self._grown)
        if self._store.copies.are_counted and settings.in_sync_replicas == 1:
            _log.warning("brokerRole is SYNC_MASTER, inSyncReplicas 1: sends wait for no slave")
        self._report_missing()

    async def stop(self) -> None:
        """Close all connections."""
        self.address = ""
        self._store.copying.growth.stop()
        if self._server is not None:
            await stop_listening([self._server])
        self._arrivals.close_all()
        await self._tls.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def drain(self, seconds: float) -> None:
        """Return once all slaves in sync have the whole log, or after this many seconds."""
        deadline = self._loop.time() + seconds
        while self._loop.time() < deadline:
            if not any(each.is_in_sync and each.lacks for each in self.connections):
                return
            await asyncio.sleep(_LOOK)

    def _grown(self) -> None:
        for connection in self.connections:
            connection.wake()

    def _report_missing(self) -> None:
        """Log when a SYNC_MASTER begins to lack slaves, and when it has enough again."""
        missing, role = self._store.copies.missing, self._settings.now.broker_role
        if role is not BrokerRole.SYNC_MASTER or missing == self._was_missing:
            return
        if missing is not None:
            _log.warning("%s: sends are answered SLAVE_NOT_AVAILABLE until then", missing)
        else:
            _log.info("enough slaves are in sync")
        self._was_missing = missing

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step closes nothing by itself.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = address_of(writer.transport)
        try:
            await self._follow(self._connection(reader, writer, address))
        except asyncio.CancelledError:
            pass  # The server stops: the streams would log this.
        except Exception as error:  # noqa: BLE001 (the others go on)
            _log.error("slave %s: its connection failed", address, exc_info=error)

    def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> HaConnection:
        return HaConnection(
            self._settings,
            self._store,
            reader,
            writer,
            address,
            caught_up=self._report_missing,
            admit=self._share_refusal,
            budget=self.budget,
        )

    async def _follow(self, connection: HaConnection) -> None:
        self.connections.append(connection)
        _log.info("slave %s: connected", connection.address)
        try:
            reason = await connection.run()
        finally:
            if connection in self.connections:
                self.connections.remove(connection)
            self._report_missing()
        _log.info("slave %s: disconnected: %s", connection.address, reason)

    def _refusal(self, transport: asyncio.Transport) -> str | None:
        if not self.address:
            return "the port is being closed"
        if self.connected >= _MOST and not self._make_room():
            return f"{_MOST} slaves are connected"
        if not self._allowed:
            return None
        if (peer := transport.get_extra_info("peername")) is None:
            return "it is gone"
        address = ip_address(peer[0].partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        address = mapped or address
        if any(address in network for network in self._allowed):
            return None
        return "its address is not in haAllowedAddresses"

    def _make_room(self) -> bool:
        """Close the oldest connection without a report; return whether there was one.

        A slave reports as soon as it has connected, so whoever only connects takes no place.
        """
        reason = "it has not reported, and makes room for another connection"
        if self._arrivals.close_oldest(reason):
            return True
        silent = next((each for each in self.connections if not each.has_begun), None)
        if silent is None:
            return False
        silent.close(reason)
        self.connections.remove(silent)
        return True

    def _share_refusal(self, connection: HaConnection) -> str | None:
        """Return why a connection that reports is one too many of its address; None if not."""
        owner = owner_of(connection.address)
        others = [owner_of(each.address) for each in self.connections if each.has_begun]
        use, percent = Use(len(others), _MOST, "slaves"), self._settings.now.max_address_share
        return use.refusal(owner, others.count(owner), percent)


def _refused(address: str, reason: str) -> None:
    _log.warning("slave %s: refused: %s", address, reason)
