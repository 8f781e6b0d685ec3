"""The context of a server, which follows its files."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.remoting.tls.contexts import server_context
from mqlake.remoting.tls.options import ServerTls, TlsMode
from mqlake.remoting.tls.watched import WatchedContext

_log: Final = logging.getLogger("mqlake.remoting")

CHECK: Final = 1.0
"""Seconds between checks whether the files have changed."""


class ServerContexts:
    """Creates the context of a server when it is first needed, and again when its files change.

    Attributes:
        mode: which connections are accepted.
    """

    def __init__(self, options: ServerTls) -> None:
        self.mode = options.mode
        self._is_needed = options.mode is TlsMode.ENFORCING or bool(options.cert or options.key)
        self._watched = WatchedContext(options, lambda: server_context(options))
        self._loading: asyncio.Future[ssl.SSLContext] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the files. Without files, a self-signed certificate is created only if all need it.

        Raises:
            MqlakeError: a file cannot be used.
        """
        if self.mode is TlsMode.DISABLED or self._watching is not None:
            return
        if self._is_needed:
            await asyncio.to_thread(self._watched.load)
        if self._watched.has_files:
            self._watching = asyncio.create_task(self._watch())

    async def get(self) -> ssl.SSLContext:
        """Return the context for a new connection.

        Raises:
            MqlakeError: it cannot be created.
        """
        if self._watched.now is not None:
            return self._watched.now
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._watched.load))
        try:
            return await asyncio.shield(self._loading)
        except MqlakeError:
            self._loading = None
            raise

    async def stop(self) -> None:
        """Watch the files no longer."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
            self._watching = None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(CHECK)
            try:
                await asyncio.to_thread(self._watched.refresh)
            except Exception as error:  # noqa: BLE001 (a later change must still be noticed)
                _log.error("TLS: the files could not be checked for changes", exc_info=error)
