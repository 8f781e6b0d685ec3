"""The broker of a run, which is stopped and killed meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.remoting.client import RemotingClient
from tests.broker.running import PATIENCE, Running, running


class Place:
    """A store, and the broker on it. `async with place.open():` runs the first one.

    Attributes:
        lives: how often it was killed. Answers of an earlier life say nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._settings: dict[str, object] = {
            "enableLmq": True,
            "popCkStayBufferTime": 2000,
            "transactionTimeOut": 3000,
            "transactionCheckInterval": 3000,
        }
        self._stack = AsyncExitStack()
        self._running: Running | None = None
        self._ready = asyncio.Event()
        self.lives = 1

    @property
    def store(self) -> Path:
        return self._path / str(self.lives)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        await self._start()
        try:
            yield
        finally:
            await self._stack.aclose()

    async def broker(self) -> Running:
        """Return the broker once it runs."""
        await self._ready.wait()
        assert self._running is not None
        return self._running

    async def restart(self, **settings: object) -> None:
        """Stop the broker cleanly, and start it with other settings."""
        await self._stop()
        self._settings |= settings
        await self._start()

    async def kill(self) -> None:
        """Continue as after `kill -9`: on the files as they are at this moment."""
        before = self.store
        self.lives += 1
        shutil.copytree(before, self.store, ignore=shutil.ignore_patterns("*.tmp"))
        await self._stop()
        await self._start()

    async def stop(self) -> Path:
        """Stop the broker for good; return the directory of its store."""
        await self._stop()
        return self.store

    async def _stop(self) -> None:
        self._ready.clear()
        await self._stack.aclose()

    async def _start(self) -> None:
        self._stack = AsyncExitStack()
        self._running = await self._stack.enter_async_context(running(self.store, **self._settings))
        self._ready.set()


class Connection:
    """A client's connection to the broker, wherever it listens."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._client = RemotingClient(connect_timeout=PATIENCE)

    async def ask(
        self, code: int, header: Header | None = None, body: bytes = b""
    ) -> Command | None:
        """Return the answer to a request, None if nothing is known of what became of it."""
        broker = await self.place.broker()
        life = self.place.lives
        try:
            answer = await self._client.request(
                broker.address, request(code, header, body), PATIENCE
            )
        except MqlakeError:
            await self.place.broker()
            return None
        return answer if life == self.place.lives else None

    async def close(self) -> None:
        await self._client.close()
