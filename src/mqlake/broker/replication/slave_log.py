"""A slave: its commit log follows that of its master.

Upstream: `DefaultHAClient`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from time import perf_counter

from mqlake.broker.replication.comparison import (
    Begin,
    BeginOtherwiseError,
    Comparison,
    DivergedError,
)
from mqlake.broker.replication.master_log import MasterLog, ask
from mqlake.broker.replication.rate import Rate
from mqlake.broker.settings import BrokerSettings
from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.replication import FrameReader, Piece, encode_report
from mqlake.remoting.client import RemotingClient
from mqlake.store.live_settings import Current
from mqlake.store.port import Store

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
"""Seconds until a connection that failed is made again: doubled each time, up to these."""
_DIVERGED = 30.0
"""The same if the logs cannot be one."""
_CONNECT = 5.0
"""Seconds that a connection may take."""
_READ = 1 << 18
"""Most bytes that are read at once."""
_TURN = 0.002
"""Seconds after which others are served while what was read is gone through: it may be frames of a
few bytes."""

_log = logging.getLogger(__name__)


class SlaveLog:
    """Copies a master's log into this store, from `start` to `stop`.

    Attributes:
        master_address: the "host:port" at which the master serves clients; None if it is not known.
        problem: why the log is not copied now; None if it is.
        is_activated: the connection is made, and the master sends.
        last_read, last_write: milliseconds since 1970; 0 before the first.
        master_flush_offset: physical offset up to which the master has sent its log.
    """

    def __init__(self, settings: Current[BrokerSettings], store: Store) -> None:
        self._settings, self._store = settings, store
        self._loop = asyncio.get_running_loop()
        self._client = RemotingClient()
        self._address: str | None = settings.now.ha_master_address or None
        self._is_fixed = self._address is not None
        self._addressed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._rate = Rate()
        self.master_address: str | None = None
        self.problem: str | None = "its master's address is not known"
        self.is_activated = False
        self.last_read = self.last_write = self.master_flush_offset = 0
        self._connection: asyncio.Task[None] | None = None
        self._begin = Begin.UNKNOWN
        self._received = 0
        self._reported = 0
        self._last_report = 0.0
        self._compare_from = store.copying.recovered_from

    # What `haStatus` shows

    @property
    def transferred_in_second(self) -> int:
        """Bytes that were received in the last second."""
        return self._rate.of_last_second(self._loop.time())

    @property
    def max_offset(self) -> int:
        """Physical offset at which this store's log ends."""
        return self._store.watermarks.end

    # Where the master is

    @property
    def master_ha_address(self) -> str | None:
        """The "host:port" of the master's port for slaves; None if it is not known.

        `haMasterAddress` fixes it: setting another one has no effect then.
        """
        return self._address

    @master_ha_address.setter
    def master_ha_address(self, address: str | None) -> None:
        if self._is_fixed or (address or None) == self._address:
            return
        _log.info("the master's address for slaves is %s", address or "not known any more")
        self._address = address or None
        self._addressed.set()
        if self._connection is not None:
            self._connection.cancel()

    async def start(self) -> None:
        """Begin to follow the master, as soon as its address is known."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the connection. What has arrived stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._store.copying.drop()
        await self._client.close()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            address = await self._known_address()
            received = self._received
            try:
                await self._follow_until_changed(address)
                continue
            except BeginOtherwiseError as other:
                self._begin = other.begin
                continue
            except DivergedError as error:
                reason, pause = str(error), _DIVERGED
            except (MqlakeError, OSError) as error:
                reason = str(error) or type(error).__name__
            except Exception as error:  # noqa: BLE001 (a slave without this task follows no more)
                reason = f"{type(error).__name__}: {error}"
                _log.error("master %s: the log is not followed", address, exc_info=error)
            if self._received != received:
                pause = _FIRST_PAUSE
            self._report(address, reason)
            self._addressed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._addressed.wait()
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _report(self, address: str, reason: str) -> None:
        """Log why the log is not followed, once as long as that is the reason."""
        if reason != self.problem:
            _log.error("master %s: the log is not followed: %s", address, reason)
            self.problem = reason

    async def _known_address(self) -> str:
        while self._address is None:
            self._addressed.clear()
            await self._addressed.wait()
        return self._address

    async def _follow_until_changed(self, address: str) -> None:
        """Follow a master until its address changes.

        Raises:
            OSError, MqlakeError: the connection cannot be made, or is over.
            BeginOtherwiseError: the log has to be asked for in another way.
        """
        self._connection = asyncio.create_task(self._follow(address))
        try:
            await self._connection
        except asyncio.CancelledError:
            if self._task is not None and self._task.cancelling():
                raise
        finally:
            self._connection.cancel()
            await asyncio.gather(self._connection, return_exceptions=True)
            self._connection = None

    # One connection

    async def _follow(self, address: str) -> None:
        copying, master = self._store.copying, await self._master_log()
        copying.drop()
        await copying.kept()
        comparison = Comparison(
            copying,
            self._store.watermarks.min_offset,
            master,
            self._compare_from,
            self._begin,
        )
        host, _, port = address.rpartition(":")
        async with asyncio.timeout(_CONNECT):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), limit=_READ)
        beating: asyncio.Task[None] | None = None
        try:
            connected: socket.socket = writer.get_extra_info("socket")
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _log.info("master %s: connected; asked for %d", address, comparison.request)
            self._reported = comparison.request
            self._write(writer, comparison.request)
            beating = asyncio.create_task(self._beat(writer))
            await self._receive(reader, writer, comparison)
        finally:
            self.is_activated = False
            if beating is not None:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
            writer.transport.abort()

    async def _master_log(self) -> MasterLog | None:
        if self.master_address is None:
            return None
        try:
            return await ask(self._client, self.master_address)
        except MqlakeError as error:
            _log.info("where the master's log is, is not known: %s", error)
            return None

    async def _receive(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, comparison: Comparison
    ) -> None:
        frames, patience = FrameReader(), self._settings.now.ha_housekeeping_interval / 1000
        while True:
            try:
                async with asyncio.timeout(patience):
                    data = await reader.read(_READ)
            except TimeoutError:
                raise MqlakeError(f"nothing came for {patience:g} s") from None
            if not data:
                raise MqlakeError("the master closed the connection")
            self.last_read = self._store.clock.milliseconds()
            self._rate.add(len(data), self._loop.time())
            until = perf_counter() + _TURN
            for piece in frames.feed(data):
                self._take(piece, comparison)
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + _TURN
            if comparison.is_over:
                await self._acknowledge(writer)

    def _take(self, piece: Piece, comparison: Comparison) -> None:
        if not piece.data:
            comparison.heartbeat(piece.offset)
            self._activated()
            return
        copying = self._store.copying
        if comparison.is_over:
            if piece.offset != copying.expected:
                raise StoreError(
                    f"the master sends physical offset {piece.offset} instead of {copying.expected}"
                )
            copying.take(piece.data)
        elif new := comparison.take(piece):
            copying.take(new)
        self.master_flush_offset = piece.offset + len(piece.data)
        if comparison.is_over:
            self._compare_from = None
            self._received += len(piece.data)
            self._activated()

    def _activated(self) -> None:
        if not self.is_activated:
            self.is_activated, self.problem = True, None
            _log.info("the master's log is followed, from %d on", self._store.watermarks.end)

    async def _acknowledge(self, writer: asyncio.StreamWriter) -> None:
        kept = await self._store.copying.kept()
        if kept > self._reported:
            self._reported = kept
            self._write(writer, kept)
            await writer.drain()

    def _write(self, writer: asyncio.StreamWriter, offset: int) -> None:
        writer.write(encode_report(offset))
        self.last_write = self._store.clock.milliseconds()
        self._last_report = self._loop.time()

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        """Report again when nothing was reported for some time."""
        interval = self._settings.now.ha_send_heartbeat_interval / 1000
        while True:
            await asyncio.sleep(max(self._last_report + interval - self._loop.time(), 0))
            if self._loop.time() >= self._last_report + interval:
                self._write(writer, self._reported)
