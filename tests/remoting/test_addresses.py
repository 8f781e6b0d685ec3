"""Addresses to which no connection can be opened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError, ConnectTimeoutError


@pytest.mark.parametrize("address", ["a..b:10911", f"{'a' * 64}.b:10911", "h:" + "9" * 5000, "h:x"])
def test_an_invalid_address_is_a_failed_connection(address: str) -> None:
    async def run() -> None:
        client = RemotingClient()
        try:
            with pytest.raises(ConnectionFailedError):
                await client.connect(address)
        finally:
            await client.close()

    asyncio.run(run())


def test_a_connection_that_is_not_accepted_in_time_fails_as_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hang(*_: object, **__: object) -> Any:
        await asyncio.Event().wait()

    async def run() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", hang)
        client = RemotingClient(connect_timeout=0.0)
        with pytest.raises(
            ConnectTimeoutError, match=r"^127\.0\.0\.1:1: no connection within 0 s$"
        ):
            await client.connect("127.0.0.1:1")
        await client.close()

    asyncio.run(run())
