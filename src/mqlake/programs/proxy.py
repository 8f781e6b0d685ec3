"""A proxy as a program: RocketMQ 5's clients before the brokers of a cluster.

Upstream: `ProxyStartup`, in cluster mode.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple, Self

from mqlake.client.access import ClientAccess
from mqlake.errors import MqlakeError
from mqlake.metrics.exporting.options import ServedPages
from mqlake.metrics.metric import Sample
from mqlake.metrics.observed import labels_of
from mqlake.metrics.publishing import publish
from mqlake.proxy.brokers.cluster import CallerChecks, ClusterBrokers
from mqlake.proxy.listening import ListeningService
from mqlake.proxy.service import GrpcService
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.tls.options import ServerTls
from mqlake.storage.clock import SystemClock

_log: Final = logging.getLogger("mqlake.proxy")


class ProxyOptions(NamedTuple):
    """How a proxy is run.

    Attributes:
        name_servers: "host:port", several separated by `;`.
        port: the port to listen on, 0 for any free one.
        bind: the address to listen on.
        access: how name servers and brokers are reached.
        tls: whether clients may, or must, use TLS.
        balancers: addresses whose connections may begin with a header of the PROXY protocol.
        metrics: where metrics are served; None for nowhere.
        slow: milliseconds from which a call is logged as slow; 0 for never.
    """

    name_servers: str
    port: int = 8081
    bind: str = "127.0.0.1"
    access: ClientAccess | None = None
    tls: ServerTls | None = None
    balancers: str = ""
    metrics: tuple[str, int] | None = None
    slow: int = 0


class ProxyProgram:
    """A proxy. `async with` runs it.

    Args:
        settings: limits and defaults of the service.

    Attributes:
        port: the port; set while the program runs.
    """

    port: int

    def __init__(self, options: ProxyOptions, settings: ProxySettings) -> None:
        self._options, self._settings = options, settings
        self._service: ListeningService | None = None
        name = f"{socket.gethostname()}:{options.port}"
        self.labels: Mapping[str, str] = labels_of("proxy", name, "")

    async def __aenter__(self) -> Self:
        options, settings = self._options, self._settings
        async with AsyncExitStack() as undo:
            if options.metrics is not None:
                await publish(ServedPages(*options.metrics), self, undo)
            checked, share = _checked(options, settings), settings.max_address_share
            brokers = ClusterBrokers(options.name_servers, options.access, checked, share)
            await undo.enter_async_context(brokers)
            served = GrpcService(brokers, settings, SystemClock(), options.slow)
            service = ListeningService(served, options.tls, options.balancers)
            undo.push_async_callback(service.stop)
            self.port = await service.start(options.bind, options.port)
            self._service = service
            undo.callback(self._forget)
            self._undo = undo.pop_all()
        _log.info(
            "gRPC clients are served on %s:%d, name servers %s",
            options.bind,
            self.port,
            options.name_servers,
        )
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._undo.aclose()

    def _forget(self) -> None:
        self._service = None

    def not_ready(self) -> str | None:
        """Return why clients are not served now; None if they are."""
        return None if self._service is not None else "the proxy starts or stops"

    async def samples(self) -> Sequence[Sample]:
        """Return all samples; none while it starts."""
        return [] if self._service is None else self._service.samples()


def _checked(options: ProxyOptions, settings: ProxySettings) -> CallerChecks:
    """Return what is checked of callers.

    Raises:
        MqlakeError: the settings contradict each other, or the proxy cannot ask for users.
    """
    if not settings.authentication_enabled:
        if settings.authorization_enabled:
            raise MqlakeError(
                "setting authorizationEnabled: nobody would be known: set authenticationEnabled too"
            )
        return CallerChecks.NOTHING
    if options.access is None or options.access.credentials is None:
        raise MqlakeError(
            "setting authenticationEnabled: the proxy asks brokers for users as their inner user:"
            " set MQLAKE_ACCESS_KEY and MQLAKE_SECRET_KEY"
        )
    return CallerChecks.PERMISSIONS if settings.authorization_enabled else CallerChecks.USERS
