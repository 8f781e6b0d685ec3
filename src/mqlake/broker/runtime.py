"""What a running broker works by: its settings, slices of long work, periodic functions, hooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mqlake.broker.repeating import Repeating
from mqlake.broker.settings import BrokerSettings
from mqlake.remoting.slices import Slices
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.live_settings import LiveSettings


class BrokerRuntime:
    """How one broker runs, from its start to its stop. It is created on the broker's event loop.

    Attributes:
        live: the settings, for those that subscribe to changes.
        settings: the current settings. Read them here each time: a change replaces them.
        settings_file: the file to which changed settings are written.
        slices: runs long work, a slice at a time.
        repeating: the periodic functions.
        on_start: called, and awaited, once the broker listens.
        on_stop: called, and awaited, when the broker stops, before its connections are closed.
    """

    def __init__(self, live: LiveSettings[BrokerSettings], settings_file: PropertiesFile) -> None:
        self.live, self.settings_file = live, settings_file
        self.slices = Slices(
            lambda: (self.settings.long_request_queue_capacity, "longRequestQueueCapacity"),
            lambda: self.settings.max_address_share,
        )
        self.repeating = Repeating(self.slices)
        self.on_start: list[Callable[[], Awaitable[object]]] = []
        self.on_stop: list[Callable[[], Awaitable[object] | None]] = []

    @property
    def settings(self) -> BrokerSettings:
        """Return the current settings."""
        return self.live.now
