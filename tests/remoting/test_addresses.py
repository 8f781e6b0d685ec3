"""Addresses to which no connection can be opened."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError


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
