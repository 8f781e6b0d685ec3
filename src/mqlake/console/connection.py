"""Connections of browsers: none may stay without a request, and an address has a share of all."""

from __future__ import annotations

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

CONNECTIONS: Final = 500
SHARE: Final = 100
"""Connections of one address."""
IDLE_SECONDS: Final = 10.0
"""How long a connection may be without a complete request."""
_REQUEST_SECONDS: Final = 180.0
"""How long a request and the reading of its response may take."""
_LOOKS: Final = 4


class BoundedConnection(H11Protocol):
    """A connection that ends if nothing happens on it."""

    _request: RequestResponseCycle | None = None
    _is_waiting = True
    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless its address has too many."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        same = sum(
            1
            for each in self.connections
            if isinstance(each, H11Protocol) and each.client and each.client[0] == host
        )
        if same > SHARE:
            transport.abort()
            return
        self._since = self.loop.time()
        self._timer = self.loop.call_later(IDLE_SECONDS / _LOOKS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """End the connection if it has been in the same state for too long."""
        request = cast("RequestResponseCycle | None", self.cycle)
        is_waiting = request is None or request.response_complete
        if request is not self._request or is_waiting != self._is_waiting:
            self._request, self._is_waiting, self._since = request, is_waiting, self.loop.time()
        longest = IDLE_SECONDS if is_waiting else _REQUEST_SECONDS
        if self.loop.time() - self._since >= longest:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(IDLE_SECONDS / _LOOKS, self._look)
