"""The periodic functions of a broker, on its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from mqlake.remoting.slices import Job, Slices, run_at_once
from mqlake.store.port import Service


class Repeating:
    """Functions that are called repeatedly until the broker stops."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Service, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
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
                self._later(service, call)

        self._later(service, call)

    def every_job(self, seconds: float, job: Callable[[], Job[object]]) -> None:
        """Run a job at this interval, a slice at a time; it never runs twice at the same time.

        Errors are treated as those of functions. Its service's `start` runs all of it at once.
        """
        service = Service(
            round(seconds * 1000), lambda: run_at_once(_ignored(job())), job.__qualname__
        )

        async def run() -> None:
            try:
                await self._slices.finish(job())
            except Exception as error:  # noqa: BLE001 (one that fails does not end the others)
                service.failed(error)
            else:
                service.worked()
            finally:
                self._later(service, call)

        def call() -> None:
            task = self._loop.create_task(run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._later(service, call)

    def _later(self, service: Service, call: Callable[[], None]) -> None:
        if not self._is_stopped:
            self._timers[service] = self._loop.call_later(service.pause / 1000, call)

    def stop(self) -> None:
        """Stop calling them."""
        self._is_stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


def _ignored(job: Job[object]) -> Job[None]:
    yield from job
