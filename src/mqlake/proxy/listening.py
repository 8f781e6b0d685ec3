"""The service on a port, in any mode."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.server import GrpcServer
from mqlake.metrics.metric import Sample
from mqlake.proxy.service import GrpcService
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.metrics import calls
from mqlake.remoting.tls.options import ServerTls
from mqlake.store.bounds import networks

_GRACE: Final = 3.0
"""Seconds that running calls have when the service stops."""
_LARGEST: Final = 16
"""Requests of the largest size for which there is memory."""


class ListeningService:
    """Serves the clients that connect to a port.

    Args:
        tls: whether clients may, or must, use TLS.
        balancers: addresses whose connections may begin with a header of the PROXY protocol.
    """

    def __init__(self, service: GrpcService, tls: ServerTls | None, balancers: str) -> None:
        self._service = service
        self._server = GrpcServer(
            service.methods,
            grpc_limits(service.state.settings),
            tls=tls,
            proxies=networks(balancers),
            on_finished=service.finished,
        )

    async def start(self, bind: str, port: int) -> int:
        """Listen on a port, 0 for any free one; return it."""
        return await self._server.start(bind, port)

    async def stop(self) -> None:
        """Let running calls end, then all clients."""
        await self._server.stop(_GRACE)
        await self._service.stop()

    def samples(self) -> list[Sample]:
        """Return what was counted, as metrics."""
        return [
            Sample(calls.CONNECTIONS, len(self._server.connections)),
            Sample(calls.CLIENTS, len(self._service.state.clients)),
            *self._service.counts.samples(),
        ]


def grpc_limits(settings: ProxySettings) -> GrpcLimits:
    """Return limits of connections with which every message that is allowed can arrive."""
    usual = GrpcLimits()
    message = max(settings.grpc_max_inbound_message_size, 2 * settings.max_message_size)
    return usual._replace(
        message=message,
        other=settings.grpc_max_inbound_request_size,
        memory=max(usual.memory, _LARGEST * max(message, settings.grpc_max_inbound_request_size)),
        calls=settings.grpc_max_concurrent_calls_per_connection,
        idle=settings.grpc_client_idle_time_mills / 1000,
        share=settings.max_address_share,
    )
