"""The periodic functions of a broker, on its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from mqlake.store.port import Service


class Repeating:
    """Functions that are called repeatedly until the broker stops."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Service, asyncio.TimerHandle] = {}
        self._is_stopped = False

    def __iter__(self) -> Iterator[Service]:
        """Return the functions as services, for those that report their state."""
        return iter(self._timers)

    def every(self, seconds: float, function: Callable[[], object]) -> None:
        """Call a function at this interval, and less often while it fails.

        Its errors are logged and counted, and do not stop the others.
        """

        def start() -> None:
            function()

        service = Service(round(seconds * 1000), start, function.__qualname__)

        def call() -> None:
            try:
                service.start()
            except Exception as error:  # noqa: BLE001 (one that fails does not end the others)
                service.failed(error)
            else:
                service.worked()
            finally:
                call_later()

        def call_later() -> None:
            if not self._is_stopped:
                self._timers[service] = self._loop.call_later(service.pause / 1000, call)

        call_later()

    def stop(self) -> None:
        """Stop calling them."""
        self._is_stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
