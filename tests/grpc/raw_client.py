"""A client that sends any frames, also those that no client should send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from google.protobuf.message import Message

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import ErrorCode
from mqlake.grpc.http2.headers import HeaderDecoder, literal
from mqlake.grpc.method import SERVICE
from mqlake.grpc.responses import prefixed

CALL = {
    ":method": "POST",
    ":scheme": "http",
    ":path": f"/{SERVICE}/SendMessage",
    ":authority": "test:1",
    "te": "trailers",
    "content-type": "application/grpc",
}
"""The headers of a call."""


class Frame(NamedTuple):
    """A frame of the server."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def block(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return fields as a block of headers."""
    return b"".join(literal(name, value) for name, value in fields)


def call_of(method: str, **others: str) -> bytes:
    """Return the headers of a call as a block. In names, `_` stands for `-`."""
    extra = {name.replace("_", "-"): value for name, value in others.items()}
    return block({**CALL, ":path": f"/{SERVICE}/{method}", **extra}.items())


def headers(stream: int, payload: bytes, *, is_last: bool = False) -> bytes:
    """Return a HEADERS frame."""
    flags = frames.END_HEADERS | (frames.END_STREAM if is_last else 0)
    return frames.frame(frames.HEADERS, flags, stream, payload)


def data(stream: int, payload: bytes, *, is_last: bool = True) -> bytes:
    """Return a DATA frame."""
    return frames.frame(frames.DATA, frames.END_STREAM if is_last else 0, stream, payload)


def call(stream: int, method: str, request: Message) -> bytes:
    """Return all frames of a call with one request."""
    return headers(stream, call_of(method)) + data(stream, prefixed(request.SerializeToString()))


class RawClient:
    """A connection to a server.

    Attributes:
        ended: whether the server has closed the connection.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._decoder = HeaderDecoder(1 << 20)
        self.address = "{}:{}".format(*writer.get_extra_info("sockname")[:2])

    async def send(self, *data: bytes) -> None:
        """Send bytes; nothing if the server has closed the connection."""
        with suppress(ConnectionError):
            self._writer.write(b"".join(data))
            await self._writer.drain()

    async def frame(self) -> Frame | None:
        """Return the next frame; None if the server has closed the connection."""
        try:
            head = await self._reader.readexactly(frames.HEAD.size)
            start, flags, stream = frames.HEAD.unpack(head)
            payload = await self._reader.readexactly(start >> 8)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return Frame(start & 0xFF, flags, stream, payload)

    async def next(self, *kinds: int) -> Frame:
        """Return the next frame of some types."""
        while True:
            found = await self.frame()
            if found is None:
                raise ConnectionError("the server has closed the connection")
            if found.kind in kinds:
                return found

    async def status(self) -> tuple[str, str]:
        """Return the status and the text that end the next call."""
        while True:
            found = await self.next(frames.HEADERS)
            fields = self._decoder.decode(found.payload)
            assert fields is not None
            if found.flags & frames.END_STREAM:
                return fields.get("grpc-status", ""), fields.get("grpc-message", "")

    async def farewell(self) -> tuple[ErrorCode, str]:
        """Return why the server goes away, once it has closed the connection."""
        found = await self.next(frames.GOAWAY)
        assert await self.frame() is None
        code = ErrorCode(int.from_bytes(found.payload[4:8]))
        return code, found.payload[8:].decode()

    def pause(self) -> None:
        """Read nothing more from the socket."""
        self._writer.transport.pause_reading()

    def abort(self) -> None:
        """Close the connection without a word."""
        self._writer.transport.abort()


@asynccontextmanager
async def raw_client(
    port: int, *, before: bytes = b"", settings: dict[int, int] | None = None
) -> AsyncIterator[RawClient]:
    """Connect to a server.

    Args:
        before: what is sent before the preface.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = RawClient(reader, writer)
    await client.send(before, frames.PREFACE, frames.settings(settings or {}))
    try:
        yield client
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
