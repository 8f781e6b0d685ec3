"""What the request families of a name server share."""

from __future__ import annotations

from mqlake.namesrv.kv_config import KvConfig
from mqlake.namesrv.routes import RouteTable
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.remoting.slices import Slices
from mqlake.storage.clock import Clock


class NameServerState:
    """Settings, routes and KV configuration of one name server.

    Attributes:
        slices: runs long work, a slice at a time; set once it has started.
    """

    slices: Slices

    def __init__(self, settings: NamesrvSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.routes = RouteTable()
        self.kv = KvConfig(settings.kv_config_path)
        self.started = clock.milliseconds()

    def start(self) -> None:
        """Start to serve on the running event loop."""
        self.slices = Slices(
            lambda: (self.settings.long_request_queue_capacity, "longRequestQueueCapacity"),
            lambda: self.settings.max_address_share,
        )
