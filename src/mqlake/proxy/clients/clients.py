"""The clients that have sent their settings, until they end (upstream: `GrpcClientSettingsManager`,
`GrpcChannelManager`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from mqlake.grpc.messages import Code, Settings
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import Client, Stream
from mqlake.proxy.errors import StatusError
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.shares import Shares, owner_of

LOOK: Final = 5.0
"""Seconds between two looks for clients that are gone without notice."""

_log: Final = logging.getLogger("mqlake.proxy")


class GrpcClients:
    """The clients of the service, by id.

    Args:
        now: returns milliseconds.
    """

    def __init__(self, settings: ProxySettings, now: Callable[[], int]) -> None:
        self._settings, self._now = settings, now
        self._clients: dict[str, Client] = {}
        self._shares = Shares(lambda: settings.max_address_share)
        self._on_end: list[Callable[[Client], object]] = []

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients.values()))

    def get(self, client_id: str) -> Client | None:
        """Return a client; None if it has not sent its settings, or has ended."""
        return self._clients.get(client_id)

    def known(self, client_id: str) -> Client:
        """Return a client.

        Raises:
            StatusError: UNRECOGNIZED_CLIENT_TYPE, after which clients send their settings again.
        """
        client = self._clients.get(client_id)
        if client is None:
            reason = f"the client {client_id[:255]!r} has sent no settings, or was silent too long"
            raise StatusError(Code.UNRECOGNIZED_CLIENT_TYPE, reason)
        return client

    def on_end(self, callback: Callable[[Client], object]) -> None:
        """Call a function with each client that ends, after it was removed."""
        self._on_end.append(callback)

    def put(self, caller: Caller, settings: Settings, heartbeat: Heartbeat) -> Client:
        """Note the settings of a client.

        Raises:
            StatusError: there are too many clients.
        """
        old = self._clients.get(caller.client_id)
        if old is not None:
            old.update(settings, caller, heartbeat, self._now())
            return old
        owner = owner_of(caller.address)
        refusal = self._shares.refusal(
            owner, len(self._clients), self._settings.max_client_nums, "maxClientNums"
        )
        if refusal is not None:
            raise StatusError(Code.TOO_MANY_REQUESTS, f"the client is refused: {refusal}")
        client = Client(settings, caller, heartbeat, owner, self._now())
        self._clients[caller.client_id] = client
        self._shares.add(owner)
        return client

    def attach(self, client: Client, stream: Stream) -> None:
        """Let commands for a client be sent over a stream, instead of an earlier one."""
        client.use(stream)

    def detach(self, stream: Stream, client_id: str) -> None:
        """Note that a stream has ended."""
        client = self._clients.get(client_id)
        if client is not None and client.stream is stream:
            client.use(None)

    def end(self, client_id: str) -> None:
        """Remove a client."""
        client = self._clients.pop(client_id, None)
        if client is None:
            return
        self._shares.add(client.owner, -1)
        client.use(None)
        for callback in self._on_end:
            try:
                callback(client)
            except Exception:  # noqa: BLE001 (the others are to know, too)
                _log.exception("%s: the end of the client failed", client_id)

    def expire(self) -> None:
        """Remove the clients that were not heard of for too long."""
        oldest = self._now() - self._settings.channel_expired_timeout
        for client in self:
            if client.seen < oldest:
                _log.info("client %s has sent no heartbeat for too long", client.client_id)
                self.end(client.client_id)
