"""Run a server on its own event loop until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import gc
import logging
import resource
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from mqlake.errors import MqlakeError
from mqlake.programs.garbage import quiet_collection
from mqlake.programs.logs import LogFormat, start_logging
from mqlake.programs.supervisor import Supervisor

Server = Callable[[], AbstractAsyncContextManager[object]]


@runtime_checkable
class Failing(Protocol):
    """A server that may fail while it runs."""

    @property
    def failed(self) -> asyncio.Future[MqlakeError]:
        """A future that is done once the server has failed, with the reason."""
        ...


_MMAP_THRESHOLD = -3
"""An option of glibc's `mallopt`: larger blocks are mapped, and unmapped when they are freed."""
_LARGE = 128 * 1024

_STOPS = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger(__name__)


def serve(make: Server, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Enter what `make` returns, on an event loop, and leave it at SIGTERM or SIGINT.

    A server that is `Failing` and fails is left at once, so that what runs the program, such as
    systemd, starts it again. The loop is uvloop's if that is installed. Events are logged to
    stderr. SIGUSR1 writes there what each thread is doing, even if the loop is stuck.

    Raises:
        MqlakeError: the server cannot be started, failed, or does not stop cleanly.
    """
    # Modules that are imported from here on stay. To search them for garbage would take a fifth of
    # the start, and later a tenth of a second each time.
    gc.disable()
    start_logging(log_format)
    with contextlib.suppress(OSError):  # What stands for stderr is not a file.
        faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    _allow_many_connections()
    _give_back_memory()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_until_told(make))
    finally:
        gc.enable()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return a factory of uvloop's loops, None if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _allow_many_connections() -> None:
    """Let this process open as many files as allowed; the JVM does so, too."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # This system does not know the number.
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _give_back_memory() -> None:
    """Return memory of large frames and answers to the system once it is free.

    glibc raises this bound whenever a larger block is freed, up to 32 MiB. Then memory stays with
    the process after a flood of clients, in pieces between blocks that are still needed.
    """
    with contextlib.suppress(OSError, AttributeError):  # This is another C library.
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)


async def _until_told(make: Server) -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def stop(name: str) -> None:
        if not told.done():
            told.set_result(name)

    with _handled(stop), Supervisor() as supervisor:
        async with make() as server:
            supervisor.ready()
            try:
                with quiet_collection():
                    await _told_or_failed(told, server)
            finally:
                supervisor.stopping()
            _log.info("%s: stopping", told.result())
        _log.info("stopped")


@contextlib.contextmanager
def _handled(stop: Callable[[str], None]) -> Generator[None]:
    """Call a function with the names of signals; uvloop would ignore them once it is closed."""
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, stop, number.name)
    try:
        yield
    finally:
        for number in _STOPS:
            loop.remove_signal_handler(number)


async def _told_or_failed(told: asyncio.Future[str], server: object) -> None:
    failed = server.failed if isinstance(server, Failing) else None
    await asyncio.wait([told, failed] if failed else [told], return_when="FIRST_COMPLETED")
    if failed and failed.done():
        _log.critical("stopping: %s", failed.result())
        raise failed.result()
