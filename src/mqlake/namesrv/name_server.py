"""A name server on one event loop (upstream: `NamesrvController`)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Final, Self

from mqlake.auth.requests.acls import AclRequests
from mqlake.auth.requests.changes import AccountChanges
from mqlake.auth.requests.users import UserRequests
from mqlake.namesrv.access import open_access
from mqlake.namesrv.acting import SmallestIdChange
from mqlake.namesrv.notices import SmallestIdNotices
from mqlake.namesrv.requests.brokers import BrokerRequests
from mqlake.namesrv.requests.configuration import ConfigurationRequests
from mqlake.namesrv.requests.topics import TopicRequests
from mqlake.namesrv.settings import NamesrvSettings, make_namesrv_settings
from mqlake.namesrv.state import NameServerState
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import Latencies
from mqlake.remoting.limits import Limits
from mqlake.remoting.server import RemotingServer, RemotingService
from mqlake.remoting.slices import Job
from mqlake.storage.clock import Clock, SystemClock
from mqlake.store.bounds import networks
from mqlake.tls.settings import client_tls, server_tls

_log: Final = logging.getLogger("mqlake.namesrv")

_MEMORY: Final = 64 * 1024 * 1024
"""Maximum bytes that are held for all connections: a broker in the same process has its own
budget.
"""


class NameServer(RemotingService):
    """Tells clients the routes of topics, as brokers register them.

    `async with NameServer(settings) as names:` runs it.

    Args:
        settings: settings, a mapping with upstream's names, or the path of a file with them.
        clock: the clock for the times of registrations and heartbeats.

    Raises:
        StoreError: a setting has an invalid value; with `authenticationEnabled`, also if the file
            with the users cannot be read or written.

    Attributes:
        port: the port that it listens on; set once it has started.
        routes: the handlers by request code.
    """

    port: int

    def __init__(
        self,
        settings: NamesrvSettings | Mapping[str, object] | str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._state = state = NameServerState(
            make_namesrv_settings(settings), clock or SystemClock()
        )
        # Without authorization, anybody may register an address, and would be sent a signature that
        # serves other requests, too.
        is_guarded = state.settings.authorization_enabled
        self._notices = SmallestIdNotices(
            client_tls(state.settings), state.settings.inner_credentials if is_guarded else None
        )
        state.routes.on_smallest_id = self._notify
        self._changes = changes = AccountChanges(access := open_access(state.settings))
        families = (
            BrokerRequests(state),
            TopicRequests(state),
            ConfigurationRequests(state),
            UserRequests(state, changes),
            AclRequests(state, changes),
        )
        routes = (route for family in families for route in family.routes())
        self.routes = tuple(access.routes(routes))
        idle = state.settings.server_channel_max_idle_time_seconds
        limits = Limits(idle=idle, memory=_MEMORY)
        tls = server_tls(state.settings)
        slow, exporter = state.settings.slow_request_millis, state.settings.metrics_exporter_type
        proxies = networks(state.settings.proxy_protocol_addresses)
        self._server = RemotingServer(
            self.routes,
            limits,
            access.checks,
            tls,
            Latencies(slow) if slow or exporter != "DISABLE" else None,
            proxies=proxies,
        )
        self._scan: asyncio.TimerHandle | None = None

    @property
    def settings(self) -> NamesrvSettings:
        """The current settings."""
        return self._state.settings

    @property
    def state(self) -> NameServerState:
        """What its request families share."""
        return self._state

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    async def start(self) -> int:
        """Listen on `bindAddress` and `listenPort` (0: any free port); return the port.

        Raises:
            MqlakeError: the server cannot listen on the address, or the KV file cannot be read.
        """
        self._state.kv.load()
        self._state.start()
        settings = self.settings
        self.port = await self._server.start(settings.bind_address, settings.listen_port)
        self._scan_later()
        _log.info("name server listens on %s:%d", settings.bind_address, self.port)
        return self.port

    async def stop(self) -> None:
        """Close all connections."""
        if self._scan is not None:
            self._scan.cancel()
        # The connections of all brokers are closed now, which means nothing.
        self._state.routes.on_smallest_id = lambda _name, _change: None
        await self._server.stop()
        await self._changes.stop()
        self._state.slices.stop()
        await self._notices.stop()

    def _notify(self, name: str, change: SmallestIdChange) -> None:
        if self.settings.notify_min_broker_id_changed:
            self._notices.notify(name, change)

    def _scan_later(self) -> None:
        seconds = max(self.settings.scan_not_active_broker_interval, 10) / 1000
        self._scan = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._scan_later()
        self._state.slices.start(self._expire_brokers())

    def _expire_brokers(self) -> Job[None]:
        for broker in (yield from self._state.routes.expire(self._state.clock.milliseconds())):
            if isinstance(broker.connection, Peer):
                broker.connection.close()
            yield
