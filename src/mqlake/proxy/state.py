"""What the methods of the service share."""

from __future__ import annotations

from dataclasses import dataclass

from mqlake.grpc.call import Call
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

    def patience(self, call: Call) -> float:
        """Return for how many seconds a call waits for the answer of a broker."""
        remaining, most = call.remaining(), self.settings.request_timeout_millis / 1000
        return most if remaining is None else min(remaining, most)

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return self.clock.milliseconds()
