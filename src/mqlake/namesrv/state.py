"""What the request families of a name server share."""

from __future__ import annotations

from mqlake.namesrv.kv_config import KvConfig
from mqlake.namesrv.routes import Routes
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.storage.clock import Clock


class State:
    """Settings, routes and KV configuration of one name server."""

    def __init__(self, settings: NamesrvSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.routes = Routes()
        self.kv = KvConfig(settings.kv_config_path)
        self.started = clock.milliseconds()
