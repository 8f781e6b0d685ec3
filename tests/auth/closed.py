"""A broker that asks for signatures, and clients of several users."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from tests.broker.running import PATIENCE, Running, running

ROOT = Credentials("root", "root-password-1")
INNER = Credentials("inner", "inner-password-2")
SECRETS = (ROOT.secret_key, INNER.secret_key)
CLOSED = {
    "authenticationEnabled": "true",
    "initAuthenticationUser": json.dumps({"username": "root", "password": ROOT.secret_key}),
    "innerClientAuthenticationCredentials": json.dumps(
        {"accessKey": "inner", "secretKey": INNER.secret_key}
    ),
    "brokerClusterName": "main",
}


class Asking:
    """Sends requests in the name of users."""

    def __init__(self, broker: Running) -> None:
        self.broker = broker
        self._clients: dict[Credentials | None, RemotingClient] = {}

    def client(self, credentials: Credentials | None) -> RemotingClient:
        if credentials not in self._clients:
            self._clients[credentials] = RemotingClient(
                connect_timeout=PATIENCE, credentials=credentials
            )
        return self._clients[credentials]

    async def ask(
        self,
        credentials: Credentials | None,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Command:
        """Return the answer to a request that a user has signed; None for nobody."""
        client = self.client(credentials)
        return await client.request(self.broker.address, request(code, header, body), PATIENCE)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


@asynccontextmanager
async def closed(path: Path, settings: Mapping[str, object] = CLOSED) -> AsyncGenerator[Asking]:
    """Run a broker with authentication."""
    async with running(path, None, clock=None, **settings) as broker:
        asking = Asking(broker)
        try:
            yield asking
        finally:
            await asking.close()
