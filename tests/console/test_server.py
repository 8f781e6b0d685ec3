"""The server: its address, and connections that nobody uses."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

import httpx
import pytest

from mqlake.console import connection
from mqlake.console.options import ConsoleOptions
from mqlake.console.server import ConsoleServer
from mqlake.errors import MqlakeError

OPTIONS = ConsoleOptions(name_servers="127.0.0.1:1", port=0)


async def status(url: str) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}login")).status_code


def test_serves_pages_on_a_free_port() -> None:
    async def run() -> None:
        async with ConsoleServer(OPTIONS) as server:
            assert await status(server.url) == 200
        with pytest.raises(httpx.ConnectError):
            await status(server.url)

    asyncio.run(run())


def test_a_used_port_is_one_clear_error() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as used:
            port = used.getsockname()[1]
            options = ConsoleOptions(name_servers="127.0.0.1:1", port=port)
            with pytest.raises(MqlakeError, match=f"cannot listen on 127.0.0.1:{port}"):
                await ConsoleServer(options).__aenter__()

    asyncio.run(run())


def test_https_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(MqlakeError, match="--server-key"):
        ConsoleServer(ConsoleOptions(name_servers="", certificate=str(tmp_path / "c.pem")))


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET /login HTTP/1.1\r\nHost: loc"])
def test_a_connection_without_a_request_ends(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.2)

    async def run() -> None:
        async with ConsoleServer(OPTIONS) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(sent)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(run())


def test_an_address_has_a_share_of_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SHARE", 3)

    async def run() -> None:
        async with ConsoleServer(OPTIONS) as server:
            held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            for each in (writer, *(pair[1] for pair in held)):
                each.close()

    asyncio.run(run())
