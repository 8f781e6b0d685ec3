"""Serves the console in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Generator
from typing import Final, Self

import uvicorn

from mqlake.console.app import create_app
from mqlake.console.connection import CONNECTIONS, BoundedConnection
from mqlake.console.options import LOOPBACK, ConsoleOptions
from mqlake.console.state import Console
from mqlake.errors import MqlakeError

_GRACE: Final = 3
"""Seconds that requests have when the console stops."""

_log: Final = logging.getLogger("mqlake.console")


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


class ConsoleServer:
    """A console. `async with` runs it.

    Attributes:
        port: the port; set while it runs.
        url: the address of the first page; set while it runs.
        failed: a future that is done once serving has failed.
    """

    port: int
    url: str
    failed: asyncio.Future[MqlakeError]

    def __init__(self, options: ConsoleOptions) -> None:
        options.check()
        self._options = options

    async def __aenter__(self) -> Self:
        options = self._options
        listening = _listen(options.host, options.port)
        self.port = listening.getsockname()[1]
        scheme = "https" if options.certificate else "http"
        host = f"[{options.host}]" if ":" in options.host else options.host
        self.url = f"{scheme}://{host}:{self.port}/"
        self.failed = asyncio.get_running_loop().create_future()
        self._console = Console(options)
        config = uvicorn.Config(
            create_app(self._console),
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            lifespan="off",
            http=BoundedConnection,
            ws="none",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            h11_max_incomplete_event_size=16 << 10,
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=options.certificate or None,
            ssl_keyfile=options.key or None,
        )
        self._uvicorn = _Uvicorn(config)
        self._serving = asyncio.create_task(self._uvicorn.serve([listening]))
        self._serving.add_done_callback(self._ended)
        if options.login and not options.certificate and options.host not in LOOPBACK:
            _log.warning(
                "console: passwords are sent over HTTP, where others in the network can read them:"
                " add --server-cert and --server-key, or let only a proxy with HTTPS connect"
            )
        _log.info("console at %s, name servers %s", self.url, options.name_servers)
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._uvicorn.should_exit = True
        await asyncio.wait([self._serving])
        await self._console.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._uvicorn.should_exit or self.failed.done() or task.cancelled():
            return
        reason = task.exception() or "it ended"
        self.failed.set_result(MqlakeError(f"console at {self.url}: {reason}"))


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        MqlakeError: the address is used, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(256)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise MqlakeError(
            f"console: cannot listen on {host}:{port}: {error.strerror or error};"
            " choose another --port or --host"
        ) from None
    return listening
