"""An HTTP endpoint for a few pages that are made when they are asked for.

It serves GET and HEAD requests of monitoring systems and orchestrators, each over a connection of
its own, on the program's event loop: whoever gets no answer knows that the loop does not run.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

from mqlake.errors import MqlakeError

MOST_CONNECTIONS: Final = 64
"""Connections that are served at the same time; others are closed."""
MOST_OF_ADDRESS: Final = 8
"""Connections of one address that are served at the same time: none keeps the others out."""
LONGEST_REQUEST: Final = 8192
"""Maximum size of a request's head, in bytes."""
PATIENCE: Final = 10.0
"""Seconds within which a client must have sent its request, and then have read the answer."""

_END = b"\r\n\r\n"
_log = logging.getLogger(__name__)


class HttpResponse(NamedTuple):
    """An answer."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


Make = Callable[[], Awaitable[HttpResponse]]


class Endpoint:
    """Serves pages on one port.

    Args:
        pages: makes each page, by its path.
    """

    def __init__(self, pages: Mapping[str, Make]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._of_address = Counter[str]()

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port, which is another one if `port` is 0.

        Raises:
            MqlakeError: the address cannot be listened on.
        """
        try:
            server = await asyncio.start_server(self._serve, host, port, limit=LONGEST_REQUEST)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise MqlakeError(f"cannot listen on {host}:{port} for metrics: {reason}") from None
        self._server = server
        return int(server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._server is None:
            return
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = str((writer.get_extra_info("peername") or ("",))[0])
        if len(self._open) >= MOST_CONNECTIONS or self._of_address[address] >= MOST_OF_ADDRESS:
            writer.transport.abort()
            return
        self._open.add(writer)
        self._of_address[address] += 1
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(_END)
            answer = await self._answer(head)
            async with asyncio.timeout(PATIENCE):
                writer.write(answer)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # The client is gone, too slow, or does not speak HTTP.
        finally:
            self._open.discard(writer)
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]
            with suppress(OSError):
                writer.transport.abort()

    async def _answer(self, head: bytes) -> bytes:
        """Return the whole answer to a request's head."""
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return _encode(HttpResponse(b"only GET is served\n", HTTPStatus.METHOD_NOT_ALLOWED))
        make = self._pages.get(path)
        if make is None:
            known = " ".join(self._pages)
            return _encode(
                HttpResponse(f"no such page; there are {known}\n".encode(), HTTPStatus.NOT_FOUND)
            )
        try:
            page = await make()
        except Exception as error:  # noqa: BLE001 (whatever it is, the program goes on)
            _log.error("%s failed", path, exc_info=error)
            page = HttpResponse(f"{type(error).__name__}: see the log\n".encode(), _FAILED)
        return _encode(page, with_body=method == b"GET")


_FAILED = HTTPStatus.INTERNAL_SERVER_ERROR


def _encode(page: HttpResponse, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (page.body if with_body else b"")
