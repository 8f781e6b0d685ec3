"""The service on a port, in any mode."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.server import GrpcServer
from mqlake.metrics.metric import Sample
from mqlake.proxy.service import GrpcService
from mqlake.remoting.metrics import calls
from mqlake.remoting.tls.options import ServerTls
from mqlake.store.bounds import networks

_GRACE: Final = 3.0
"""Seconds that running calls have when the service stops."""


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
            GrpcLimits(share=service.state.settings.max_address_share),
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
