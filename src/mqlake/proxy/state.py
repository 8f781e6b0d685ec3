"""What the methods of the service share."""

from __future__ import annotations

from dataclasses import dataclass

from mqlake.proxy.background import Background
from mqlake.proxy.brokers.port import BrokerPort
from mqlake.proxy.clients.clients import GrpcClients
from mqlake.proxy.settings import ProxySettings
from mqlake.storage.clock import Clock


@dataclass(frozen=True, slots=True)
class ProxyState:
    """What the methods of the service share.

    Attributes:
        settings: limits and defaults.
        brokers: those that are asked.
        clients: the clients that have sent their settings.
        clock: tells the time, which may be simulated.
        background: work that no call waits for.
    """

    settings: ProxySettings
    brokers: BrokerPort
    clients: GrpcClients
    clock: Clock
    background: Background

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return self.clock.milliseconds()
