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
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.server import GrpcServer
from mqlake.metrics.exporting.options import ServedPages
from mqlake.metrics.metric import Sample
from mqlake.metrics.observed import labels_of
from mqlake.metrics.publishing import publish
from mqlake.proxy.brokers.cluster import ClusterBrokers
from mqlake.proxy.service import GrpcService
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.tls.options import ServerTls
from mqlake.storage.clock import SystemClock
from mqlake.store.bounds import networks

_GRACE: Final = 3.0
"""Seconds that running calls have when the proxy stops."""

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
        self._service: GrpcService | None = None
        name = f"{socket.gethostname()}:{options.port}"
        self.labels: Mapping[str, str] = labels_of("proxy", name, "")

    async def __aenter__(self) -> Self:
        options, settings = self._options, self._settings
        async with AsyncExitStack() as undo:
            if options.metrics is not None:
                await publish(ServedPages(*options.metrics), self, undo)
            brokers = ClusterBrokers(options.name_servers, options.access)
            await undo.enter_async_context(brokers)
            service = GrpcService(brokers, settings, SystemClock(), options.slow)
            undo.push_async_callback(service.stop)
            server = GrpcServer(
                service.methods,
                GrpcLimits(share=settings.max_address_share),
                tls=options.tls,
                proxies=networks(options.balancers),
                on_finished=service.finished,
            )
            undo.push_async_callback(server.stop, _GRACE)
            self.port = await server.start(options.bind, options.port)
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
        return [] if self._service is None else self._service.counts.samples()
