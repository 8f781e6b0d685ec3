"""Slaves and masters of replication that a test leads by hand, and both of mqlake's."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from mqlake.protocol.replication.frames import HEAD_SIZE, REPORT_SIZE, encode_head, encode_report
from mqlake.replication.ha_connection import HaConnection
from mqlake.replication.ha_server import HaServer
from mqlake.replication.slave_log import SlaveLog
from tests.accepted import Accepted
from tests.broker.running import PATIENCE, Running, running

SIZE = 1 << 16
FILES: dict[str, object] = {
    "mappedFileSizeCommitLog": SIZE,
    "haSendHeartbeatInterval": 100,
    # What is sent has to be acknowledged, however busy the machine.
    "slaveTimeout": 60_000,
}
SLAVE: dict[str, object] = {**FILES, "brokerRole": "SLAVE", "brokerId": 1}


def server(broker: Running) -> HaServer:
    found = broker.state.replication.server
    assert found is not None
    return found


def only(broker: Running) -> HaConnection:
    (connection,) = server(broker).connections
    return connection


def follower(broker: Running) -> SlaveLog:
    found = broker.state.replication.slave
    assert found is not None
    return found


def end(broker: Running) -> int:
    return broker.state.store.watermarks.end


def log_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "commitlog").iterdir())}


@asynccontextmanager
async def pair(path: Path, **settings: object) -> AsyncIterator[tuple[Running, Running]]:
    """Run a master on `path`/master, and its slave on `path`/slave."""
    async with (
        running(path / "master", **(FILES | settings)) as master,
        slave_of(master, path / "slave") as slave,
    ):
        yield master, slave


@asynccontextmanager
async def slave_of(master: Running, path: Path, **settings: object) -> AsyncIterator[Running]:
    """Run a slave that knows where its master is."""
    address = server(master).address
    async with running(path, **(SLAVE | {"haMasterAddress": address} | settings)) as slave:
        follower(slave).master_address = master.address
        yield slave


_open: list[asyncio.StreamWriter] = []


async def close_all() -> None:
    """Close the connections that a test has made."""
    for writer in _open:
        writer.transport.abort()
    _open.clear()


class Slave:
    """A connection to a master's port for slaves; `close_all` closes it at the latest."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.received = b""
        _open.append(writer)

    @classmethod
    async def connect(
        cls, address: str, buffer: int | None = None, host: str | None = None
    ) -> Self:
        """Connect, from another address of this machine if `host` names one."""
        one = socket.socket()
        if host is not None:
            one.bind((host, 0))
        if buffer is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        one.setblocking(False)
        server, _, port = address.rpartition(":")
        await asyncio.get_running_loop().sock_connect(one, (server, int(port)))
        return cls(*await asyncio.open_connection(sock=one, limit=buffer or 1 << 16))

    def report(self, offset: int) -> None:
        self.writer.write(encode_report(offset))

    async def frame(self) -> tuple[int, bytes]:
        """Return the next frame's offset and body."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readexactly(HEAD_SIZE)
            length = int.from_bytes(head[8:], "big")
            body = await self.reader.readexactly(length)
        self.received += body
        return int.from_bytes(head[:8], "big"), body

    async def data(self) -> tuple[int, bytes]:
        """Return the next frame that is no heartbeat."""
        while True:
            offset, body = await self.frame()
            if body:
                return offset, body

    async def closed(self) -> None:
        """Return once the master has closed the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                while await self.reader.read(1 << 16):
                    pass
            except ConnectionError:
                pass

    def close(self) -> None:
        self.writer.transport.abort()


Lead = Callable[[int, "Master"], Awaitable[None]]


class Master:
    """One connection of a slave to a master that a test leads."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.reports: list[int] = []

    async def report(self) -> int:
        """Return the slave's next report."""
        async with asyncio.timeout(PATIENCE):
            data = await self.reader.readexactly(REPORT_SIZE)
        self.reports.append(int.from_bytes(data, "big"))
        return self.reports[-1]

    def send(self, offset: int, data: bytes, most: int = 1000) -> None:
        """Send log bytes in frames."""
        for at in range(0, len(data), most):
            part = data[at : at + most]
            self.writer.write(encode_head(offset + at, len(part)) + part)

    async def gone(self) -> None:
        """Return once the slave has closed the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                while await self.reader.read(1 << 16):
                    pass
            except ConnectionError:
                pass


@asynccontextmanager
async def master(lead: Lead) -> AsyncIterator[str]:
    """Run a master of which each connection is led by a function, with its number from 0 on."""
    numbers = itertools.count()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await lead(next(numbers), Master(reader, writer))

    accepted = Accepted(serve)
    listening = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        await accepted.end()
